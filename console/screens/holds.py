"""h: every stop that needs a person, with what it stops and since when."""

from collections.abc import Sequence

from console.format import duration
from console.frame import Frame
from console.line import Line
from console.screens.page import PageScreen


class HoldsScreen(PageScreen):
    """Numbers, accounts, credentials, templates, countries."""

    def page_title(self, frame: Frame) -> str:
        """How many."""
        return f"HOLDS {len(frame.snapshot.holds) if frame.snapshot else 0}  (lift: tidegate hold lift)"

    def items(self, frame: Frame, _width: int) -> Sequence[Line]:
        """One line a hold: scope, what, code, reason, age."""
        lines = []
        for hold in frame.snapshot.holds if frame.snapshot else ():
            line = Line(f" {frame.glyphs.critical} ", "critical-text").cell(frame.text(hold.scope), 11)
            line.cell(frame.text(hold.key), 28, role="strong", cut=frame.glyphs.cut)
            line.cell(str(hold.code or "-"), 8, ">")
            age = duration((frame.now - hold.since).total_seconds()) if hold.since is not None else "-"
            lines.append(line.add(f"  {age:<7}", "faint").add(frame.text(hold.reason or "")))
        return lines or [Line(" nothing is held", "faint")]
