"""Who works a number: one node at a time, on a real database, through starts, crashes, hand-overs and thefts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from structlog.testing import capture_logs

from engine.clients.whatsapp import WhatsApp
from engine.clock import boottime
from engine.observe.metrics import NodeFigures
from engine.postgres import claims, desired, leases
from engine.postgres.desired import Campaign, Number
from engine.postgres.leases import LeaseRow
from engine.postgres.nodes import Identity
from engine.postgres.pool import Pool
from engine.sending import ownership
from engine.sending.database_clock import DatabaseClock
from engine.sending.marker import Marker
from engine.sending.ownership import Node, Ownership
from engine.sending.pipeline import Pipeline
from engine.sending.shared import Shared
from tests.sending.stage import Stage
from tests.support import builders
from tests.support.owned import lease, running, states

WAIT = 60.0
"""Seconds until a wait in a test is called a failure."""

LEASE = 60.0
"""Seconds, on a clock that a test moves: a machine that stands still for a while loses none."""

STOLEN = "UPDATE lease SET token = gen_random_uuid(), epoch = epoch + 1, owner = gen_random_uuid()"


class Clock:
    """The nodes' own, ahead of the machine's by as much as a test says."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return boottime() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(ownership, "boottime", made)
    return made


class KeptStamps(Stage):
    """The writer's part that ownership knows."""

    def keep(self, stamps: Any, *_: Any) -> None:  # type: ignore[override]
        self.given_back += stamps


class OneNode:
    """A node's ownership at work, and the numbers that it follows."""

    def __init__(self, pool: Pool, numbers: dict[int, Number], name: str, seconds: float = LEASE) -> None:
        figures = NodeFigures()
        self.campaigns: list[Campaign] = []
        shared = Shared(
            db=pool,
            marker=Marker(pool, figures),
            writer=cast(Any, KeptStamps()),
            whatsapp=WhatsApp(httpx.MockTransport(lambda _: httpx.Response(500)), "https://graph.test"),
            figures=figures,
            clock=DatabaseClock(),
            access_token=lambda _: "none",
            campaigns=lambda _: self.campaigns,
            judge=lambda *_: None,
            probed=lambda *_: None,
            request_deadline=20.0,
        )
        self.numbers = numbers
        node = Node(Identity(uuid4(), name, "host", 1, None), seconds)
        self.told: list[str] = []
        self.ownership = Ownership(shared, node, lambda: self.numbers, pool, self.told.append)
        self._task = asyncio.create_task(self.ownership.run())

    def pipeline(self) -> Pipeline | None:
        for owned in self.ownership.owned.values():
            return owned.pipeline
        return None

    async def owns(self) -> Pipeline:
        await until(lambda: self.pipeline() is not None)
        pipeline = self.pipeline()
        assert pipeline is not None
        return pipeline

    def watches(self, row: LeaseRow) -> bool:
        """Whether it has seen somebody's lease as it stands."""
        seen = self.ownership._seen.get(row.number_id)
        return seen is not None and (seen.token, seen.renew_seq) == (row.token, row.renew_seq)

    async def die(self) -> None:
        """As kill -9 would: nothing is handed over."""
        await self._end_loop()
        if self.ownership.round is not None:
            self.ownership.round.cancel()
            await asyncio.wait([self.ownership.round])
        for owned in self.ownership.owned.values():
            owned.task.cancel()
            await asyncio.wait([owned.task])

    async def drain(self) -> None:
        await self._end_loop()
        await self.ownership.halt()
        await self.ownership.release()

    async def _end_loop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def node(pool: Pool, name: str = "one", seconds: float = LEASE) -> AsyncIterator[OneNode]:
    made = OneNode(pool, (await desired.read(pool)).numbers, name, seconds)
    try:
        yield made
    finally:
        await made.die()


async def test_a_free_number_is_taken_kept_and_released(pool: Pool, clock: Clock) -> None:
    number = await builders.number(pool)
    async with node(pool) as one:
        pipeline = await one.owns()
        first = (await leases.read(pool))[number]
        assert (first.token, first.epoch) == (pipeline.permission.token, pipeline.permission.epoch)
        for renewals in (1, 2):
            clock.ahead += LEASE / 3
            await until(lambda: one.ownership.rows.get(number, first).renew_seq >= renewals)  # noqa: B023
        assert one.pipeline() is pipeline
        assert pipeline.closed() is None
        await one.drain()
        assert (await leases.read(pool))[number].released


async def test_a_dead_owner_s_number_is_taken_after_a_whole_lease_and_waits_its_window_out(
    pool: Pool, clock: Clock
) -> None:
    number = await builders.number(pool)
    async with node(pool, "one") as one, node(pool, "two") as two:
        await until(lambda: bool(one.ownership.owned) or bool(two.ownership.owned))
        owner, other = (one, two) if one.ownership.owned else (two, one)
        old = await owner.owns()
        await owner.die()
        row = (await leases.read(pool))[number]
        await until(lambda: other.watches(row))
        assert other.pipeline() is None
        clock.ahead += LEASE
        with capture_logs() as logs:
            new = await other.owns()
        assert clock() >= old.lease_until  # the dead one would have stopped by itself before
        assert new.permission.epoch > old.permission.epoch
        assert [entry["after"] for entry in logs if entry["event"] == "number taken"] == ["crash"]
        await until(lambda: new.closed() is None)
        assert any("taken over from" in line and "without handing it over" in line for line in other.told)


