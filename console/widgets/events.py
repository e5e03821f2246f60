"""What people and the engine did lately, newest first, with the acts of this screen on their way."""

from collections.abc import Sequence

from console.frame import Frame, act_line
from console.line import Line
from console.widgets.panel import ListPanel
from engine.domain.snapshot import EventView


class Events(ListPanel):
    """One line without a title in the small layout, a list with a title in the large one."""

    NUMBER = 5

    def title(self, _frame: Frame) -> str:
        """The large layout's title."""
        return "5 EVENTS and ACTS"

    def lines(self, frame: Frame, width: int, height: int) -> Sequence[Line]:
        """Two events side by side when there is only one line."""
        if height > 1:
            return super().lines(frame, width, height)
        events = frame.snapshot.events if frame.snapshot else ()
        undo = Line("[u]ndo", "key") if _can_undo(frame) else Line()
        line = Line()
        for event in events[self._top : self._top + 2]:
            line.add(f" {frame.glyphs.sep} " if line.parts else "", "faint")
            line.add(event_text(event, frame), "title-focus" if self.has_focus else "text")
        room = width - undo.width - 1
        plain = Line().cell(
            line.plain, room, cut=frame.glyphs.cut, role="title-focus" if self.has_focus else "text"
        )
        return [plain.add(" ").add(undo.plain, "key")]

    def items(self, frame: Frame, _width: int) -> Sequence[Line]:
        """Acts that are not done yet first, then the events."""
        return [*act_items(frame, open_only=True), *event_items(frame)]


def event_text(event: EventView, frame: Frame) -> str:
    """03:11:20 ana RATE …0017 100→80"""
    return f"{event.at:%H:%M:%S} {frame.text(event.author)} {frame.text(event.text)}"


def event_items(frame: Frame) -> list[Line]:
    """One line an event."""
    events = frame.snapshot.events if frame.snapshot else ()
    lines = []
    for e in events:
        line = Line(f" {e.at:%H:%M:%S} ", "faint").cell(
            frame.text(e.author), 12, cut=frame.glyphs.cut, role="key"
        )
        lines.append(line.add(" " + frame.text(e.text)))
    return lines


def act_items(frame: Frame, open_only: bool) -> list[Line]:
    """One line an act: sent, acknowledged, in effect or refused."""
    acts = frame.snapshot.acts if frame.snapshot else ()
    roles = {"refused": "critical-text", "in effect": "text"}
    wanted = [a for a in acts if not open_only or a.stage in ("sent", "acknowledged", "refused")]
    return [Line(" " + act_line(a, frame), roles.get(a.stage, "warning")) for a in wanted]


def _can_undo(frame: Frame) -> bool:
    acts = frame.snapshot.acts if frame.snapshot else ()
    return any(a.undo for a in acts)
