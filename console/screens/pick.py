"""A page with a cursor: j k choose an entry, Enter opens it, and what is asked of the database is waited for here."""

from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType

from console.fault import shield
from console.frame import Frame
from console.keys import bindings
from console.line import Line
from console.screens.page import MOVES, PageBody, PageScreen
from console.session import Session
from console.widgets.alerts import AlertLine
from console.widgets.header import Header
from console.widgets.notice import NoticeLine
from engine.domain.inspection import Answer, NoAnswer, Query

A = TypeVar("A")
_STEPS = {"down": 1, "up": -1, "top": -(10**6), "bottom": 10**6}


@dataclass(frozen=True, slots=True)
class Entry:
    """What the cursor can stand on: lines that belong together. Without a key they are only text."""

    key: Hashable
    lines: tuple[Line, ...]


def text(*lines: Line) -> Entry:
    """Lines that nothing can be done with."""
    return Entry(None, lines)


class PickBody(PageBody):
    """Keeps the cursor's entry in sight."""

    def __init__(self) -> None:
        super().__init__()
        self._at = -1

    def cursor_line(self) -> int:
        """The first line of the chosen entry, on the screen."""
        return self._at

    def lines(self, frame: Frame, width: int, height: int) -> Sequence[Line]:
        """Scrolls by entries."""
        page, room = self.screen, max(1, height - 1)
        self._at = -1
        if isinstance(page, PickScreen):
            first, count = page.place(page.entries(frame, width))
            if first >= 0:
                self._top = max(min(self._top, first), first + min(count, room) - room)
                if first < room and self._top <= first:  # text above the first entries stays in sight
                    self._top = max(0, min(self._top, first + count - room))
                self._at = 1 + first - self._top
        return super().lines(frame, width, height)


class PickScreen(PageScreen):
    """Subclasses give `entries` and say what Enter does with a key."""

    AUTO_FOCUS = "PickBody"
    BINDINGS: ClassVar[list[BindingType]] = bindings((*MOVES, "enter"))

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.chosen: Hashable = None
        self._keys: list[Hashable] = []

    def compose(self) -> ComposeResult:
        """State and alerts stay in sight on every page."""
        yield Header()
        yield AlertLine()
        yield PickBody()
        yield NoticeLine()

    def entries(self, frame: Frame, width: int) -> Sequence[Entry]:
        """All entries, in order."""
        raise NotImplementedError

    def open(self, key: Hashable) -> None:
        """Enter on an entry."""

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """The entries' lines."""
        return [line for entry in self.entries(frame, width) for line in entry.lines]

    def place(self, entries: Sequence[Entry]) -> tuple[int, int]:
        """First line and number of lines of the chosen entry; the choice follows its key. (-1, 0) without any."""
        self._keys = [e.key for e in entries if e.key is not None]
        if self.chosen not in self._keys:
            self.chosen = self._keys[0] if self._keys else None
        at = 0
        for entry in entries:
            if entry.key is not None and entry.key == self.chosen:
                return at, len(entry.lines)
            at += len(entry.lines)
        return -1, 0

    def action_key(self, name: str) -> None:
        """Moves the cursor, opens, or goes back."""
        with shield(self._report):
            self.session.hush()
            body = self.query_one(PageBody)
            page = max(1, body.size.height - 2)
            step = _STEPS.get(name) or {"page_down": page, "page_up": -page}.get(name, 0)
            if step and self._keys:
                at = self._keys.index(self.chosen) if self.chosen in self._keys else 0
                self.chosen = self._keys[min(max(0, at + step), len(self._keys) - 1)]
            elif step:
                body.scroll_lines(step)
            elif name == "enter":
                if self.chosen is not None:
                    self.open(self.chosen)
            elif name == "window":
                self.session.next_window()
            elif not self.does(name):
                self.dismiss()
                return
        with shield(self._report):
            self.show(self.session.frame())


class Asked(Generic[A]):
    """One question to the database and its answer, once there is one."""

    def __init__(self, session: Session, query: Query, kind: type[A]) -> None:
        self._kind = kind
        self._future: Future[Answer] = session.link.ask(query)

    def answer(self) -> A | str:
        """The answer, or a line to show instead of it. Never waits."""
        if not self._future.done():
            return "asking the database…"
        error = self._future.exception()
        if error is not None:
            return f"no answer: {type(error).__name__}: {error}"
        found = self._future.result()
        if isinstance(found, NoAnswer):
            return f"no answer: {found.why}"
        return found if isinstance(found, self._kind) else f"no answer: {type(found).__name__}"
