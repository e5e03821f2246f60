"""A full screen of lines under the live header: Esc or q goes back to where one came from."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from console.fault import shield
from console.frame import Frame
from console.keys import bindings
from console.line import Line
from console.session import Session
from console.widgets.alerts import AlertLine
from console.widgets.header import Header
from console.widgets.notice import NoticeLine
from console.widgets.panel import LinePanel, ListPanel

MOVES = ("down", "up", "top", "bottom", "page_down", "page_up", "window", "back", "leave")
_STEPS = {"down": 1, "up": -1, "top": -(10**6), "bottom": 10**6}


class PageBody(ListPanel):
    """The list of the page that it stands on."""

    def title(self, frame: Frame) -> str:
        """The page's."""
        page = self.screen
        return page.page_title(frame) if isinstance(page, PageScreen) else ""

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """The page's."""
        page = self.screen
        return page.items(frame, width) if isinstance(page, PageScreen) else []


class PageScreen(Screen[None]):
    """Subclasses give a title and lines; both from a frame, so the page stays live."""

    AUTO_FOCUS = "PageBody"
    BINDINGS: ClassVar[list[BindingType]] = bindings(MOVES)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def page_title(self, frame: Frame) -> str:
        """Words of the title."""
        raise NotImplementedError

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """All lines; the page scrolls."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """State and alerts stay in sight on every page."""
        yield Header()
        yield AlertLine()
        yield PageBody()
        yield NoticeLine()

    def on_mount(self) -> None:
        """No empty first paint."""
        with shield(self._report):
            self.show(self.session.frame())

    def show(self, frame: Frame) -> None:
        """A tick."""
        for panel in self.query(LinePanel):
            with shield(self._report):  # each by itself: one that fails leaves the others alive
                panel.paint(frame)

    def action_key(self, name: str) -> None:
        """Moves, and the ways back."""
        with shield(self._report):
            self.session.hush()
            body = self.query_one(PageBody)
            if name in _STEPS:
                body.scroll_lines(_STEPS[name])
            elif name in ("page_down", "page_up"):
                body.scroll_lines((body.size.height - 2) * (1 if name == "page_down" else -1))
            elif name == "window":
                self.session.next_window()
            elif not self.does(name):
                self.dismiss()
                return
        with shield(self._report):
            self.show(self.session.frame())

    def does(self, _name: str) -> bool:
        """A key of this page beside the moves; whether it was one."""
        return False

    def _report(self, text: str) -> None:
        self.session.fault = text
