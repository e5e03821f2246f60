"""The inbox: stored all or none, taken once, trimmed only when nobody needs it."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from engine.postgres import webhooks
from engine.postgres.pool import Pool
from tests.support.explain import explain

AGED = """
WITH stored AS (
  INSERT INTO inbox (slot, body) SELECT (floor(extract(epoch FROM now()) / 86400)::int + $1 + 9) % 9, 'old'
  RETURNING id, slot, received_at)
INSERT INTO inbox_work SELECT id, slot, received_at FROM stored WHERE $2 RETURNING slot
"""


async def aged(pool: Pool, days: int, *, work: bool = False) -> None:
    """A body in the slot of the day that is `days` from today."""
    await pool.execute(AGED, days, work)


async def take(pool: Pool, most: int, most_bytes: int = 1 << 20) -> list[bytes | None]:
    async with pool.acquire() as connection, connection.transaction():
        return [stored.body for stored in await webhooks.take(connection, most, most_bytes)]


async def kept(pool: Pool) -> int:
    count: int = await pool.fetchval("SELECT count(*) FROM inbox")
    return count


async def test_bodies_are_taken_oldest_first_and_once(pool: Pool) -> None:
    await webhooks.store(pool, [b"one", b"\x00\xff", b""])
    await webhooks.store(pool, [b"four"])
    assert await take(pool, 3) == [b"one", b"\x00\xff", b""]
    assert await take(pool, 3) == [b"four"]
    assert await take(pool, 3) == []
    assert await kept(pool) == 4


async def test_large_bodies_are_taken_in_smaller_batches_and_at_least_one_at_a_time(pool: Pool) -> None:
    await webhooks.store(pool, [b"x" * 900, b"y" * 90, b"z" * 90])
    assert [len(body or b"") for body in await take(pool, 10, 100)] == [900]
    assert [len(body or b"") for body in await take(pool, 10, 180)] == [90, 90]


async def test_bodies_in_hand_are_not_given_to_another(pool: Pool) -> None:
    await webhooks.store(pool, [b"one", b"two"])
    async with pool.acquire() as connection, connection.transaction():
        assert len(await webhooks.take(connection, 1, 1)) == 1
        assert await take(pool, 10) == [b"two"]


async def test_what_a_failed_batch_had_in_hand_is_taken_again(pool: Pool) -> None:
    await webhooks.store(pool, [b"one"])
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        assert len(await webhooks.take(connection, 1, 1)) == 1
        await transaction.rollback()
    assert await take(pool, 1) == [b"one"]


async def test_a_dropped_body_is_no_work_any_more_and_stays_in_the_inbox(pool: Pool) -> None:
    await webhooks.store(pool, [b"one"])
    await webhooks.drop(pool, await pool.fetchval("SELECT id FROM inbox_work"))
    assert await take(pool, 1) == []
    assert await kept(pool) == 1


async def test_the_backlog_is_counted_with_the_age_of_the_oldest(pool: Pool) -> None:
    assert await webhooks.backlog(pool) == webhooks.Backlog(0, 0.0)
    await webhooks.store(pool, [b"one", b"two"])
    await pool.execute("UPDATE inbox_work SET received_at = received_at - interval '1 hour' WHERE id = 1")
    behind = await webhooks.backlog(pool)
    assert behind.bodies == 2
    assert 3600 <= behind.oldest < 3700


async def test_the_latest_sight_of_a_number_is_kept(pool: Pool) -> None:
    now = datetime.now(UTC)
    await webhooks.seen(pool, {"b": now, "a": now})
    await webhooks.seen(pool, {"a": now - timedelta(hours=1)})
    await webhooks.seen(pool, {"b": now + timedelta(seconds=5)})
    await webhooks.seen(pool, {})
    rows = await pool.fetch("SELECT number, at FROM webhook_seen ORDER BY number")
    assert [tuple(row) for row in rows] == [("a", now), ("b", now + timedelta(seconds=5))]


async def test_trimming_empties_what_is_older_than_asked_and_nothing_else(pool: Pool) -> None:
    for day in range(-7, 2):  # nine slots: all of them
        await aged(pool, day)
    assert len(await webhooks.trim(pool)) == 1
    assert await kept(pool) == 8
    assert len(await webhooks.trim(pool, keep_days=1)) == 5
    # yesterday's, today's and tomorrow's (eight days old)
    assert await kept(pool) == 3
    assert await webhooks.trim(pool, keep_days=1) == []


async def test_a_slot_with_work_left_is_not_trimmed(pool: Pool) -> None:
    await aged(pool, -7, work=True)
    assert await webhooks.trim(pool) == []
    assert await take(pool, 1) == [b"old"]
    assert len(await webhooks.trim(pool)) == 1


async def test_a_slot_that_somebody_reads_is_left_for_the_next_time(pool: Pool) -> None:
    await aged(pool, -7, work=True)
    async with pool.acquire() as connection, connection.transaction():
        await webhooks.take(connection, 1, 1)
        assert await webhooks.trim(pool) == []
    assert len(await webhooks.trim(pool)) == 1


@pytest.mark.parametrize("days", [0, 7, -1])
async def test_more_or_fewer_days_than_there_are_slots_are_refused(pool: Pool, days: int) -> None:
    with pytest.raises(ValueError, match="1 to 6 days"):
        await webhooks.trim(pool, keep_days=days)


async def test_two_takers_share_the_work_without_waiting(pool: Pool) -> None:
    await webhooks.store(pool, [b"%d" % i for i in range(200)])
    async with asyncio.timeout(60):
        parts = await asyncio.gather(*(take(pool, 60) for _ in range(5)))
    assert sorted(int(body or b"-1") for part in parts for body in part) == list(range(200))


@pytest.mark.parametrize("analyzed", [False, True], ids=["no statistics", "analyzed"])
@pytest.mark.parametrize("generic", [False, True], ids=["custom plan", "generic plan"])
async def test_taking_touches_its_own_bodies_among_200_000(pool: Pool, analyzed: bool, generic: bool) -> None:
    await pool.execute(
        "INSERT INTO inbox (slot, body) SELECT i % 9, convert_to(repeat('x', 100), 'UTF8')"
        " FROM generate_series(1, 200000) i"
    )
    await pool.execute("INSERT INTO inbox_work SELECT id, slot, received_at FROM inbox")
    if analyzed:
        await pool.execute("ANALYZE")
    async with pool.acquire() as connection:
        plan = await explain(connection, webhooks.TAKE, 100, 1 << 20, generic=generic)
        count = await explain(connection, webhooks.BACKLOG, 1000, generic=generic)
    assert not {table for table in plan.scanned_whole if table.startswith("inbox")}
    assert (
        sum(plan.rows(f"inbox_{slot}") for slot in range(9)) == 200
    )  # each once for its size, once for itself
    assert plan.rows("inbox_work") <= 300
    assert plan.buffers < 40 * 100
    assert count.rows("inbox_work") <= 1001
