"""The writer on a real database: nothing is lost, nothing is counted twice, whatever happens to a batch."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import asyncpg
import pytest

from engine.domain.errors import meaning
from engine.domain.outcome import Accepted, Ambiguous, Answer, NotSent, Refused, Withdrawn
from engine.observe.metrics import NodeFigures
from engine.postgres import claims
from engine.postgres.claims import Claimed, Permission
from engine.postgres.pool import Pool
from engine.postgres.send_log import Stamps
from engine.sending import writer as module
from engine.sending.work import Result, Work
from engine.sending.writer import Writer
from tests.sending.stage import campaign
from tests.support import builders
from tests.support.owned import assert_books, counted, owned, running, sending, states, tallies

WAIT = 20.0
"""Seconds until a wait in a test is called a failure."""


class Flaky:
    """A pool that fails so many times: before the batch, or after it was stored."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.before = self.after = 0
        self.fault: Exception = asyncpg.ConnectionDoesNotExistError("gone")

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Any]:
        if self.before:
            self.before -= 1
            raise self.fault
        async with self._pool.acquire() as db:
            yield db
        if self.after:
            self.after -= 1
            raise self.fault


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY", 0.0)


@pytest.fixture
async def mine(pool: Pool) -> Permission:
    return await owned(pool)


@pytest.fixture
async def sale(pool: Pool, mine: Permission) -> builders.MadeCampaign:
    return await running(pool)


def made(db: "Pool | Flaky", *, stamps: Sequence[Stamps] = (), written: list[int] | None = None) -> Writer:
    left = list(stamps)

    def cut() -> list[Stamps]:
        taken, left[:] = list(left), []
        return taken

    return Writer(
        cast(Pool, db),
        NodeFigures(),
        random.Random(1),
        cut,
        lambda batch: (written if written is not None else []).extend(r.work.row.id for r, _ in batch),
    )


def is_healthy(writer: Writer) -> bool:
    return writer.healthy


def result(permission: Permission, row: int, answer: Answer, *, tries: int = 0) -> Result:
    now = asyncio.get_running_loop().time()
    work = Work(
        Claimed(row, 1, tries, 0, "+5511988880001", {}), campaign(), permission, now - 3, now - 2, now - 1
    )
    return Result(work, answer, now)


def no(code: int) -> Refused:
    return Refused(code, meaning(code), raw='{"error": {}}')


def stamped(permission: Permission, at: int) -> Stamps:
    return Stamps(
        permission.number_id, permission.epoch, "c", 64, 80, at, datetime(2026, 3, 2, tzinfo=UTC), 100, (0, 1000)
    )  # fmt: skip


async def test_every_kind_of_answer_is_stored(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 6)
    answers: list[Answer] = [
        Accepted("w1"),
        Accepted("w2", assessing=True),
        no(131026),
        Ambiguous("read timeout"),
        NotSent("refused"),
        Withdrawn("paused"),
    ]
    written: list[int] = []
    writer = made(pool, written=written)
    for id_, answer in zip(ids, answers, strict=True):
        writer.put(result(mine, id_, answer))
    assert (writer.backlog, writer.idle) == (6, False)
    await writer.flush()
    assert (writer.backlog, writer.idle) == (0, True)
    assert await states(pool, ids) == ["sent", "assessing", "failed", "unknown", "pending", "pending"]
    assert sorted(written) == ids
    found = await pool.fetch(
        "SELECT outcome, wamid, code, raw, answered_at - sent_at AS took FROM try ORDER BY recipient_id"
    )
    assert [(r["outcome"], r["wamid"], r["code"], r["raw"]) for r in found] == [
        ("accepted", "w1", None, None),
        ("accepted", "w2", None, None),
        ("refused", None, 131026, '{"error": {}}'),
        ("unknown", None, None, "read timeout"),
        ("not_sent", None, None, "refused"),
        ("withdrawn", None, None, "paused"),
    ]
    assert all(0.99 < r["took"].total_seconds() < 1.01 for r in found)
    await assert_books(pool)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_batch_is_offered_until_the_database_takes_it_and_applied_once(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign, when: str
) -> None:
    ids = await sending(pool, mine, sale, 4)
    flaky = Flaky(pool)
    setattr(flaky, when, 5)
    writer = made(flaky, stamps=[stamped(mine, 1)])
    for id_ in ids:
        writer.put(result(mine, id_, no(131026)))
    await writer.flush()
    assert writer.healthy
    tally = await tallies(pool, sale)
    assert (tally.attempts, dict(tally.refusals), dict(tally.errors)) == (4, {131026: 4}, {131026: 4})
    assert await pool.fetchval("SELECT count(*) FROM try") == 4
    assert await pool.fetchval("SELECT count(*) FROM send_log") == 1
    await assert_books(pool)


