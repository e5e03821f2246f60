"""Marks on a real database: the fence that every stop and every take-over passes through."""

import asyncio
from itertools import chain

import pytest

from engine.domain.recipient import State
from engine.postgres import claims, leases, results
from engine.postgres.claims import Ask, Permission
from engine.postgres.pool import Pool
from tests.support import builders
from tests.support.owned import (
    OUT_OF_LEASE,
    assert_books,
    claim,
    counted,
    fact,
    lease,
    mark,
    owned,
    row,
    running,
    sending,
    states,
    taken_over,
    tallies,
)

WAITERS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
async def mine(pool: Pool) -> Permission:
    return await owned(pool)


@pytest.fixture
async def sale(pool: Pool, mine: Permission) -> builders.MadeCampaign:
    return await running(pool)


async def until_waiting(pool: Pool) -> None:
    """Until a statement of this database waits for a lock."""
    async with asyncio.timeout(60):
        while not await pool.fetchval(WAITERS):
            await asyncio.sleep(0)


async def test_a_marked_row_is_sending_with_its_try(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [id_] = await sending(pool, mine, sale)
    found = await row(pool, id_)
    assert (found.state, found.tries, found.in_flight, found.epoch) == (
        State.SENDING, 1, mine.number_id, mine.epoch,
    )  # fmt: skip
    assert (await tallies(pool, sale)).tries == 1
    await assert_books(pool)


STOPS = {
    "paused": "UPDATE number SET paused_at = now(), paused_by = 'ana'",
    "paused by rate": "UPDATE number SET rate = 0",
    "held campaign": "UPDATE campaign SET state = 'held', reason = 'x'",
    "paused campaign": "UPDATE campaign SET state = 'paused'",
    "held lane": "UPDATE lane SET hold = 'country'",
    "expired campaign": "UPDATE campaign SET deadline = now() - interval '1 s'",
    "expired lane": "UPDATE lane SET deadline = now() - interval '1 s'",
    "cancelled": "UPDATE campaign SET state = 'cancelled'",
    "number held": "INSERT INTO breaker (scope, key, state) VALUES ('number', '106540352242922', 'held')",
    "account held": "INSERT INTO breaker (scope, key, state) VALUES ('account', 'WABA1', 'held')",
    "credential held": "INSERT INTO breaker (scope, key, state) VALUES ('credential', 'env:TOKEN', 'held')",
    "account waits": "INSERT INTO breaker (scope, key, state, until)"
    " VALUES ('account', 'WABA1', 'waiting', now() + interval '1 minute')",
    "country held": "INSERT INTO breaker (scope, key, state) VALUES ('country', 'WABA1/BR', 'held')",
    "template held": "INSERT INTO breaker (scope, key, state) VALUES ('template', 'WABA1/t/en', 'held')",
    "suppressed": "INSERT INTO suppression (phone, scope, source) SELECT phone, 'all', 'stop' FROM recipient_data",
}
VERDICTS = {
    "paused": ("paused", State.PENDING),
    "paused by rate": ("paused", State.PENDING),
    "expired campaign": ("expired", State.EXPIRED),
    "expired lane": ("expired", State.EXPIRED),
    "cancelled": ("cancelled", State.CANCELLED),
    "suppressed": ("suppressed", State.SUPPRESSED),
}


@pytest.mark.parametrize("stop", STOPS)
async def test_every_stop_holds_from_the_next_mark_on(pool: Pool, mine: Permission, stop: str) -> None:
    made = await builders.campaign(pool, numbers=["106540352242922"], state="running", country="BR")
    await builders.recipients(pool, made, 3)
    rows = await claim(pool, mine, made)
    await pool.execute(STOPS[stop])
    verdict, state = VERDICTS.get(stop, ("held", State.PENDING))
    asks = [Ask(r.id, mine, r.tries + 1, r.phone, "WABA1/t/en") for r in rows]
    assert set((await claims.mark(pool, asks)).values()) == {verdict}
    found = await row(pool, rows[0].id)
    assert (found.state, found.tries, found.in_flight) == (state, 0, None)
    assert await counted(pool, made) == {state.word: 3}
    assert (await tallies(pool, made)).tries == 0
    await assert_books(pool)


async def test_what_stops_others_stops_nobody_here(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 1)
    await pool.execute(
        "INSERT INTO breaker (scope, key, state, until) VALUES ('number', '9', 'held', NULL),"
        " ('account', 'WABA9', 'held', NULL), ('account', 'WABA1', 'closed', NULL),"
        " ('number', '106540352242922', 'waiting', now() - interval '1 s')"
    )
    assert set((await mark(pool, mine, await claim(pool, mine, sale))).values()) == {"ok"}


async def test_one_batch_may_hold_every_verdict(pool: Pool, mine: Permission) -> None:
    good = await running(pool, "good")
    bad = await running(pool, "bad")
    await builders.recipients(pool, good, 2)
    await builders.recipients(pool, bad, 2)
    rows = await claim(pool, mine, good) + await claim(pool, mine, bad)
    await pool.execute(
        "UPDATE campaign SET deadline = now() - interval '1 s' WHERE campaign_id = $1", bad.campaign_id
    )
    verdicts = await mark(pool, mine, rows)
    assert [verdicts[r.id] for r in rows] == ["ok", "ok", "expired", "expired"]
    await assert_books(pool)


async def test_a_mark_whose_answer_was_lost_is_repeated_without_a_second_try(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 3)
    rows = await claim(pool, mine, sale)
    await mark(pool, mine, rows[:2])
    assert await mark(pool, mine, rows) == {rows[0].id: "again", rows[1].id: "again", rows[2].id: "ok"}
    assert [(await row(pool, r.id)).tries for r in rows] == [1, 1, 1]
    assert (await tallies(pool, sale)).tries == 3
    await assert_books(pool)


async def test_a_repeated_mark_of_a_row_that_was_paused_is_gone(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 1)
    rows = await claim(pool, mine, sale)
    await pool.execute(STOPS["paused"])
    await mark(pool, mine, rows)
    assert set((await mark(pool, mine, rows)).values()) == {"gone"}
    await assert_books(pool)


async def test_tries_grow_at_every_mark_and_are_never_used_again(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [id_] = await builders.recipients(pool, sale, 1)
    for n in (1, 2, 3):
        rows = await claim(pool, mine, sale)
        assert (await mark(pool, mine, rows))[id_] == "ok"
        assert (await row(pool, id_)).tries == n
        async with pool.acquire() as db, db.transaction():
            await results.apply(db, [fact(id_, n, "withdrawn", mine)])
    await assert_books(pool)


async def test_an_old_owner_s_mark_is_lost(pool: Pool, mine: Permission, sale: builders.MadeCampaign) -> None:
    await builders.recipients(pool, sale, 1)
    rows = await claim(pool, mine, sale)
    new = await taken_over(pool, mine)
    assert set((await mark(pool, mine, rows)).values()) == {"lost"}
    assert await claims.rescue(pool, new) == (1, 0)
    again = await claim(pool, new, sale)
    both = [Ask(rows[0].id, mine, 1), Ask(again[0].id, new, 1)]
    assert await claims.mark(pool, both) == {
        (rows[0].id, mine.epoch): "lost",
        (rows[0].id, new.epoch): "ok",
    }
    await assert_books(pool)


@pytest.mark.parametrize("how", ["expired", "released"])
async def test_a_mark_under_a_lease_that_ended_is_lost(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign, how: str
) -> None:
    await builders.recipients(pool, sale, 1)
    rows = await claim(pool, mine, sale)
    if how == "expired":
        await pool.execute(OUT_OF_LEASE, mine.number_id)
    else:
        await leases.release(pool, mine.number_id, mine.token, [])
    assert set((await mark(pool, mine, rows)).values()) == {"lost"}
    assert await states(pool, [rows[0].id]) == ["claimed"]


async def test_a_row_that_is_no_longer_ours_is_gone(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 2)
    rows = await claim(pool, mine, sale)
    await claims.give_back(pool, mine, [rows[0].id])
    other = await owned(pool, "2")
    await claim(pool, other, sale)
    assert await mark(pool, mine, rows) == {rows[0].id: "gone", rows[1].id: "ok"}
    assert await claims.mark(pool, [Ask(424242, mine, 1)]) == {}


async def test_a_decided_resend_is_counted_when_it_leaves(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [id_] = await builders.recipients(pool, sale, 1, tries=1)
    await pool.execute("UPDATE recipient SET resend = true WHERE id = $1", id_)
    rows = await claim(pool, mine, sale)
    assert (await tallies(pool, sale)).possible_duplicates == 0
    await mark(pool, mine, rows)
    assert (await tallies(pool, sale)).possible_duplicates == 1
    assert not (await row(pool, id_)).resend
    await mark(pool, mine, rows)
    assert (await tallies(pool, sale)).possible_duplicates == 1


async def test_nobody_takes_a_number_over_while_a_mark_is_under_way_and_whoever_does_then_rescues_its_rows(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 2)
    rows = await claim(pool, mine, sale)
    async with pool.acquire() as old, old.transaction():
        assert set((await mark(old, mine, rows)).values()) == {"ok"}
        row = (await leases.read(pool))[mine.number_id]
        assert await lease(pool, mine.number_id, instead_of=row) is None
    new = await taken_over(pool, mine)
    assert await claims.rescue(pool, new) == (0, 2)  # they left, and nobody knows what came of them
    assert await states(pool, [r.id for r in rows]) == ["unknown", "unknown"]
    await assert_books(pool)


async def test_a_mark_waits_for_a_take_over_under_way_and_is_lost(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 2)
    rows = await claim(pool, mine, sale)
    async with pool.acquire() as other, other.transaction():
        new = await taken_over(other, mine)
        marking = asyncio.ensure_future(mark(pool, mine, rows))
        await until_waiting(pool)
    assert set((await marking).values()) == {"lost"}
    assert await claims.rescue(pool, new) == (2, 0)
    assert await states(pool, [r.id for r in rows]) == ["pending", "pending"]
    await assert_books(pool)


async def test_marks_and_renewals_of_many_numbers_never_deadlock(pool: Pool) -> None:
    numbers = [await owned(pool, str(i)) for i in range(6)]
    made = await builders.campaign(pool, numbers=[str(i) for i in range(6)], state="running")
    await builders.recipients(pool, made, 240)
    # The rows of the table are moved about, so that its own order is no order of numbers.
    await leases.renew(pool, [p.token for p in numbers[::-2]], 60)
    asks = []
    for _ in range(10):
        for permission in numbers:
            asks.append([Ask(r.id, permission, 1) for r in await claim(pool, permission, made, 4)])
    by_turn = [list(chain(*asks[i : i + 6])) for i in range(0, 60, 6)]

    async def renew_all() -> None:
        for turn in range(30):
            tokens = [p.token for p in numbers[turn % 6 :] + numbers[: turn % 6]]
            assert len(await leases.renew(pool, tokens, 60)) == 6

    async def mark_all() -> None:
        for turn in by_turn:
            assert set((await claims.mark(pool, turn)).values()) == {"ok"}

    await asyncio.gather(renew_all(), mark_all(), renew_all())
    await assert_books(pool)


@pytest.mark.parametrize("rescued", [False, True])
async def test_a_mark_whose_answer_was_lost_together_with_its_lease_is_late_and_can_be_taken_back(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign, rescued: bool
) -> None:
    await builders.recipients(pool, sale, 2)
    rows = await claim(pool, mine, sale)
    await mark(pool, mine, rows[:1])  # committed; the answer is lost, and so is the lease
    new = await taken_over(pool, mine)
    if rescued:
        assert await claims.rescue(pool, new) == (1, 1)
    assert await mark(pool, mine, rows) == {rows[0].id: "late", rows[1].id: "lost"}
    async with pool.acquire() as db, db.transaction():
        await results.apply(db, [fact(rows[0].id, 1, "withdrawn", mine)])
    if not rescued:
        assert await claims.rescue(pool, new) == (1, 0)
    assert await states(pool, [r.id for r in rows]) == ["pending", "pending"]
    assert [r.tries for r in await claim(pool, new, sale)] == [1, 0]
    await assert_books(pool)


async def test_a_late_mark_says_nothing_of_a_row_that_went_on(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 1)
    rows = await claim(pool, mine, sale)
    await mark(pool, mine, rows)
    new = await taken_over(pool, mine)
    await claims.rescue(pool, new)
    await pool.execute("UPDATE recipient SET state = 't', in_flight = NULL")  # a status settled it
    assert set((await mark(pool, mine, rows)).values()) == {"lost"}
