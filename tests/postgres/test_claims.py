"""Permissions: claim, mark, give back, rescue, sweep. Each on a real database, each with exact books."""

import asyncio
from itertools import chain
from uuid import uuid4

import pytest

from engine.domain.recipient import State
from engine.postgres import claims, leases, results
from engine.postgres.claims import Ask, Permission
from engine.postgres.pool import Pool
from tests.support import builders
from tests.support.owned import (
    OUT_OF_LEASE,
    age,
    assert_books,
    claim,
    counted,
    fact,
    head,
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
    async with asyncio.timeout(10):
        while not await pool.fetchval(WAITERS):
            await asyncio.sleep(0)


# Claim


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


# Mark


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


async def test_a_take_over_waits_for_a_mark_under_way_and_rescues_its_rows(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    await builders.recipients(pool, sale, 2)
    rows = await claim(pool, mine, sale)
    async with pool.acquire() as old, old.transaction():
        assert set((await mark(old, mine, rows)).values()) == {"ok"}
        taking = asyncio.ensure_future(taken_over(pool, mine))
        await until_waiting(pool)
        assert not taking.done()
    new = await taking
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


# Give back, rescue, sweep


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
