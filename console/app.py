"""The console application: modes, keys and the tick. What keys do is in `acting`, what is shown in `frame`."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal, cast

from rich.console import RenderableType
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.markup import escape
from textual.screen import Screen
from textual.widgets import Input

from console.fault import shield
from console.format import Glyphs, clean, glyphs_for
from console.frame import ENDED, Frame
from console.guard import KeyGuard, Kind, Verdict
from console.keys import ACTIONS, LEAVING, bindings, by_name, kind_of, nothing_here
from console.link import EngineLink
from console.picture import Picture
from console.screens.alerts import AlertsScreen
from console.screens.campaigns import CampaignsScreen
from console.screens.dialog import Dialog
from console.screens.events import EventsScreen
from console.screens.help import HelpScreen
from console.screens.holds import HoldsScreen
from console.screens.journal import JournalScreen
from console.screens.nodes import NodesScreen
from console.screens.overview import OverviewScreen
from console.screens.page import PageScreen
from console.screens.trends import TrendsScreen
from console.session import Session
from console.terminal import SteadyDriver
from console.theme import THEME
from engine import clock
from engine.domain.act import PauseCampaign, ResumeCampaign, StartCampaign

Mode = Literal["run", "attach", "demo"]
_EVERYWHERE = (
    "help",
    "events",
    "log",
    "campaigns",
    "alerts",
    "holds",
    "journal",
    "trends",
    "nodes",
    "export",
    "freeze",
)
_BACKLOG_SLOW, _BACKLOG_STOP = 2, 8
"""Frames that the terminal has not taken: above the first paint once a second, above the second not at all.
Textual's queue holds 30 and then blocks the loop."""
BURST = "keys came faster than a hand types (a paste?): ignored"