async def test_while_the_database_is_away_the_writer_says_so(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [id_] = await sending(pool, mine, sale)
    flaky = Flaky(pool)
    flaky.before = 10**9
    writer = made(flaky)
    writer.put(result(mine, id_, Accepted("w")))
    task = asyncio.create_task(writer.flush())
    async with asyncio.timeout(WAIT):
        while is_healthy(writer):
            await asyncio.sleep(0)
        assert (writer.backlog, writer.idle) == (1, False)
        flaky.before = 0
        await task
    assert is_healthy(writer)
    assert await states(pool, [id_]) == ["sent"]


async def test_a_result_that_is_not_storable_does_not_hold_its_batch(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 3)
    writer = made(pool, stamps=[stamped(mine, 1)])
    for id_, wamid in zip(ids, ["w1", "a\0b", "\ud800"], strict=True):
        writer.put(result(mine, id_, Accepted(wamid)))
    await writer.flush()
    assert await states(pool, ids) == ["sent", "sent", "sent"]
    rows = await pool.fetch("SELECT wamid, raw FROM try ORDER BY recipient_id")
    assert [tuple(r.values()) for r in rows] == [
        ("w1", None),
        (None, "(not storable)"),
        (None, "(not storable)"),
    ]
    assert await pool.fetchval("SELECT count(*) FROM send_log") == 1
    await assert_books(pool)


async def test_stamps_that_are_not_storable_hold_nothing(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [id_] = await sending(pool, mine, sale)
    writer = made(pool, stamps=[replace(stamped(mine, 1), us=(2**40,))])
    writer.put(result(mine, id_, Accepted("w")))
    async with asyncio.timeout(WAIT):
        await writer.flush()
    assert await states(pool, [id_]) == ["sent"]
    assert writer.idle


async def test_two_results_of_one_row_are_two_statements_in_their_order(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [id_] = await sending(pool, mine, sale)
    writer = made(pool)
    writer.put(result(mine, id_, Ambiguous("read timeout")))
    writer.put(result(mine, id_, Accepted("w")))
    await writer.flush()
    assert await states(pool, [id_]) == ["sent"]
    assert [r["outcome"] for r in await pool.fetch("SELECT outcome FROM try ORDER BY outcome")] == [
        "accepted",
        "unknown",
    ]
    await assert_books(pool)


async def test_more_results_than_a_statement_takes_are_several(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST", 10)
    ids = await sending(pool, mine, sale, 35)
    writer = made(pool)
    for id_ in ids:
        writer.put(result(mine, id_, Accepted(f"w{id_}")))
    await writer.flush()
    assert await counted(pool, sale) == {"sent": 35}


async def test_stamps_are_stored_without_results_and_those_of_a_number_given_up_too(
    pool: Pool, mine: Permission
) -> None:
    writer = made(pool, stamps=[stamped(mine, 1)])
    writer.keep([stamped(mine, 2)])
    assert not writer.idle
    await writer.flush_all()
    assert await pool.fetchval("SELECT array_agg(base_mono_us ORDER BY base_mono_us) FROM send_log") == [1, 2]
    assert writer.idle


async def test_what_a_dead_loop_had_in_hand_is_stored_once_by_the_last_flush(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 2)
    flaky = Flaky(pool)
    flaky.after, flaky.fault = 1, RuntimeError("a fault of ours")
    written: list[int] = []
    writer = made(flaky, written=written, stamps=[stamped(mine, 1)])
    for id_ in ids:
        writer.put(result(mine, id_, no(131026)))
    with pytest.raises(RuntimeError):
        await writer.run()
    assert writer.backlog == 2
    async with asyncio.timeout(WAIT):
        await writer.flush_all()
    assert (await tallies(pool, sale)).attempts == 2
    assert sorted(written) == ids
    assert await pool.fetchval("SELECT count(*) FROM send_log") == 1
    await assert_books(pool)


async def test_the_loop_writes_by_itself_and_the_last_flush_waits_for_it(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 5)
    writer = made(pool)
    task = asyncio.create_task(writer.run())
    for id_ in ids:
        writer.put(result(mine, id_, Accepted(f"w{id_}")))
        await asyncio.sleep(0)
    async with asyncio.timeout(WAIT):
        await writer.flush_all()
    assert await counted(pool, sale) == {"sent": 5}
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_swept_row_s_late_answer_is_still_applied(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 1)
    await pool.execute("UPDATE recipient SET moved_at = now() - interval '1 hour'")
    assert await claims.sweep(pool, mine, [], 30) == (0, 1)
    writer = made(pool)
    writer.put(result(mine, ids[0], Accepted("w")))
    await writer.flush()
    assert await states(pool, ids) == ["sent"]
