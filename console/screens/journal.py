"""J: every act of people and of the engine, as kept in the database: also those of other consoles and of the CLI."""

from collections.abc import Sequence

from console.format import clean
from console.frame import Frame
from console.line import Line
from console.screens.page import PageScreen
from console.screens.pick import Asked
from console.session import Session
from engine.domain.inspection import Journal, JournalLine, JournalOf

AGAIN_S = 2.0
"""Seconds between two looks while the page is open."""


class JournalScreen(PageScreen):
    """The newest first."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._asked = Asked(session, JournalOf(), Journal)
        self._shown: Journal | str = self._asked.answer()
        self._asked_at = session.monotonic()

    def page_title(self, _frame: Frame) -> str:
        """What it is."""
        return "JOURNAL: who did what, newest first"

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """One line an act; a second one for its reason or its refusal."""
        found = self._asked.answer()
        if isinstance(found, Journal) or not isinstance(self._shown, Journal):
            self._shown = found
        if isinstance(found, Journal) and self.session.monotonic() - self._asked_at >= AGAIN_S:
            self._asked, self._asked_at = Asked(self.session, JournalOf(), Journal), self.session.monotonic()
        if isinstance(self._shown, str):
            return [Line(f" {self._shown}", "faint")]
        lines = [
            part
            for entry in self._shown.lines
            for line in _lines(entry, frame)
            for part in line.folded(width, 6)
        ]
        return lines or [Line(" nothing was done yet", "faint")]


def _lines(e: JournalLine, frame: Frame) -> list[Line]:
    change = (
        f" {clean(e.before or '', frame.glyphs)}{frame.glyphs.arrow}{clean(e.after, frame.glyphs)}"
        if e.after
        else ""
    )
    head = Line(f" {e.at:%m-%d %H:%M:%S}Z ", "faint").cell(
        clean(e.author, frame.glyphs), 14, cut=frame.glyphs.cut
    )
    head.add(f" {clean(e.act, frame.glyphs)} {frame.text(e.target)}{change}", "strong")
    head.add(f" ({clean(e.origin, frame.glyphs)})", "faint")
    more = [f"reason: {frame.text(e.reason)}"] if e.reason else []
    if e.result != "done":
        more.append(frame.text(e.result))
    return (
        [head, Line(f"   {'  '.join(more)}", "warning" if "refused" in e.result else "faint")]
        if more
        else [head]
    )
