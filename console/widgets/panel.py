"""A block of lines made from a frame. Only lines that differ are drawn again."""

from collections.abc import Sequence

from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from console.fault import shield
from console.frame import Frame
from console.line import Line
from console.theme import RAISED

CURSOR = Style(bgcolor=RAISED, bold=True)


class LinePanel(Widget):
    """Base of all live widgets. `lines` is pure; `render_line` only picks, so drawing cannot fail."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's names
        super().__init__(id=id, classes=classes)
        self._frame: Frame | None = None
        self._lines: Sequence[Line] = ()
        self._cursor_line = -1
        self._made_for = Size(0, 0)

    def lines(self, frame: Frame, width: int, height: int) -> Sequence[Line]:
        """The lines to show, at most `height`, each at most `width` cells."""
        raise NotImplementedError

    def cursor_line(self) -> int:
        """Which line carries the cursor, after `lines`; -1 for none."""
        return -1

    def paint(self, frame: Frame) -> None:
        """Show a frame."""
        self._frame = frame
        width, height = self.size
        if not width or not height or not self.display:
            return
        old, old_cursor = self._lines, self._cursor_line
        self._make(frame)
        new = self._lines
        cursors = {old_cursor, self._cursor_line} if old_cursor != self._cursor_line else set()
        changed: list[Region] = []
        for y in range(max(len(old), len(new))):
            if y in cursors or y >= len(old) or y >= len(new) or old[y] != new[y]:
                changed.append(Region(0, y, width, 1))
        if changed:
            self.refresh(*changed)

    def _make(self, frame: Frame) -> None:
        self._made_for = self.size
        self._lines = list(self.lines(frame, *self.size))[: self.size.height]
        self._cursor_line = self.cursor_line()

    def repaint(self) -> None:
        """Show the last frame again, as a whole: the size or the focus has changed."""
        if self._frame is not None:
            with shield(self._report):
                self._lines = ()
                self.paint(self._frame)
        self.refresh()

    def _report(self, text: str) -> None:
        report = getattr(self.app, "report_fault", None)
        if report is not None:
            report(text)

    def on_resize(self) -> None:
        """Lines depend on the width."""
        if self._made_for != self.size:
            self.repaint()

    def on_focus(self) -> None:
        """The title shows the focus."""
        self.repaint()

    def on_blur(self) -> None:
        """The title shows the focus."""
        self.repaint()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Right from the first time: Textual draws a widget before it tells of its size."""
        if self._frame is not None and self._made_for != self.size:
            with shield(self._report):
                self._make(self._frame)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Textual asks for one line of the screen."""
        width, base = self.size.width, self.rich_style
        if y >= len(self._lines):
            return Strip.blank(width, base)
        return self._lines[y].strip(width, base, CURSOR if y == self._cursor_line else None)


class ListPanel(LinePanel, can_focus=True):
    """A title and a list that can be longer than the panel: j k move it while it has the focus."""

    NUMBER = 0
    """The key that focuses it."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's names
        super().__init__(id=id, classes=classes)
        self._top = 0

    def title(self, frame: Frame) -> str:
        """Words of the title."""
        raise NotImplementedError

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """All lines of the list."""
        raise NotImplementedError

    def scroll_lines(self, step: int) -> None:
        """Move the list by lines."""
        self._top = max(0, self._top + step)
        self.repaint()

    def lines(self, frame: Frame, width: int, height: int) -> Sequence[Line]:
        """The title, then the part of the list that fits."""
        items, room = self.items(frame, width), max(0, height - 1)
        self._top = min(self._top, max(0, len(items) - room))
        below = len(items) - self._top - room
        more = f" {frame.glyphs.down}{below} more " if below > 0 else ""
        return [title_line(frame, self.title(frame), width, self.has_focus, more), *items[self._top :][:room]]


def title_line(frame: Frame, text: str, width: int, focused: bool, right: str = "") -> Line:
    """─NAME──────── more ─"""
    rule = frame.glyphs.rule
    line = Line(rule, "faint").add(text, "title-focus" if focused else "title")
    return line.add(rule * max(0, width - line.width - len(right)), "faint").add(right, "title")