async def test_a_released_number_is_taken_with_its_predecessor_s_window(pool: Pool) -> None:
    number = await builders.number(pool)
    old = await lease(pool, number)
    assert old is not None
    await leases.release(pool, number, old.token, [0] * 64)
    async with node(pool) as one:
        pipeline = await one.owns()
        assert pipeline.closed() is None  # no wait
        assert len(pipeline.recent_us()) in (0, 64)  # all of the window, unless it has passed by now
        assert pipeline.permission.epoch > old.epoch


async def test_a_number_that_somebody_holds_is_left_alone_while_it_is_renewed(
    pool: Pool, clock: Clock
) -> None:
    number = await builders.number(pool)
    held = await lease(pool, number)
    assert held is not None
    async with node(pool) as one:
        for _ in range(5):
            assert await leases.renew(pool, [held.token], 60) == {number}
            row = (await leases.read(pool))[number]
            await until(lambda: one.watches(row))  # noqa: B023
            assert one.pipeline() is None
            clock.ahead += LEASE / 2
        clock.ahead += LEASE  # nobody renews it any more
        taken = await one.owns()
        assert taken.permission.epoch > held.epoch


async def test_a_stolen_lease_ends_the_pipeline(pool: Pool, clock: Clock) -> None:
    await builders.number(pool)
    async with node(pool) as one:
        pipeline = await one.owns()
        await pool.execute(STOLEN)
        clock.ahead += LEASE / 3
        await until(lambda: one.pipeline() is not pipeline)
        assert pipeline.stopped() is not None


async def test_a_lease_of_its_own_that_ran_out_is_taken_back_without_waiting_for_it_to_stand_still(
    pool: Pool,
) -> None:
    await builders.number(pool)
    async with node(pool, seconds=10 * WAIT) as one:
        old = await one.owns()
        old.lease_until = 0.0  # as after an outage that was longer than the lease
        await until(lambda: one.pipeline() not in (None, old))
        new = await one.owns()
        assert new.permission.epoch > old.permission.epoch
        assert old.stopped() is not None


async def test_a_number_that_was_removed_is_given_up(pool: Pool) -> None:
    await builders.number(pool)
    async with node(pool) as one:
        pipeline = await one.owns()
        one.numbers = {}
        await until(lambda: one.pipeline() is None)
        assert pipeline.stopped() == "the node drains"


async def test_a_pipeline_that_dies_is_told_to_the_node(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def die(self: Pipeline) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Pipeline, "run", die)
    await builders.number(pool)
    async with node(pool) as one:
        async with asyncio.timeout(WAIT):
            await asyncio.wait([one.ownership.failure])
        with pytest.raises(RuntimeError, match="a fault of ours"):
            one.ownership.failure.result()


async def test_a_node_that_drains_while_it_takes_a_number_releases_it(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await builders.number(pool)
    committed, answered = asyncio.Event(), asyncio.Event()
    take = leases.take

    async def with_its_answer_under_way(*given: Any, **named: Any) -> int | None:
        epoch = await take(*given, **named)
        committed.set()
        await answered.wait()
        return epoch

    monkeypatch.setattr(leases, "take", with_its_answer_under_way)
    async with node(pool) as one:
        await committed.wait()
        draining = asyncio.create_task(one.drain())
        for _ in range(20):
            await asyncio.sleep(0)  # the drain is as far as it comes without the answer
        answered.set()
        await draining
        assert (await leases.read(pool))[number].released


async def test_rows_of_a_claim_that_was_cut_off_go_back_with_the_rest(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await builders.number(pool)
    sale = await running(pool)
    people = await builders.recipients(pool, sale, 3)
    committed = asyncio.Event()
    claim = claims.claim

    async def with_its_answer_under_way(*given: Any, **named: Any) -> object:
        claimed = await claim(*given, **named)
        committed.set()
        await asyncio.Event().wait()
        return claimed

    monkeypatch.setattr(claims, "claim", with_its_answer_under_way)
    async with node(pool) as one:
        one.campaigns += (await desired.read(pool)).campaigns.values()
        await committed.wait()
        assert await states(pool, people) == ["claimed"] * 3
        await one.drain()
        assert await states(pool, people) == ["pending"] * 3


async def test_a_lease_that_somebody_locks_does_not_cost_the_others(pool: Pool, clock: Clock) -> None:
    mine, locked = await builders.number(pool, "1"), await builders.number(pool, "2")
    old = await lease(pool, locked)
    assert old is not None
    await leases.release(pool, locked, old.token, [])
    async with pool.acquire() as stranger, node(pool) as one:
        async with stranger.transaction():
            await stranger.execute("SELECT FROM lease WHERE number_id = $1 FOR UPDATE", locked)
            await until(lambda: mine in one.ownership.owned and mine in one.ownership.rows)
            pipeline = one.ownership.owned[mine].pipeline
            before = (await leases.read(pool))[mine].renew_seq
            for renewals in (1, 2):
                clock.ahead += LEASE / 3
                await until(lambda: one.ownership.rows[mine].renew_seq >= before + renewals)  # noqa: B023
            assert set(one.ownership.owned) == {mine}
            assert one.ownership.owned[mine].pipeline is pipeline
        await until(lambda: set(one.ownership.owned) == {mine, locked})
