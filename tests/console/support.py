"""The wire of the console's seam, and snapshots as an engine would publish them."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

from console.app import ConsoleApp, Mode
from console.guard import KeyGuard
from engine.domain.act import Act
from engine.domain.inspection import Answer, Query
from engine.domain.snapshot import (
    ActView,
    AlertView,
    CampaignView,
    ErrorView,
    EventView,
    HoldView,
    NumberView,
    Percentiles,
    ReconcilePreview,
    Snapshot,
    StuckBand,
)

NIGHT = datetime(2026, 3, 14, 3, 14, 9, tzinfo=UTC)
STATES = (
    "pending", "claimed", "sending", "unknown", "assessing", "sent",
    "delivered", "read", "failed", "expired", "suppressed", "cancelled",
)  # fmt: skip


@dataclass
class FakeLink:
    """Holds what the engine would publish; keeps what a screen submits."""

    current: Snapshot | None = None
    submitted: list[Act] = field(default_factory=list)
    end: str | None = None
    asked: list[Query] = field(default_factory=list)
    answers: dict[type[Any], Answer] = field(default_factory=dict)
    """What a question of a kind is answered with; without one it stays open."""
    broken: Exception | None = None
    """Raised by the next snapshot, once."""

    def snapshot(self) -> Snapshot | None:
        if self.broken is not None:
            broken, self.broken = self.broken, None
            raise broken
        return self.current

    def submit(self, act: Act) -> str:
        self.submitted.append(act)
        return f"a{len(self.submitted)}"

    def ask(self, query: Query) -> "Future[Answer]":
        self.asked.append(query)
        future: Future[Answer] = Future()
        if type(query) in self.answers:
            future.set_result(self.answers[type(query)])
        return future

    def ended(self) -> str | None:
        return self.end

    def answer(
        self, act_id: str, stage: str, *, text: str = "ACT", detail: str = "", undo: bool = False
    ) -> None:
        """The engine speaks of an act."""
        assert self.current is not None
        view = ActView(act_id, text, stage, 18.0, detail, undo)
        others = tuple(a for a in self.current.acts if a.id != act_id)
        self.current = replace(self.current, acts=(view, *others))

    def change(self, number_id: str, **fields: object) -> None:
        """One number changes."""
        assert self.current is not None
        numbers = tuple(replace(n, **fields) if n.id == number_id else n for n in self.current.numbers)  # type: ignore[arg-type]
        self.current = replace(self.current, numbers=numbers)


def wave(count: int, middle: float, swing: float) -> tuple[float, ...]:
    """A series that moves."""
    return tuple(
        max(0.0, middle + swing * math.sin(i / 11) + swing * 0.4 * math.sin(i / 3)) for i in range(count)
    )


def a_number(tail: str, account: str = "vivo", **fields: object) -> NumberView:
    """An active number, 80/s of 80, unless told otherwise."""
    base = NumberView(
        id=f"1065403522{tail}", display=f"+551198888{tail}", account=account, owner="eng1", epoch=3, state="active",
        reason=None, until=None, rate=80.0, limit=100.0, ceiling=80.0, accepted_last_second=80, tries_last_second=80,
        sent_per_second=79.6, tries_per_second=79.8, token_wait=Percentiles(0.09, 0.212, 0.4, 4790),
        latency=Percentiles(0.21, 0.34, 0.6, 4790), bound_by="bucket", in_flight=24, pending=488_101, stuck=0,
        unknown=0, error_share=0.003, top_error=131026, last_accepted_s=0.1, campaigns=("natl-07",),
        accepted_series=wave(60, 78.0, 2.0),
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


HELD = a_number(
    "0042", state="held", reason="131048 spam rate limit", sent_per_second=0.0, tries_per_second=0.0,
    accepted_last_second=0, tries_last_second=0, token_wait=None, error_share=0.381, top_error=131048,
    pending=214_003, stuck=12, unknown=2, last_accepted_s=9.0, bound_by="hold", accepted_series=wave(60, 0.0, 0.0),
)  # fmt: skip
SLOWED = a_number(
    "0017", account="claro", state="slowed", reason="130429 rate limit", ceiling=42.0, sent_per_second=41.2,
    tries_per_second=58.0, token_wait=Percentiles(0.8, 1.9, 2.4, 2470), error_share=0.042, top_error=130429,
    pending=611_240, stuck=29, unknown=1, bound_by="provider", accepted_series=wave(60, 42.0, 9.0),
)  # fmt: skip


def nine_numbers() -> tuple[NumberView, ...]:
    """Two bad ones, one paused, six well."""
    well = [a_number(f"00{i}", account=("tim", "oi", "vivo")[i % 3]) for i in range(11, 16)]
    paused = a_number(
        "0020", state="paused", reason="night shift", sent_per_second=0.0, tries_per_second=0.0, token_wait=None,
        bound_by="hold", last_accepted_s=4200.0, error_share=None, top_error=None,
    )  # fmt: skip
    return (
        *well,
        HELD,
        paused,
        SLOWED,
        a_number("0099", account="oi", rate=0.2, ceiling=0.2, sent_per_second=0.2, tries_per_second=0.2),
    )


def a_campaign(name: str = "natl-07", **fields: object) -> CampaignView:
    """Running, 30 % sent, books that balance."""
    counts = dict.fromkeys(STATES, 0) | {
        "pending": 2_795_627, "claimed": 80, "sending": 214, "unknown": 3, "sent": 301_118, "delivered": 702_000,
        "read": 200_581, "failed": 377,
    }  # fmt: skip
    base = CampaignView(
        name=name, state="running", reason=None, planned=4_000_000, counts=counts, accepted=1_204_118,
        tries=1_206_088, attempts=1_204_495, possible_duplicates=0, rate=400.0, eta_s=8790.0,
        started_at=NIGHT - timedelta(hours=3), finished_at=None, deadline=None,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def normal(**fields: object) -> Snapshot:
    """All well: nine numbers, nothing stuck, no alert."""
    numbers = tuple(
        replace(n, state="active", stuck=0, error_share=0.003, top_error=131026, reason=None, bound_by="bucket",
                sent_per_second=79.6, tries_per_second=79.6, ceiling=n.rate, last_accepted_s=0.1, unknown=0,
                token_wait=Percentiles(0.09, 0.212, 0.4, 4790), accepted_series=wave(60, 78.0, 2.0))
        for n in nine_numbers()
        if n.rate == 80
    )  # fmt: skip
    base = Snapshot(
        at=NIGHT, seq=41, node="eng1", host="eng1", pid=4711, uptime_s=11_520.0, author="ana@bastion",
        read_only=False, draining=False, numbers=numbers, campaigns=(a_campaign(),),
        errors=(ErrorView(131026, "undeliverable", "recipient", 377, (38, 37, 38, 37, 39, 38, 37, 38, 37, 38)),),
        stuck=(), unknown=0, last_reconcile="02:58 118→0", alerts=(),
        events=(
            EventView(NIGHT - timedelta(seconds=9), "auto", "WINDOW …0017 full again at 80/s"),
            EventView(NIGHT - timedelta(seconds=169), "ana", "RATE …0017 100→80 #a41"),
            EventView(NIGHT - timedelta(minutes=31), "auto", "START natl-07"),
        ),
        accepted_series=wave(3600, 618.0, 20.0), tries_series=wave(3600, 619.0, 20.0), rate_series=(640.0,) * 3600,
        token_wait_series=wave(3600, 0.2, 0.05), token_wait_median_series=wave(3600, 0.1, 0.02),
        token_wait=Percentiles(0.09, 0.212, 0.4, 38_000), claim_time=Percentiles(0.004, 0.011, 0.03, 900),
        commit_time=Percentiles(0.006, 0.014, 0.05, 1800), latency=Percentiles(0.21, 0.34, 0.6, 38_000),
        sent_to_delivered=Percentiles(1.4, 4.2, 11.0, 30_000), webhook_lag_s=0.4, inbox_backlog=12, in_flight=214,
        loop_lag_s=0.002, memory_mb=143.0,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def bad_night(**fields: object) -> Snapshot:
    """One number held, one throttled, rows stuck, two alerts."""
    base = normal(
        numbers=nine_numbers(),
        errors=(
            ErrorView(130429, "rate limit", "number throughput", 1561, (9, 8, 20, 60, 130, 190, 260, 280, 300, 304)),
            ErrorView(131056, "pair limit", "pair", 402, (30, 31, 40, 41, 42, 44, 43, 44, 43, 44)),
            ErrorView(131048, "spam rate limit", "number stop", 81, (0, 0, 0, 0, 0, 0, 0, 0, 0, 81)),
            ErrorView(131026, "undeliverable", "recipient", 377, (38, 37, 38, 37, 39, 38, 37, 38, 37, 38)),
        ),
        stuck=(
            StuckBand("2-5m", 31, (("10654035220017", 29), ("10654035220042", 2)), 290.0),
            StuckBand("5-30m", 10, (("10654035220042", 10),), 662.0),
        ),
        unknown=3,
        alerts=(
            AlertView("stuck", "warning", "41 rows", "sending >120s", "wait, or R once their window has passed",
                      NIGHT - timedelta(minutes=4), True, False),
            AlertView("held:10654035220042", "critical", "10654035220042", "HELD 131048 spam rate limit",
                      "stop this number's template, check its quality in the manager", NIGHT - timedelta(seconds=9),
                      True, False),
        ),
        events=(
            EventView(NIGHT, "auto", "HOLD …0042 (131048)"),
            EventView(NIGHT - timedelta(seconds=169), "ana", "RATE …0017 100→80 #a41"),
            *(EventView(NIGHT - timedelta(minutes=i), "auto", f"CEILING …0017 {80 - i}") for i in range(4, 12)),
        ),
        acts=(ActView("a41", "RATE …0017 100→80", "in effect", 18.0, "", True),),
        accepted_series=(*wave(3300, 618.0, 20.0), *wave(300, 318.0, 60.0)),
        rate_series=(*(640.0,) * 3500, *(400.0,) * 100),
        token_wait_series=(*wave(3300, 0.2, 0.05), *wave(300, 1.6, 0.4)),
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def huge() -> Snapshot:
    """300 numbers, the bad ones at the end of the list."""
    numbers = [a_number(f"{i:04d}") for i in range(1000, 1298)]
    return normal(numbers=(*numbers, SLOWED, HELD))


HOSTILE = (
    "[/foo] [bold red]x[/]",
    "\x1b[2J\x1b[31mred",
    "two\nlines\r\tand a tab",
    "\u202eevil\u202c \u200frtl\u2066x\u2069",
    "日本語のとても長い名前です",
    "שלום עולם",
    "a\u0300\u0301\u0302\u0303\u0304z",
    "\ud800 half",
    "\x9b31m\x00\x7f",
    "👩\u200d👩\u200d👧 family\ufe0f",
)


def hostile() -> Snapshot:
    """Every text from outside is an attack."""
    numbers = tuple(
        a_number(
            f"{i:04d}",
            account=text,
            reason=text,
            state="held",
            bound_by=text,
            owner=text,
            away=True,
            campaigns=(text,),
        )
        for i, text in enumerate(HOSTILE)
    )
    return normal(
        numbers=numbers,
        campaigns=tuple(a_campaign(text, reason=text, state="held") for text in HOSTILE),
        errors=tuple(ErrorView(i, text, text, 5, (1, 2, 3)) for i, text in enumerate(HOSTILE)),
        stuck=tuple(StuckBand(text, 5, ((text, 3),), 300.0) for text in HOSTILE),
        alerts=tuple(AlertView(text, "critical", text, text, text, NIGHT, True, False) for text in HOSTILE),
        events=tuple(EventView(NIGHT, text, text) for text in HOSTILE),
        acts=tuple(ActView(text, text, text, None, text, False) for text in HOSTILE),
        holds=tuple(HoldView(text, text, 131048, text, NIGHT) for text in HOSTILE),
        author=HOSTILE[0], node=HOSTILE[1], host=HOSTILE[2], database=HOSTILE[3], last_reconcile=HOSTILE[4],
    )  # fmt: skip


def preview(**fields: object) -> ReconcilePreview:
    """What a dry run would answer."""
    base = ReconcilePreview(
        to_sent=100, to_pending=2, stay_unknown=1, waiting=14, stuck_to_unknown=41, note=""
    )
    return replace(base, **fields)  # type: ignore[arg-type]


@dataclass
class Clock:
    """The time of day and the monotonic clock of a console under test."""

    at: datetime = NIGHT + timedelta(seconds=0.4)
    seconds: float = 1000.0

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.seconds

    def pass_(self, seconds: float) -> None:
        """Time goes by."""
        self.at += timedelta(seconds=seconds)
        self.seconds += seconds


@dataclass
class Running:
    """A console on a headless screen."""

    app: ConsoleApp
    pilot: Pilot[str]
    link: FakeLink
    clock: Clock

    async def press(self, *keys: str) -> None:
        """One key after the other, each done before the next."""
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()

    async def tick(self) -> None:
        """One refresh."""
        self.app.tick()
        await self.pilot.pause()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a state, not for a time."""
        async with asyncio.timeout(60):
            while not condition():
                await self.pilot.pause()

    def text(self, screen: Screen[Any] | None = None) -> str:
        """What a screen shows (the top one), line by line."""
        strips = (screen or self.app.screen)._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    @property
    def on_overview(self) -> bool:
        """No dialog and no page is open."""
        return self.app.screen is self.app.overview

    def row(self, index: int) -> str:
        """One line of the overview."""
        return self.text(self.app.overview).split("\n")[index]


@asynccontextmanager
async def running(
    snapshot: Snapshot | None,
    size: tuple[int, int] = (80, 24),
    *,
    guard: KeyGuard | None = None,
    mode: Mode = "run",
) -> AsyncIterator[Running]:
    """A console over a fake link; its key guard lets everything through unless one is given."""
    link, clock = FakeLink(snapshot), Clock()
    app = console(link, clock, guard=guard, mode=mode)
    async with app.run_test(size=size) as pilot:
        run = Running(app, pilot, link, clock)
        await run.until(lambda: app.screen is app.overview and app.overview.is_attached)
        await run.tick()
        yield run


def console(link: FakeLink, clock: Clock, *, guard: KeyGuard | None = None, mode: Mode = "run") -> ConsoleApp:
    """A console whose clocks belong to the test."""
    free = KeyGuard(settle=0, per_second=0)
    return ConsoleApp(link, mode=mode, guard=guard or free, now=clock.now, monotonic=clock.monotonic)