class ConsoleApp(App[str], inherit_bindings=False):
    """Returns "headless" when the engine goes on without the screen, else "quit"."""

    CSS_PATH = "console.tcss"
    TITLE = "tidegate"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012  as Textual declares it
        (0, "-narrow"),
        (80, "-w80"),
        (120, "-w120"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-h24"), (40, "-h40")]  # noqa: RUF012  as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(_EVERYWHERE),
        Binding("ctrl+p,colon", "command_palette", "commands", show=False),
        Binding("ctrl+c", "key('interrupt')", "what q and Q do", show=False, priority=True),
    ]

    def __init__(
        self,
        link: EngineLink,
        *,
        refresh_hz: float | None = None,
        mode: Mode = "run",
        mouse: bool = False,
        guard: KeyGuard | None = None,
        now: Callable[[], datetime] = clock.now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.glyphs: Glyphs = glyphs_for(os.environ)
        self.mode: Mode = mode
        self.mouse = mouse
        self.guard = guard or KeyGuard()
        self.export_dir = Path()
        self.session = Session(link, now, monotonic, self.glyphs)
        self._refresh_hz = refresh_hz
        self._painted_at = float("-inf")
        self._waiting_key: events.Key | None = None
        self._picture = Picture()
        self._alarmed: set[tuple[str, float]] = set()
        super().__init__(driver_class=SteadyDriver)
        self.animation_level = "none"

    def on_mount(self) -> None:
        """The overview, then ticks."""
        self.register_theme(THEME)
        self.theme = THEME.name
        self.overview = OverviewScreen(self.session, self.leave)
        self.push_screen(self.overview)
        self.call_after_refresh(self.tick)
        self.set_interval(1 / (self._refresh_hz or 2), self._on_interval)

    # -- ticks ------------------------------------------------------------------------------------

    def _on_interval(self) -> None:
        """2 Hz on a large terminal, 1 Hz on a small one, unless the rate was given."""
        large = self.size.width >= 120 and self.size.height >= 40
        pause = 1.0 if self._backlog() > _BACKLOG_SLOW or not (large or self._refresh_hz) else 0.0
        if self._backlog() <= _BACKLOG_STOP and time.monotonic() - self._painted_at >= pause * 0.9:
            self.tick()

    def tick(self) -> None:
        """Paint the newest frame on what is in sight. A fault is shown and the next tick tries again."""
        with shield(self.report_fault):
            self._painted_at = time.monotonic()
            frame = self.session.frame()
            self._ring(frame)
            with self.batch_update():
                for screen in self._in_sight():
                    with shield(self.report_fault):
                        screen.show(frame)
        with shield(self.report_fault):
            ended = self.session.link.ended()
            if self.session.stopping and ended is not None:
                self.exit("quit")

    def _in_sight(self) -> list[OverviewScreen | PageScreen | Dialog]:
        """The top screen; below a dialog also the one that shines through."""
        seen: list[OverviewScreen | PageScreen | Dialog] = []
        for screen in reversed(self.screen_stack):
            if isinstance(screen, OverviewScreen | PageScreen | Dialog):
                seen.append(screen)
            if not screen.is_modal:
                break
        return seen

    def _ring(self, frame: Frame) -> None:
        """The bell, once for each new critical alert."""
        alerts = frame.snapshot.alerts if frame.snapshot else ()
        now = {
            (a.key, a.since.timestamp()) for a in alerts if a.severity == "critical" and not a.acknowledged
        }
        if now - self._alarmed:
            self.bell()
        self._alarmed = now

    def _backlog(self) -> int:
        """Frames that wait for the terminal; 0 where the driver has no queue."""
        queue = getattr(getattr(self._driver, "_writer_thread", None), "_queue", None)
        return int(queue.qsize()) if queue is not None else 0

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Textual's own, with only what differs from the picture on the terminal."""
        if isinstance(renderable, LayoutUpdate | ChopsUpdate):
            renderable = cast(RenderableType, self._picture.change(screen, renderable))
        super()._display(screen, renderable)

    def report_fault(self, text: str) -> None:
        """One line in the app; the engine is not touched."""
        self.session.fault = text

    # -- keys -------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Every key passes the guard before any screen sees it; a paste goes to inputs only."""
        pressed = isinstance(event, events.Key) and not event.is_forwarded
        if isinstance(event, events.Key) and pressed:
            if not self._admit(event):
                return
        elif (
            isinstance(event, events.Paste) and not event.is_forwarded and not isinstance(self.focused, Input)
        ):
            self._refuse("pasted text never acts: ignored")
            return
        await super().on_event(event)
        if isinstance(event, events.Key) and pressed:
            self._explain(event.key)

    def _admit(self, event: events.Key) -> bool:
        waiting, self._waiting_key = self._waiting_key, None
        verdict = self.guard.press(event.key, self._kind(event), event.time)
        if waiting is not None and waiting.key != event.key:
            self._refuse(BURST)
            return verdict is Verdict.PASS
        if verdict is Verdict.WAIT:
            self._waiting_key = event
            self.set_timer(self.guard.settle, self._release)
        elif verdict is Verdict.BURST:
            self._refuse(BURST)
        elif waiting is not None:
            self._waiting_key = waiting
        return verdict is Verdict.PASS

    def _kind(self, event: events.Key) -> Kind:
        if isinstance(self.focused, Input) and event.key not in ("enter", "escape", "ctrl+c", "ctrl+p"):
            return Kind.TEXT
        return kind_of(event.key)

    async def _release(self) -> None:
        event, self._waiting_key = self._waiting_key, None
        if event is not None:
            await super().on_event(event)
            self._explain(event.key)

    def _explain(self, key: str) -> None:
        """A key that does nothing here says so, and where it does."""
        if isinstance(self.focused, Input) or not isinstance(self.screen, OverviewScreen | PageScreen):
            return
        known = self.active_bindings.get(key)
        if known is None or not known.binding.action.startswith(("key(", "command_palette")):
            self.session.notify(nothing_here(key))
            self.tick()

    def _refuse(self, why: str) -> None:
        self.session.notify(why, stays=True)
        self.tick()

    def action_key(self, name: str) -> None:
        """Keys that work on every screen."""
        with shield(self.report_fault):
            match name:
                case "help":
                    self._open(HelpScreen(self.session, self.mode))
                case "events" | "log":
                    self._open(EventsScreen(self.session, with_acts=name == "events"))
                case "campaigns":
                    self._open(CampaignsScreen(self.session))
                case "alerts":
                    self._open(AlertsScreen(self.session))
                case "holds":
                    self._open(HoldsScreen(self.session))
                case "journal":
                    self._open(JournalScreen(self.session))
                case "trends":
                    self._open(TrendsScreen(self.session))
                case "nodes":
                    self._open(NodesScreen(self.session))
                case "export":
                    self.export()
                case "freeze":
                    self.session.freeze()
                case "interrupt":
                    self.session.notify(LEAVING[self.mode].replace("\n", " "))
        self.tick()

    def _open(self, page: PageScreen) -> None:
        if isinstance(self.screen, PageScreen):
            self.switch_screen(page)
        else:
            self.push_screen(page)

    def leave(self) -> None:
        """q: in `run` the engine goes on without a screen."""
        alive = self.session.link.ended() is None
        self.exit("headless" if self.mode == "run" and alive else "quit")

    def terminal_lost(self) -> None:
        """The terminal is gone (in the driver's thread): leave as q does, so that the engine goes on."""
        self.call_later(self.leave)

    def export(self) -> None:
        """S: the screen as it is, into the data directory; never over another file."""
        path = self.export_dir / f"tidegate-{clock.now():%Y%m%d-%H%M%S}.svg"
        try:
            with path.open("x", encoding="utf-8") as out:
                out.write(self.export_screenshot())
        except OSError as error:
            self.session.notify(f"not exported: {path}: {error.strerror}")
        else:
            self.session.notify(f"exported to {path}")

    # -- palette ----------------------------------------------------------------------------------

    def get_system_commands(self, _screen: Screen[object]) -> Iterable[SystemCommand]:
        """The same table of keys, and what can be done with each campaign."""
        for action in ACTIONS:
            if action.palette:
                yield SystemCommand(
                    f"{action.help} ({action.shown})", action.group, self._command(action.name)
                )
        live = self.session.live()
        acting = self.overview.acting
        for c in live.campaigns if live else ():
            name = escape(clean(c.name, self.glyphs))
            if c.state in ("draft", "scheduled"):
                yield SystemCommand(
                    f"start campaign {name}", c.state, lambda n=c.name: acting.ask(StartCampaign(n))
                )
            if c.state == "running":
                yield SystemCommand(
                    f"pause campaign {name}", c.state, lambda n=c.name: acting.ask(PauseCampaign(n))
                )
            if c.state in ("paused", "held"):
                yield SystemCommand(
                    f"resume campaign {name}", c.state, lambda n=c.name: acting.ask(ResumeCampaign(n))
                )
            if c.state not in ENDED:
                yield SystemCommand(
                    f"cancel campaign {name}", c.state, lambda n=c.name: acting.cancel_campaign(n)
                )
            if c.state != "cancelled" and c.counts.get("failed"):
                yield SystemCommand(
                    f"retry failed rows of {name}", c.state, lambda n=c.name: acting.retry_failed(n)
                )

    def _command(self, name: str) -> Callable[[], None]:
        if by_name(name).name in _EVERYWHERE:
            return lambda: self.action_key(name)
        return lambda: self.overview.action_key(name)


def check_terminal(environ: Mapping[str, str] | None = None, *, is_tty: bool | None = None) -> str | None:
    """None when a screen can be shown here, else a sentence that says why not and what to do instead."""
    term = (os.environ if environ is None else environ).get("TERM", "")
    tty = sys.stdout.isatty() and sys.stdin.isatty() if is_tty is None else is_tty
    if not tty:
        return "This is no terminal (input or output is redirected): run with --no-ui."
    if term in ("", "dumb", "unknown"):
        return f"TERM is {term or 'not set'}, and such a terminal cannot show a screen: set TERM, or run with --no-ui."
    return None
