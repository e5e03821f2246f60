"""One number's whole pipeline in virtual time: the engine's own parts, with rows, marks and answers made up here.

Only the wire (a mock transport) and the two statements of the database (claim, mark) are stand-ins; what they would
really do is proved in tests/postgres.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import httpx
import pytest
from pydantic import SecretStr

from engine.clients.whatsapp import WhatsApp
from engine.domain.outcome import Answer, Next, after
from engine.domain.windows import Send, Windows
from engine.observe.metrics import NodeFigures
from engine.postgres import ceilings, claims
from engine.postgres.claims import Ask, Claimed, LaneMark, Permission
from engine.postgres.desired import Campaign, Number
from engine.sending.database_clock import DatabaseClock
from engine.sending.marker import Marker
from engine.sending.pipeline import Pipeline
from engine.sending.shared import Shared
from engine.sending.work import Result

PERMISSION = Permission(1, UUID(int=1), 7)
FOR_EVER = float("inf")
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def number(rate: float, limit: float = 1000.0) -> Number:
    return Number(
        1, "106540352242922", "+5511988880001", "WABA1", "env:T", limit, rate, None, False, None, None, None, None
    )  # fmt: skip


def campaign(campaign_id: int = 1, body: tuple[str, ...] = ()) -> Campaign:
    return Campaign(
        campaign_id=campaign_id,
        name=f"c{campaign_id}",
        random_id="abc",
        state="running",
        reason=None,
        template="reminder",
        language="pt_BR",
        body=body,
        priority=0,
        deadline=None,
        max_attempts=8,
        try_budget=None,
        planned=10,
        started_at=NOW,
        finished_at=None,
        category="utility",
        held_by=None,
        numbers=(1,),
        lanes=(campaign_id,),
        countries=("",),
    )


def accepted(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"messages": [{"id": "wamid.x"}]})


def refused(code: int, headers: dict[str, str] | None = None) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(400, json={"error": {"code": code}}, headers=headers)


@dataclass
class Stage:
    """What the test sets, and what it sees afterwards. Times are of the virtual loop."""

    rows: float = FOR_EVER
    """How many more rows may be claimed."""
    mark_seconds: Callable[[], float] = lambda: 0.002
    latency: Callable[[], float] = lambda: 0.25
    answer: Callable[[httpx.Request], httpx.Response] = accepted
    verdict: Callable[[Ask], str] = lambda _: "ok"
    campaigns: list[Campaign] = field(default_factory=lambda: [campaign()])
    token: SecretStr | str = field(default_factory=lambda: SecretStr("T"))
    healthy: bool = True
    params: dict[str, str] = field(default_factory=dict)
    inbound: float = 0.0
    """Messages that people wrote in the last second."""

    arrivals: list[float] = field(default_factory=list)
    results: list[tuple[Result, Next]] = field(default_factory=list)
    given_back: list[int] = field(default_factory=list)
    swept_beside: list[list[int]] = field(default_factory=list)
    claimed: int = 0
    most_open: int = 0
    judged: list[Answer] = field(default_factory=list)
    probes: list[tuple[int, bool]] = field(default_factory=list)
    ceilings: list[float | None] = field(default_factory=list)
    _open: int = 0

    # The wire

    async def handle(self, request: httpx.Request) -> httpx.Response:
        self.arrivals.append(asyncio.get_running_loop().time())
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        try:
            await asyncio.sleep(self.latency())
            return self.answer(request)
        finally:
            self._open -= 1

    # The writer

    def put(self, result: Result) -> Next:
        decided = after(result.answer, attempts=result.work.row.attempts, max_attempts=8, now=NOW, chance=0.5)
        self.results.append((result, decided))
        return decided

    # The database

    async def claim(
        self,
        _db: object,
        permission: Permission,
        lanes: Sequence[LaneMark],
        room: int,
        *,
        marketing: bool = False,
    ) -> tuple[list[Claimed], list[LaneMark]]:
        assert permission == PERMISSION
        await asyncio.sleep(0.003)
        count = int(min(room, self.rows))
        self.rows -= count
        first = self.claimed + 1
        self.claimed += count
        ids = range(first, first + count)
        return [Claimed(i, lanes[0].lane_id, 0, 0, "+5511988880001", self.params) for i in ids], []

    async def mark(self, _db: object, asks: Sequence[Ask]) -> dict[tuple[int, int], str]:
        await asyncio.sleep(self.mark_seconds())
        return {(ask.id, ask.permission.epoch): self.verdict(ask) for ask in asks}

    async def give_back(self, _db: object, _permission: Permission, ids: Sequence[int]) -> None:
        await asyncio.sleep(0.001)
        self.given_back += ids

    async def sweep(
        self,
        _db: object,
        _permission: Permission,
        in_hand: Sequence[int],
        _older_than: float,
        *,
        claimed_for: float,
    ) -> tuple[int, int]:
        self.swept_beside.append(list(in_hand))
        return 0, 0

    async def keep(self, _db: object, _permission: Permission, level: float | None) -> None:
        self.ceilings.append(level)

    @property
    def outcomes(self) -> list[str]:
        return [decided.outcome for _, decided in self.results]


@asynccontextmanager
async def at_work(
    stage: Stage, rate: float, monkeypatch: pytest.MonkeyPatch, *, limit: float = 1000.0
) -> AsyncIterator[Pipeline]:
    """The pipeline of a number with this rate, running; stopped and drained at the end."""
    for name in ("claim", "mark", "give_back", "sweep"):
        monkeypatch.setattr(claims, name, getattr(stage, name))
    monkeypatch.setattr(ceilings, "keep", stage.keep)
    nothing = cast(Any, None)
    figures = NodeFigures()
    marker = Marker(nothing, figures)
    shared = Shared(
        db=nothing,
        marker=marker,
        writer=cast(Any, stage),
        whatsapp=WhatsApp(httpx.MockTransport(stage.handle), "https://graph.test/v25.0"),
        figures=figures,
        clock=DatabaseClock(),
        access_token=lambda _: stage.token,
        campaigns=lambda _: stage.campaigns,
        judge=lambda work, answer: stage.judged.append(answer),
        probed=lambda breaker, mended: stage.probes.append((breaker, mended)),
        request_deadline=20.0,
        inbound=lambda _: stage.inbound,
    )
    pipeline = Pipeline(shared, number(rate, limit), PERMISSION, FOR_EVER)
    async with asyncio.TaskGroup() as standing:
        marking = standing.create_task(marker.run())
        working = standing.create_task(pipeline.run())
        yield pipeline
        pipeline.stopping()
        working.cancel()
        await asyncio.wait([working])
        await pipeline.stop()
        await pipeline.drained()
        marking.cancel()


async def seconds(n: float) -> None:
    """Let virtual time go on."""
    await asyncio.sleep(n)


def set_rate(pipeline: Pipeline, rate: float) -> None:
    pipeline.follow(replace(pipeline.number, rate=rate))


def stamps(pipeline: Pipeline) -> list[tuple[float, float]]:
    """(moment, rate in force) of every send, as the send log gets them."""
    return [
        ((batch.base_mono_us + us) / 1e6, batch.rate) for batch in pipeline.cut_stamps() for us in batch.us
    ]


def judged(sends: Sequence[tuple[float, float]], limit: float = 1000.0) -> Windows:
    """The audit's own judgement on the stamps."""
    windows = Windows()
    for at, rate in sends:
        us = round(at * 1e6)
        windows.add(Send(1, us, us, 0, True, rate, limit))
    return windows


def most_within(times: Sequence[float], span: float) -> int:
    """The most events in any half-open window (t - span, t], found by looking at each event's own."""
    most = oldest = 0
    for newest, at in enumerate(times):
        while times[oldest] <= at - span:
            oldest += 1
        most = max(most, newest - oldest + 1)
    return most


def hiccups(every: int, long: float, short: float = 0.002) -> Callable[[], float]:
    """Durations: every so many a long one."""
    turn = itertools.count(1)
    return lambda: long if next(turn) % every == 0 else short
