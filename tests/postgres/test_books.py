"""The books: folded deltas, balances of one moment, and the end of a campaign."""

import asyncio

import pytest

from engine.domain.recipient import State
from engine.postgres import books
from engine.postgres.pool import Pool
from tests.support import builders

MOVE_SOME = """
WITH k AS MATERIALIZED (
  SELECT id, lane_id FROM recipient WHERE next_attempt_at IS NOT NULL ORDER BY id LIMIT 7 FOR UPDATE SKIP LOCKED),
moved AS (UPDATE recipient SET state = 'x', next_attempt_at = NULL WHERE id = ANY(ARRAY(SELECT id FROM k))),
tallied AS (INSERT INTO tally_delta (lane_id, what, code, n) SELECT lane_id, 'R', 130429, count(*) FROM k GROUP BY 1)
INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'p', 'x', count(*) FROM k GROUP BY 1
"""

RECOUNT = "SELECT state, count(*) FROM recipient GROUP BY 1"


async def test_a_balance_is_the_same_before_and_after_folding(pool: Pool) -> None:
    made = await builders.campaign(pool)
    await builders.recipients(pool, made, 5)
    await builders.recipients(pool, made, 3, state=State.FAILED, code=131026)
    before = await books.balances(pool, made.campaign_id), await books.tallies(pool)
    assert await books.fold(pool) > 0
    assert await books.fold(pool) == 0
    after = await books.balances(pool, made.campaign_id), await books.tallies(pool)
    assert before == after
    assert before[0][made.campaign_id][State.PENDING] == 5
    assert before[1][made.campaign_id].errors == {131026: 3}
    assert before[1][made.campaign_id].tries == 3


async def test_balances_of_all_campaigns_are_kept_apart(pool: Pool) -> None:
    one, two = await builders.campaign(pool, "one"), await builders.campaign(pool, "two")
    await builders.recipients(pool, one, 2)
    await builders.recipients(pool, two, 9, state=State.READ)
    found = await books.balances(pool)
    assert found[one.campaign_id][State.PENDING] == 2
    assert found[two.campaign_id] == {**dict.fromkeys(State, 0), State.READ: 9}


async def test_books_stay_exact_while_rows_move_and_several_nodes_fold(pool: Pool) -> None:
    made = await builders.campaign(pool)
    await builders.recipients(pool, made, 400)
    done = asyncio.Event()
    totals = set()

    async def move() -> None:
        for _ in range(20):
            await pool.execute(MOVE_SOME)

    async def fold() -> None:
        while not done.is_set():
            await books.fold(pool, 3)

    async def watch() -> None:
        while not done.is_set():
            totals.add(sum((await books.balances(pool))[made.campaign_id].values()))

    beside = [asyncio.create_task(task()) for task in (fold, fold, watch)]
    await asyncio.gather(move(), move())
    done.set()
    await asyncio.gather(*beside)
    await books.fold(pool)
    assert totals == {400}
    counted = {State(row["state"].decode()): row["count"] for row in await pool.fetch(RECOUNT)}
    balance = (await books.balances(pool))[made.campaign_id]
    assert {state: n for state, n in balance.items() if n} == counted
    assert (await books.tallies(pool))[made.campaign_id].refusals == {130429: 280}


@pytest.mark.parametrize(
    "state", [State.PENDING, State.CLAIMED, State.SENDING, State.UNKNOWN, State.ASSESSING]
)
async def test_a_campaign_does_not_end_while_a_row_is_open(pool: Pool, state: State) -> None:
    number_id = await builders.number(pool)
    made = await builders.campaign(pool, state="running")
    await builders.recipients(pool, made, 10, state=State.DELIVERED)
    await builders.recipients(pool, made, 1, state=state, number_id=number_id)
    assert await books.complete(pool) == []


async def test_a_campaign_ends_when_nothing_is_open(pool: Pool) -> None:
    made = await builders.campaign(pool, state="running")
    await builders.recipients(pool, made, 10, state=State.DELIVERED)
    await builders.campaign(pool, "draft and empty")
    before = await pool.fetchval("SELECT version FROM control")
    assert await books.complete(pool) == ["reminder"]
    assert await books.complete(pool) == []
    row = await pool.fetchrow("SELECT state, finished_at FROM campaign WHERE name = 'reminder'")
    assert row is not None
    assert row["state"] == "finished"
    assert row["finished_at"] is not None
    assert await pool.fetchval("SELECT version FROM control") == before + 1


async def test_a_row_that_joins_while_the_campaign_is_locked_keeps_it_open(pool: Pool) -> None:
    made = await builders.campaign(pool, state="running")
    await builders.recipients(pool, made, 1, state=State.SENT)
    async with pool.acquire() as joining:
        transaction = joining.transaction()
        await transaction.start()
        await joining.execute(
            "UPDATE campaign SET planned = planned WHERE campaign_id = $1", made.campaign_id
        )
        ending = asyncio.create_task(books.complete(pool))
        async with asyncio.timeout(60):
            while not await pool.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            ):
                await asyncio.sleep(0)
        await builders.recipients(joining, made, 1)
        await transaction.commit()
        assert await ending == []


async def test_a_cancelled_campaign_stays_cancelled_and_gets_its_end(pool: Pool) -> None:
    made = await builders.campaign(pool, state="cancelled")
    await builders.recipients(pool, made, 4, state=State.CANCELLED)
    assert await books.complete(pool) == ["reminder"]
    assert await pool.fetchval("SELECT state FROM campaign WHERE finished_at IS NOT NULL") == "cancelled"


async def test_a_book_never_loses_a_delta_when_the_fold_is_rolled_back(pool: Pool) -> None:
    made = await builders.campaign(pool)
    await builders.recipients(pool, made, 5)
    async with pool.acquire() as db:
        transaction = db.transaction()
        await transaction.start()
        assert await books.fold(db) == 1
        await transaction.rollback()
    assert (await books.balances(pool))[made.campaign_id][State.PENDING] == 5
    assert await books.fold(pool) == 1
