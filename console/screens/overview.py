"""The overview: all facts and all acts on one screen, at 80x24 and at 120x40, out of the same widgets."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input

from console.acting import Acting
from console.fault import shield
from console.frame import Frame
from console.keys import bindings
from console.screens.alerts import AlertsScreen
from console.screens.number import NumberScreen
from console.screens.rows import CodesScreen, RowsScreen
from console.session import Session
from console.widgets.alerts import AlertLine
from console.widgets.campaigns import Campaigns
from console.widgets.chart import AcceptedChart, TokenWaitChart
from console.widgets.errors import Errors
from console.widgets.events import Events
from console.widgets.flow import Flow
from console.widgets.header import Header
from console.widgets.keyline import KeyLine
from console.widgets.notice import NoticeLine
from console.widgets.numbers import NumbersGrid
from console.widgets.panel import LinePanel, ListPanel
from console.widgets.progress import Figures, Progress, ProgressBar
from console.widgets.spark import SparkStrip
from console.widgets.stuck import Stuck
from console.widgets.tiny import TinyLine
from engine.domain.inspection import RowsOf

_PANELS: tuple[type[LinePanel], ...] = (NumbersGrid, Errors, Stuck, AlertLine, Events)
_STEPS = {"down": 1, "up": -1, "top": -(10**6), "bottom": 10**6}
_TINY = {"pause": "pause_all", "pause_all": "pause_all", "stop": "stop", "leave": "leave"}
_KEYS = (
    "down", "up", "top", "bottom", "page_down", "page_up", "next_panel", "previous_panel", "panel(1)", "panel(2)",
    "panel(3)", "panel(4)", "panel(5)", "enter", "describe", "back", "filter", "sort_previous", "sort_next", "pause",
    "resume", "rate_up", "rate_down", "rate_exact", "reconcile", "undo", "acknowledge", "acknowledge_all", "pause_all",
    "resume_all", "stop", "window", "leave",
)  # fmt: skip


class OverviewScreen(Screen[None]):
    """`leave` is called by q."""

    AUTO_FOCUS = "NumbersGrid"
    BINDINGS: ClassVar[list[BindingType]] = bindings(_KEYS)

    def __init__(self, session: Session, leave: Callable[[], None]) -> None:
        super().__init__()
        self.session = session
        self.acting = Acting(session, self._open)
        self._leave = leave
        s, a = session, self.acting
        self._does: dict[str, Callable[[], object]] = {
            "enter": self._enter, "describe": self._describe, "back": self._back, "filter": self._open_filter,
            "sort_previous": lambda: s.sort(-1), "sort_next": lambda: s.sort(1), "window": s.next_window,
            "pause": a.pause, "resume": a.resume, "rate_up": lambda: a.stage(1), "rate_down": lambda: a.stage(-1),
            "rate_exact": a.rate_exact, "reconcile": a.reconcile, "undo": s.undo,
            "acknowledge": a.acknowledge, "acknowledge_all": a.acknowledge_all,
            "pause_all": a.pause_all, "resume_all": a.resume_all, "stop": a.stop, "leave": leave,
            "next_panel": lambda: self._turn(1), "previous_panel": lambda: self._turn(-1),
            **{f"panel({i})": partial(self._focus, i - 1) for i in range(1, 6)},
        }  # fmt: skip

    def compose(self) -> ComposeResult:
        """Everything, once; the style sheet decides what a size shows."""
        with Vertical(id="full"):
            yield Header()
            yield AlertLine()
            yield Progress()
            with Horizontal(id="progress"):
                yield ProgressBar()
                yield Figures()
            yield SparkStrip()
            with Horizontal(id="charts"):
                yield AcceptedChart()
                yield TokenWaitChart()
                yield Campaigns()
            yield NumbersGrid()
            with Horizontal(id="panels"):
                yield Errors()
                yield Stuck()
                yield Flow()
            yield Events()
            field = Input(
                id="filter", max_length=40, placeholder="filter numbers by text, Enter keeps, Esc clears"
            )
            field.cursor_blink = False
            yield field
            yield NoticeLine()
            yield KeyLine()
        yield TinyLine(id="tiny")

    def _open(self, screen: Screen[None]) -> None:
        self.app.push_screen(screen)

    @property
    def tiny(self) -> bool:
        """Below 80x24."""
        return self.has_class("-narrow") or self.has_class("-short")

    def show(self, frame: Frame) -> None:
        """A tick."""
        for panel in self.query(LinePanel):
            with shield(self.report):  # each by itself: one that fails leaves the others alive
                panel.paint(frame)

    def action_key(self, name: str) -> None:
        """One key of the table."""
        with shield(self.report):
            self.session.hush()
            self.do(name)
        with shield(self.report):
            if self.is_attached:
                self.show(self.session.frame())

    def do(self, name: str) -> None:
        """A key's work. Raises what a fault raises."""
        if self.tiny:
            name = _TINY.get(name, "")
            if not name:
                self.session.notify("p P Q q ? only")
                return
        if name in _STEPS or name in ("page_down", "page_up"):
            self._move(name)
        else:
            self._does[name]()

    def report(self, text: str) -> None:
        """A fault of the screen."""
        self.session.fault = text

    def _move(self, name: str) -> None:
        focused = self.focused
        grid = self.query_one(NumbersGrid)
        step = _STEPS.get(name) or (grid.rows_visible - 1) * (1 if name == "page_down" else -1)
        if isinstance(focused, ListPanel):
            focused.scroll_lines(step)
        elif isinstance(focused, AlertLine):
            self.session.move_alert(step)
        else:
            self.session.move(step)

    def _turn(self, step: int) -> None:
        at = next((i for i, kind in enumerate(_PANELS) if isinstance(self.focused, kind)), 0)
        self._focus((at + step) % len(_PANELS))

    def _focus(self, index: int) -> None:
        self.query_one(_PANELS[index]).focus()

    def _enter(self) -> None:
        if not isinstance(self.focused, NumbersGrid) or not self.acting.apply_staged():
            self._describe()

    def _describe(self) -> None:
        if isinstance(self.focused, Errors):
            self.app.push_screen(CodesScreen(self.session))
        elif isinstance(self.focused, Stuck):
            self.app.push_screen(RowsScreen(self.session, RowsOf(unsettled=True)))
        elif isinstance(self.focused, AlertLine):
            self.app.push_screen(AlertsScreen(self.session))
        elif self.session.cursor is not None:
            self.app.push_screen(NumberScreen(self.session, self.session.cursor))

    def _back(self) -> None:
        if self.query_one("#filter", Input).has_class("-open"):
            self._close_filter(keep=False)
        elif not self.session.drop_staged():
            self.session.filter = ""
            self._focus(0)

    def _open_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.add_class("-open")
        field.value = self.session.filter
        field.focus()

    def _close_filter(self, *, keep: bool) -> None:
        if not keep:
            self.session.filter = ""
        self.query_one("#filter", Input).remove_class("-open")
        self._focus(0)

    def on_input_changed(self, event: Input.Changed) -> None:
        """The grid follows what is typed."""
        event.stop()
        with shield(self.report):
            if event.input.has_class("-open"):
                self.session.filter = event.value
                self.show(self.session.frame())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter keeps the filter."""
        event.stop()
        with shield(self.report):
            self._close_filter(keep=True)
            self.show(self.session.frame())
