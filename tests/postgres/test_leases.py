"""Leases on a real database: who takes, who keeps, and what a successor learns."""

import asyncio
from uuid import UUID, uuid4

import pytest

from engine.postgres import leases
from engine.postgres.claims import Permission
from engine.postgres.leases import LeaseRow
from engine.postgres.pool import Pool
from tests.support import builders
from tests.support.owned import OUT_OF_LEASE, lease, owned, taken_over

LEFT = "SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 FROM lease WHERE number_id = $1"
RESTORED = "UPDATE lease SET epoch = $2 WHERE number_id = $1"


@pytest.fixture
async def mine(pool: Pool) -> Permission:
    return await owned(pool)


async def stands(pool: Pool, number_id: int) -> LeaseRow:
    return (await leases.read(pool))[number_id]


async def test_a_free_number_is_taken(pool: Pool) -> None:
    number = await builders.number(pool)
    assert await leases.read(pool) == {}
    token, owner = uuid4(), uuid4()
    epoch = await leases.take(
        pool, number, owner=owner, node="one", token=token, seconds=600, advertise="http://a", instead_of=None
    )
    found = await stands(pool, number)
    assert (found.owner, found.node, found.token, found.epoch) == (owner, "one", token, epoch)
    assert (found.renew_seq, found.released, found.recent_us) == (0, False, ())
    assert 500 < await pool.fetchval(LEFT, number) <= 600


async def test_a_number_that_somebody_has_is_not_free(pool: Pool, mine: Permission) -> None:
    assert await lease(pool, mine.number_id) is None
    assert (await stands(pool, mine.number_id)).token == mine.token


async def test_of_many_candidates_one_takes_a_free_number(pool: Pool) -> None:
    number = await builders.number(pool)
    found = await asyncio.gather(*(lease(pool, number) for _ in range(5)))
    [won] = [permission for permission in found if permission is not None]
    assert (await stands(pool, number)).token == won.token


async def test_of_many_candidates_one_takes_over(pool: Pool, mine: Permission) -> None:
    row = await stands(pool, mine.number_id)
    found = await asyncio.gather(*(lease(pool, mine.number_id, instead_of=row) for _ in range(5)))
    [won] = [permission for permission in found if permission is not None]
    assert won.epoch > mine.epoch


async def test_a_row_that_moved_since_it_was_watched_is_not_taken(pool: Pool, mine: Permission) -> None:
    row = await stands(pool, mine.number_id)
    assert await leases.renew(pool, [mine.token], 60) == {mine.number_id}
    assert await lease(pool, mine.number_id, instead_of=row) is None


async def test_the_epoch_grows_at_every_take_over_and_follows_the_clock(pool: Pool, mine: Permission) -> None:
    second = await taken_over(pool, mine)
    third = await taken_over(pool, second)
    assert mine.epoch < second.epoch < third.epoch
    await pool.execute(RESTORED, mine.number_id, 5)  # from a backup
    assert (await taken_over(pool, third)).epoch >= third.epoch
    await pool.execute(RESTORED, mine.number_id, 2**60)  # from a clock that ran ahead
    assert (await taken_over(pool, third)).epoch == 2**60 + 1


async def test_a_renewal_prolongs_and_moves_the_row(pool: Pool, mine: Permission) -> None:
    for n in (1, 2):
        assert await leases.renew(pool, [mine.token], 300) == {mine.number_id}
        assert (await stands(pool, mine.number_id)).renew_seq == n
    assert await pool.fetchval(LEFT, mine.number_id) > 290


@pytest.mark.parametrize("how", ["expired", "released", "taken"])
async def test_a_lost_lease_is_not_renewed(pool: Pool, mine: Permission, how: str) -> None:
    other = await owned(pool, "2")
    if how == "expired":
        await pool.execute(OUT_OF_LEASE, mine.number_id)
    elif how == "released":
        await leases.release(pool, mine.number_id, mine.token, [])
    else:
        await taken_over(pool, mine)
    assert await leases.renew(pool, [mine.token, other.token], 60) == {other.number_id}


async def test_a_renewal_of_nothing_renews_nothing(pool: Pool, mine: Permission) -> None:
    assert await leases.renew(pool, [], 60) == set()
    assert await leases.renew(pool, [UUID(int=1)], 60) == set()


async def test_a_successor_learns_when_its_predecessor_sent(pool: Pool, mine: Permission) -> None:
    assert await leases.predecessor_sends(pool, mine.number_id, mine.token) is None
    await leases.release(pool, mine.number_id, mine.token, [100_000, 900_000, 500_000])
    ages = await leases.predecessor_sends(pool, mine.number_id, mine.token)
    assert ages is not None
    assert ages == sorted(ages, reverse=True)
    assert ages[0] >= 0.9
    assert ages[0] - ages[1] == pytest.approx(0.4)
    assert ages[1] - ages[2] == pytest.approx(0.4)
    row = await stands(pool, mine.number_id)
    assert row.released
    assert await lease(pool, mine.number_id, instead_of=row) is not None
    assert (await stands(pool, mine.number_id)).recent_us == ()


async def test_only_the_owner_releases(pool: Pool, mine: Permission) -> None:
    await leases.release(pool, mine.number_id, UUID(int=1), [])
    assert not (await stands(pool, mine.number_id)).released
    await leases.release(pool, mine.number_id, mine.token, [7])
    await leases.release(pool, mine.number_id, mine.token, [9])
    assert (await stands(pool, mine.number_id)).recent_us == (7,)
