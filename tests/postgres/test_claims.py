"""Claims on a real database: who gets which rows, in which order, and with exact books."""

import asyncio
from uuid import uuid4

import pytest

from engine.domain.recipient import State
from engine.postgres import claims, leases
from engine.postgres.claims import Permission
from engine.postgres.pool import Pool
from tests.support import builders
from tests.support.owned import (
    OUT_OF_LEASE,
    assert_books,
    claim,
    counted,
    head,
    owned,
    row,
    running,
    taken_over,
)


@pytest.fixture
async def mine(pool: Pool) -> Permission:
    return await owned(pool)


@pytest.fixture
async def sale(pool: Pool, mine: Permission) -> builders.MadeCampaign:
    return await running(pool)


async def test_a_claim_reserves_ready_rows_in_order_of_time(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await builders.recipients(pool, sale, 5)
    await pool.execute(
        "UPDATE recipient SET next_attempt_at = now() - interval '1 hour' WHERE id = $1", ids[3]
    )
    await pool.execute(
        "UPDATE recipient SET next_attempt_at = now() + interval '1 hour' WHERE id = $1", ids[0]
    )
    rows = await claim(pool, mine, sale, 3)
    assert [r.id for r in rows] == [ids[3], ids[1], ids[2]]
    assert rows[0].phone.startswith("+55119")
    assert rows[0].params == {"name": "Ana"}
    assert (rows[0].tries, rows[0].attempts, rows[0].lane_id) == (0, 0, sale.lane_id)
    found = await row(pool, ids[3])
    assert (found.state, found.in_flight, found.number_id, found.epoch, found.next_attempt_at) == (
        State.CLAIMED, mine.number_id, mine.number_id, mine.epoch, None,
    )  # fmt: skip
    assert await counted(pool, sale) == {"claimed": 3, "pending": 2}
    await assert_books(pool)


async def test_lanes_are_served_in_the_order_given(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    brazil, chile = [await builders.lane(pool, sale.campaign_id, country) for country in ("BR", "CL")]
    in_chile = await builders.recipients(pool, sale, 4, lane_id=chile)
    in_brazil = await builders.recipients(pool, sale, 4, lane_id=brazil)
    rows, _ = await claims.claim(pool, mine, head(brazil, sale.lane_id, chile), 6)
    assert {r.id for r in rows} == set(in_brazil) | set(in_chile[:2])
    await assert_books(pool)


async def test_a_claim_goes_on_behind_the_low_water_mark(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await builders.recipients(pool, sale, 6)
    lane, seen = head(sale.lane_id), []
    for _ in range(3):
        rows, lane = await claims.claim(pool, mine, lane, 2)
        seen += [r.id for r in rows]
    assert seen == ids
    assert await claims.claim(pool, mine, lane, 2) == ([], [])


async def test_a_row_behind_the_mark_comes_with_a_full_rescan(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await builders.recipients(pool, sale, 2)
    _, lane = await claims.claim(pool, mine, head(sale.lane_id), 2)
    await pool.execute(
        "UPDATE recipient SET state = 'p', in_flight = NULL, next_attempt_at = now() - interval '1 day' WHERE id = $1",
        ids[0],
    )
    assert (await claims.claim(pool, mine, lane, 2))[0] == []
    assert [r.id for r in (await claims.claim(pool, mine, head(sale.lane_id), 2))[0]] == [ids[0]]


async def test_a_stale_lease_claims_nothing(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 3)
    stranger = Permission(mine.number_id, uuid4(), mine.epoch)
    assert await claim(pool, stranger, sale) == []
    await taken_over(pool, mine)
    assert await claim(pool, mine, sale) == []
    assert await counted(pool, sale) == {"pending": 3}


@pytest.mark.parametrize("how", ["expired", "released"])
async def test_a_lease_that_ended_claims_nothing(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign, how: str
) -> None:
    await builders.recipients(pool, sale, 3)
    if how == "expired":
        await pool.execute(OUT_OF_LEASE, mine.number_id)
    else:
        await leases.release(pool, mine.number_id, mine.token, [])
    assert await claim(pool, mine, sale) == []


async def test_two_owners_never_get_the_same_row(pool: Pool, mine: Permission) -> None:
    other = await owned(pool, "2")
    made = await running(pool)
    ids = await builders.recipients(pool, made, 400)

    async def drain(permission: Permission) -> list[int]:
        mine_: list[int] = []
        while rows := await claim(pool, permission, made, 7):
            mine_ += [r.id for r in rows]
        return mine_

    one, two = await asyncio.gather(drain(mine), drain(other))
    assert sorted(one + two) == ids
    assert one
    assert two
    await assert_books(pool)


async def test_a_row_that_somebody_works_on_is_passed_over(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await builders.recipients(pool, sale, 3)
    async with pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM recipient WHERE id = $1 FOR UPDATE", ids[0])
        rows = await claim(pool, mine, sale, 2)
    assert [r.id for r in rows] == ids[1:]


async def test_suppressed_people_are_set_aside_and_everyone_else_is_claimed(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await builders.recipients(pool, sale, 4)
    for id_, scope in ((ids[0], "all"), (ids[1], "marketing")):
        await pool.execute(
            "INSERT INTO suppression (phone, scope, source)"
            " SELECT phone, $2, 'person' FROM recipient_data WHERE id = $1", id_, scope,
        )  # fmt: skip
    rows, _ = await claims.claim(pool, mine, head(sale.lane_id), 2)
    assert [r.id for r in rows] == [ids[1]]
    rows, _ = await claims.claim(pool, mine, head(sale.lane_id), 9, marketing=True)
    assert [r.id for r in rows] == ids[2:]
    assert await counted(pool, sale) == {"claimed": 3, "suppressed": 1}
    await assert_books(pool)
