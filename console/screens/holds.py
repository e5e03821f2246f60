"""h: every stop that needs a person, with what it stops and since when; Enter lifts it, after a question."""

from collections.abc import Hashable, Sequence
from textwrap import wrap

from console.acting import Acting
from console.format import duration
from console.frame import Frame
from console.line import Line
from console.screens.pick import Entry, PickScreen, text
from engine.domain.snapshot import HoldView


class HoldsScreen(PickScreen):
    """Numbers, accounts, credentials, templates, countries."""

    def page_title(self, frame: Frame) -> str:
        """How many."""
        count = len(frame.snapshot.holds) if frame.snapshot else 0
        return f"HOLDS {count}  ({frame.glyphs.enter} lifts one: it asks)"

    def entries(self, frame: Frame, width: int) -> Sequence[Entry]:
        """Scope, what, code, age; below it the reason."""
        holds = frame.snapshot.holds if frame.snapshot else ()
        entries = [Entry((h.scope, h.key), _lines(h, frame, width)) for h in holds]
        return entries or [text(Line(" nothing is held", "faint"))]

    def open(self, key: Hashable) -> None:
        """The hold as it stands now."""
        live = self.session.live()
        held = next((h for h in live.holds if (h.scope, h.key) == key), None) if live else None
        if held is not None:
            Acting(self.session, self.app.push_screen).lift(held)


def _lines(hold: HoldView, frame: Frame, width: int) -> tuple[Line, ...]:
    line = Line(f" {frame.glyphs.critical} ", "critical-text").cell(frame.text(hold.scope), 11)
    line.cell(frame.text(hold.key), 28, role="strong", cut=frame.glyphs.cut)
    line.cell(str(hold.code or "-"), 8, ">")
    age = duration((frame.now - hold.since).total_seconds()) if hold.since is not None else "-"
    head = line.add(f"  for {age}", "faint")
    reason = wrap(frame.text(hold.reason or ""), max(20, width - 4))
    return (head, *(Line(f"   {part}") for part in reason))
