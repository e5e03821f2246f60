"""Hours of refusals and changing grants, in virtual time: the whole pipeline of a number over a backlog of rows."""

from __future__ import annotations

import asyncio
import heapq
import json
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import httpx
import pytest

from engine.domain.errors import describe
from engine.domain.health import Health, budget_spent
from engine.domain.outcome import Accepted, Next, Refused, after
from engine.domain.recipient import State
from engine.postgres.claims import Ask, Claimed, LaneMark, Permission
from engine.sending.work import Result
from tests.sending.stage import NOW, Stage, accepted, at_work, campaign, refused, seconds
from tests.support import virtual_loop

HOUR = 3600.0
OLD, URGENT = 1, 2


@dataclass
class Row:
    """What a database would know of a row. `story`: (moment, outcome, code) of every try."""

    id: int
    lane: int
    due: float
    tries: int = 0
    attempts: int = 0
    state: State = State.PENDING
    story: list[tuple[float, str, int | None]] = field(default_factory=list)


@dataclass
class Backlog(Stage):
    """A stage whose rows come back when their answer says so, and whose run is judged as a node judges it."""

    table: dict[int, Row] = field(default_factory=dict)
    pending: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    """By lane a heap of (due, id)."""
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    health: Health = field(default_factory=Health)
    held: str | None = None

    def add(self, lane: int, people: int, due: float) -> list[Row]:
        new = [Row(len(self.table) + nth, lane, due) for nth in range(1, people + 1)]
        self.table |= {row.id: row for row in new}
        for row in new:
            self.wait(row)
        return new

    def wait(self, row: Row) -> None:
        """Pending, until it is due."""
        row.state = State.PENDING
        heapq.heappush(self.pending.setdefault(row.lane, []), (row.due, row.id))

    async def claim(
        self,
        _db: object,
        permission: Permission,
        lanes: Sequence[LaneMark],
        room: int,
        *,
        marketing: bool = False,
    ) -> tuple[list[Claimed], list[LaneMark]]:
        del permission, marketing
        await asyncio.sleep(0.003)
        now, taken = asyncio.get_running_loop().time(), list[Row]()
        for waiting in (self.pending[mark.lane_id] for mark in lanes if mark.lane_id in self.pending):
            while waiting and waiting[0][0] <= now and len(taken) < room:
                taken.append(self.table[heapq.heappop(waiting)[1]])
        for row in taken:
            row.state = State.CLAIMED
        return [Claimed(r.id, r.lane, r.tries, r.attempts, f"+55119{r.id:08d}", {}) for r in taken], []

    async def mark(self, db: object, asks: Sequence[Ask]) -> dict[tuple[int, int], str]:
        for ask in asks:
            row = self.table[ask.id]
            row.tries, row.state = row.tries + 1, State.SENDING
        return await super().mark(db, asks)

    async def give_back(self, _db: object, _permission: Permission, ids: Sequence[int]) -> None:
        for id_ in ids:
            self.wait(self.table[id_])

    def put(self, result: Result) -> Next:
        row, now = self.table[result.work.row.id], asyncio.get_running_loop().time()
        decided = after(
            result.answer, attempts=row.attempts, max_attempts=8, now=NOW, chance=self.chance.random()
        )
        row.state, row.attempts = decided.state, row.attempts + decided.spends_attempt
        row.due = now + ((decided.at or NOW) - NOW) / timedelta(seconds=1)
        if decided.state is State.PENDING:
            self.wait(row)
        row.story.append((now, decided.outcome, decided.code))
        self._judge(result, now)
        return decided

    def _judge(self, result: Result, now: float) -> None:
        if isinstance(result.answer, Accepted):
            self.health.good()
        elif isinstance(result.answer, Refused):
            reason = self.health.refused(now, result.answer.code, result.answer.meaning)
            if reason is not None:
                self.held = reason
                self.campaigns = []

    def states(self, lane: int = OLD) -> Counter[State]:
        return Counter(row.state for row in self.table.values() if row.lane == lane)

    def requests(self, since: float, until: float) -> list[str]:
        """Outcomes of the tries that were answered in that time."""
        return [
            o
            for row in self.table.values()
            for at, o, _ in row.story
            if since <= at < until and o != "withdrawn"
        ]


@dataclass
class Grant:
    """A provider that takes so many messages in any second, and refuses the rest with `code`."""

    limit: float
    code: int = 130429
    taken: deque[float] = field(default_factory=deque)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        now = asyncio.get_running_loop().time()
        while self.taken and self.taken[0] <= now - 0.985:
            self.taken.popleft()
        if len(self.taken) >= self.limit:
            return refused(self.code)(request)
        self.taken.append(now)
        return accepted(request)


def start() -> float:
    return asyncio.get_running_loop().time()


