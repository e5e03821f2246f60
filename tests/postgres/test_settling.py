"""Give back, rescue and sweep: no row stays in a hand that is not there."""

import pytest

from engine.domain.recipient import State
from engine.postgres import claims
from engine.postgres.claims import Permission
from engine.postgres.pool import Pool
from tests.support import builders
from tests.support.owned import (
    age,
    assert_books,
    claim,
    counted,
    head,
    owned,
    running,
    sending,
    states,
    taken_over,
)


@pytest.fixture
async def mine(pool: Pool) -> Permission:
    return await owned(pool)


@pytest.fixture
async def sale(pool: Pool, mine: Permission) -> builders.MadeCampaign:
    return await running(pool)


async def test_rows_given_back_are_pending_again_and_only_those(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [marked] = await sending(pool, mine, sale)
    ids = await builders.recipients(pool, sale, 3)
    await claim(pool, mine, sale, 2)
    await claims.give_back(pool, mine, [marked, *ids])
    assert await states(pool, [marked, *ids]) == ["sending", "pending", "pending", "pending"]
    await claims.give_back(pool, mine, [marked, *ids])
    assert await counted(pool, sale) == {"sending": 1, "pending": 3}
    await assert_books(pool)


async def test_an_old_owner_gives_nothing_back(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await builders.recipients(pool, sale, 1)
    await claim(pool, mine, sale)
    new = await taken_over(pool, mine)
    await claims.rescue(pool, new)
    await claim(pool, new, sale)
    await claims.give_back(pool, mine, ids)
    assert await states(pool, ids) == ["claimed"]


async def test_a_rescue_settles_what_earlier_owners_left_and_nothing_of_its_own(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    left = await sending(pool, mine, sale, 2)
    claimed = await builders.recipients(pool, sale, 2)
    await claim(pool, mine, sale)
    doubtful = await builders.recipients(
        pool, sale, 1, state=State.UNKNOWN, number_id=mine.number_id, epoch=mine.epoch
    )
    new = await taken_over(pool, mine)
    await builders.recipients(pool, sale, 1)
    own = [r.id for r in await claim(pool, new, sale)]
    assert await claims.rescue(pool, new) == (2, 2)
    assert await states(pool, left + claimed + doubtful + own) == [
        "unknown", "unknown", "pending", "pending", "unknown", "claimed",
    ]  # fmt: skip
    recorded = await pool.fetch("SELECT recipient_id, n, epoch, outcome FROM try ORDER BY 1")
    assert [tuple(r.values()) for r in recorded] == [(id_, 1, mine.epoch, "unknown") for id_ in left]
    assert await claims.rescue(pool, new) == (0, 0)
    await assert_books(pool)


async def test_a_rescue_goes_through_as_many_pages_as_there_are(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "RESCUE_PAGE", 10)
    await sending(pool, mine, sale, 25)
    await builders.recipients(pool, sale, 13)
    await claim(pool, mine, sale)
    assert await claims.rescue(pool, await taken_over(pool, mine)) == (13, 25)
    await assert_books(pool)


async def test_without_its_lease_nobody_rescues(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await sending(pool, mine, sale, 2)
    second = await taken_over(pool, mine)
    third = await taken_over(pool, second)
    assert await claims.rescue(pool, second) == (0, 0)
    assert await claims.rescue(pool, third) == (0, 2)


async def test_the_sweep_settles_what_is_old_and_in_nobody_s_hand(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    left = await sending(pool, mine, sale, 3)
    claimed = await builders.recipients(pool, sale, 3)
    await claim(pool, mine, sale)
    await age(pool, [left[0], left[1], claimed[0], claimed[1]], 29)
    await age(pool, [left[0], left[1]], 2)
    in_hand = [left[1], claimed[1]]
    assert await claims.sweep(pool, mine, in_hand, 30.0) == (1, 1)
    assert await states(pool, left + claimed) == [
        "unknown", "sending", "sending", "pending", "claimed", "claimed",
    ]  # fmt: skip
    assert await claims.sweep(pool, mine, in_hand, 30.0) == (0, 0)
    await assert_books(pool)


async def test_the_sweep_leaves_other_epochs_and_numbers_alone(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    left = await sending(pool, mine, sale, 2)
    await age(pool, left, 3600)
    other = await owned(pool, "2")
    assert await claims.sweep(pool, other, [], 30.0) == (0, 0)
    assert await claims.sweep(pool, await taken_over(pool, mine), [], 30.0) == (0, 0)


async def test_rows_come_back_behind_the_low_water_mark_s_front(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 2)
    rows, lane = await claims.claim(pool, mine, head(sale.lane_id), 2)
    await claims.give_back(pool, mine, [r.id for r in rows])
    again, _ = await claims.claim(pool, mine, lane, 2)
    assert [r.id for r in again] == [r.id for r in rows]
