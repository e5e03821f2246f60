"""e: events and acts; l: the event log alone."""

from collections.abc import Sequence

from console.frame import Frame
from console.line import Line
from console.screens.page import PageScreen
from console.session import Session
from console.widgets.events import act_items, event_items


class EventsScreen(PageScreen):
    """The newest first; as many as the snapshot carries."""

    def __init__(self, session: Session, *, with_acts: bool) -> None:
        super().__init__(session)
        self._with_acts = with_acts

    def page_title(self, _frame: Frame) -> str:
        """Which of the two it is."""
        return "EVENTS and ACTS, newest first" if self._with_acts else "EVENT LOG, newest first"

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """Acts, then events."""
        events = _folded(event_items(frame), width, 23) or [Line(" no events yet", "faint")]
        if not self._with_acts:
            return events
        acts = _folded(act_items(frame, open_only=False), width, 4) or [Line(" no acts yet", "faint")]
        return [Line("Acts", "title"), *acts, Line(), Line("Events", "title"), *events]


def _folded(lines: Sequence[Line], width: int, indent: int) -> list[Line]:
    return [part for line in lines for part in line.folded(width, indent)]