def test_hours_of_throughput_refusals_cost_bounded_tries_and_the_run_recovers_unaided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        grant = Grant(0)
        stage = Backlog(answer=grant)
        old = stage.add(OLD, 1500, start())
        began = start()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(HOUR)
            stage.campaigns = [*stage.campaigns, replace(campaign(URGENT), priority=5)]
            urgent = stage.add(URGENT, 60, start())
            await seconds(HOUR)

            assert set(stage.requests(began, start())) == {"refused"}, "nothing is called success"
            tries = sum(row.tries for row in stage.table.values())
            assert tries <= 2 * HOUR / 2.5, "a probe every few seconds is all that is left"
            assert budget_spent(tries, len(stage.table), None) is None
            assert stage.held is None, "throughput refusals only slow a run"
            assert all(len(row.story) == row.tries for row in stage.table.values()), "a try without a trace"
            assert {row.attempts for row in stage.table.values()} == {0}
            assert max(row.tries for row in old) - min(row.tries for row in old) <= 20, "all take their turn"
            assert sum(row.tries for row in urgent) > 100, "old work starves the urgent"

            back, grant.limit = start(), 80
            await seconds(150)
            assert pipeline.provider.ceiling.level is None
            assert stage.states() + stage.states(URGENT) == {State.SENT: 1560}, "the backlog drains"
            last_urgent = max(row.story[-1][0] for row in urgent)
            before = sum(row.story[-1][0] < last_urgent for row in old)
            assert before < len(old) / 4, "the urgent went first when the grant came back"
            assert last_urgent - back < 60

    virtual_loop.run(scenario())


def test_refusals_that_are_not_throughput_hold_the_run_which_drains_once_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        stage = Backlog(answer=refused(131000))
        rows = stage.add(OLD, 400, start())
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(5 * 60)
            assert stage.held is not None
            assert describe(131000).title in stage.held
            tries = sum(row.tries for row in rows)
            assert 20 < tries < 150, "a run that goes wrong burns through its rows"
            await seconds(6 * HOUR)
            assert sum(row.tries for row in rows) == tries, "a held run tries nothing"
            assert stage.states()[State.FAILED] == 0
            assert stage.states()[State.SENT] == 0

            stage.answer, stage.health, stage.campaigns = accepted, Health(), [campaign(OLD)]
            pipeline.nudge()
            await seconds(60)
            assert stage.states() == {State.SENT: 400}
            assert max(row.attempts for row in rows) <= 8

    virtual_loop.run(scenario())


def test_a_grant_that_falls_and_returns_is_used_and_costs_no_row_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        grant = Grant(80)
        stage = Backlog(answer=grant)
        rows = stage.add(OLD, 12_000, start())
        async with at_work(stage, 80, monkeypatch):
            await seconds(5)
            cut, grant.limit = start(), 25
            await seconds(180)
            back, grant.limit = start(), 80
            told = Counter(stage.requests(cut, back))
            assert told["accepted"] >= 0.9 * 25 * (back - cut), told
            assert told["refused"] < 0.03 * told.total(), told
            await seconds(60)
            assert stage.requests(start() - 1.0, start()).count("accepted") >= 76, "full rate within a minute"
        assert {row.state for row in rows if row.tries} <= {State.SENT, State.PENDING}
        assert all(row.attempts == (row.state is State.SENT) for row in rows), "a throttle spent an attempt"

    virtual_loop.run(scenario())


def test_a_storm_of_pair_limits_leaves_the_other_people_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[int] = Counter()

    def answer(request: httpx.Request) -> httpx.Response:
        person = int(json.loads(request.content)["to"][-8:])
        asked[person] += 1
        return refused(131056)(request) if person <= 60 and asked[person] <= 2 else accepted(request)

    async def scenario() -> None:
        stage = Backlog(answer=answer)
        rows = stage.add(OLD, 560, start())
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(9)
            others = Counter(row.state for row in rows[60:])
            assert others == {State.SENT: 500}, "people who got too much slowed everybody down"
            assert pipeline.rate == 80
            await seconds(30)
            assert stage.states() == {State.SENT: 560}
            assert {row.attempts for row in rows[:60]} == {3}
            waits = [row.story[2][0] - row.story[1][0] for row in rows[:60]]
            assert min(waits) >= 4.0, "the second wait for one person is 4 s at least"

    virtual_loop.run(scenario())


@pytest.mark.parametrize(("code", "attempts"), [(131000, 2), (131000, 4), (131016, 6)])
def test_rows_that_were_refused_together_return_spread_out(code: int, attempts: int) -> None:
    chance = random.Random(3)
    waits = [_wait(code, attempts, chance.random) for _ in range(5000)]
    by_second = Counter(int(wait) for wait in waits)
    assert max(by_second.values()) <= 2 * len(waits) / (max(by_second) + 1)


def _wait(code: int, attempts: int, chance: Callable[[], float]) -> float:
    answer = Refused(code, describe(code))
    decided = after(answer, attempts=attempts, max_attempts=20, now=NOW, chance=chance())
    assert decided.at is not None
    return (decided.at - NOW).total_seconds()
