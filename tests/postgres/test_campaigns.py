"""Statements on campaigns that must not read a whole audience for a page of it."""

import pytest

from engine.domain.recipient import State
from engine.postgres import books, campaigns, numbers
from engine.postgres.pool import Pool
from tests.support import builders
from tests.support.explain import explain


@pytest.mark.parametrize("generic", [False, True])
async def test_a_page_of_a_cancel_reads_a_page(pool: Pool, generic: bool) -> None:
    number_id = await builders.number(pool)
    made = await builders.campaign(pool)
    await builders.recipients(pool, made, 20_000)
    await builders.recipients(pool, made, 20_000, state=State.READ, number_id=number_id)
    await builders.recipients(pool, made, 30, state=State.CLAIMED, number_id=number_id)
    await pool.execute("ANALYZE")
    async with pool.acquire() as db:
        pending = await explain(db, campaigns.CANCEL_PENDING, made.lane_id, 100, generic=generic)
        claimed = await explain(
            db, campaigns.CANCEL_CLAIMED, number_id, 0, [made.lane_id], 100, generic=generic
        )
        left = await explain(db, campaigns.CANCELLED_OPEN, generic=generic)
    for plan in (pending, claimed, left):
        assert "recipient" not in plan.scanned_whole
        assert plan.rows("recipient") <= 500


@pytest.mark.parametrize("generic", [False, True])
async def test_figures_of_a_campaign_never_read_its_rows(pool: Pool, generic: bool) -> None:
    made = await builders.campaign(pool)
    await builders.recipients(pool, made, 2_000)
    await pool.execute("ANALYZE")
    async with pool.acquire() as db:
        plans = [
            await explain(db, books.BALANCE, made.campaign_id, generic=generic),
            await explain(db, books.TALLIES, None, generic=generic),
            await explain(db, books.OPEN_ROWS, made.campaign_id, generic=generic),
            await explain(db, campaigns.VIEW, "reminder", generic=generic),
            await explain(db, numbers.VIEW, None, generic=generic),
            await explain(db, books.FOLD, 1000, generic=generic),
        ]
    assert [plan.rows("recipient") for plan in plans] == [0] * len(plans)
