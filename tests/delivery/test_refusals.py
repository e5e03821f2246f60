"""Failures by webhook that reach beyond their rows: breakers, campaigns that are opened again, and what is too old."""

from datetime import timedelta

import pytest

from engine.delivery.applier import Applier
from engine.domain.recipient import State
from engine.postgres import breakers, journal, webhooks
from engine.postgres.pool import Pool
from tests.support.bodies import status, webhook
from tests.support.truth import NUMBER, Campaign, campaign

PAYMENT = 131042
KEYS = {
    131042: ("account", "WABA"),
    190: ("credential", "env:T"),
    132015: ("template", "WABA/hello/en"),
    130497: ("country", "WABA/BR"),
    131048: ("number", NUMBER),
}


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    made = await campaign(pool, "sale")
    await pool.execute("UPDATE campaign SET state = 'running', planned = 2")
    await pool.execute("UPDATE lane SET country = 'BR'")
    return made


async def fail(pool: Pool, of: Campaign, *rows: int, code: int = PAYMENT) -> Applier:
    applier = Applier(pool)
    await webhooks.store(pool, [webhook(*(status("failed", of.token(row), code=code) for row in rows))])
    await applier.apply_batch()
    return applier


async def open_keys(pool: Pool) -> list[tuple[str, str, int | None]]:
    return [(one.scope.value, one.key, one.code) for one in await breakers.open_breakers(pool)]


async def standing(pool: Pool) -> tuple[str, str | None, str | None]:
    row = await pool.fetchrow("SELECT state, reason, held_by FROM campaign WHERE name = 'sale'")
    assert row is not None
    return row["state"], row["reason"], row["held_by"]


@pytest.mark.parametrize("code", KEYS)
async def test_a_failure_of_wider_scope_trips_its_breaker_and_sends_its_rows_back(
    pool: Pool, sale: Campaign, code: int
) -> None:
    applier = await fail(pool, sale, *await sale.rows(2, State.SENT), code=code)
    assert await open_keys(pool) == [(*KEYS[code], code)]
    assert await sale.recount() == await sale.books() == {State.PENDING: 2}
    assert await sale.tallies() == {("R", code): 2}
    assert await pool.fetchval("SELECT sum(attempts) FROM recipient") == 0
    assert (await standing(pool))[0] == "running"
    assert [(e.author, e.act, e.target) for e in await journal.recent(pool)] == [
        ("auto", f"hold {KEYS[code][0]}", KEYS[code][1])
    ]
    assert applier.counts.tripped == 1


async def test_a_missing_object_is_the_numbers_fault_though_its_code_is_a_rows(
    pool: Pool, sale: Campaign
) -> None:
    row = await sale.row(State.SENT)
    item = status("failed", sale.token(row), code=100)
    item["errors"][0]["error_data"]["details"] = "Unsupported post request. Object with ID '1' does not exist"
    await webhooks.store(pool, [webhook(item)])
    await Applier(pool).apply_batch()
    assert await open_keys(pool) == [("number", NUMBER, 100)]
    assert await sale.state(row) is State.PENDING


async def test_a_failure_of_the_row_alone_stops_nothing(pool: Pool, sale: Campaign) -> None:
    await fail(pool, sale, *await sale.rows(2, State.SENT), code=131026)
    assert await open_keys(pool) == []
    assert await sale.recount() == {State.FAILED: 2}


async def test_a_finished_campaign_is_opened_again_with_the_reason(pool: Pool, sale: Campaign) -> None:
    await pool.execute("UPDATE campaign SET state = 'finished', finished_at = now()")
    await fail(pool, sale, await sale.row(State.SENT))
    state, reason, held_by = await standing(pool)
    assert (state, held_by) == ("held", "stops")
    assert str(reason).startswith("131042 ")
    assert [e.act for e in await journal.recent(pool)] == ["hold campaign", "hold account"]


@pytest.mark.parametrize("state", ["paused", "cancelled", "held", "running"])
async def test_a_campaign_that_is_not_finished_is_left_as_it_is(
    pool: Pool, sale: Campaign, state: str
) -> None:
    await pool.execute("UPDATE campaign SET state = $1, reason = 'a person'", state)
    await fail(pool, sale, await sale.row(State.SENT))
    assert await standing(pool) == (state, "a person", None)


async def test_a_try_that_left_before_the_lift_goes_back_too_and_trips_nothing(
    pool: Pool, sale: Campaign
) -> None:
    first, old, new = await sale.rows(3, State.SENT)
    for row, age in ((first, 3600), (old, 1800), (new, 0)):
        await sale.record(row, 1, "accepted", wamid=f"wamid.{row}")
        await pool.execute(
            "UPDATE try SET sent_at = now() - $2::interval WHERE recipient_id = $1",
            row,
            timedelta(seconds=age),
        )
    await fail(pool, sale, first)
    [tripped] = await breakers.open_breakers(pool)
    await breakers.lift(pool, tripped.breaker_id, "ana", "paid")
    await pool.execute("UPDATE breaker SET reset_at = now() - interval '10 minutes'")
    await pool.execute("UPDATE campaign SET state = 'finished'")
    await fail(pool, sale, old)
    assert await open_keys(pool) == []
    assert await sale.state(old) is State.PENDING
    assert (await standing(pool))[0] == "held"
    await fail(pool, sale, new)
    assert await open_keys(pool) == [("account", "WABA", PAYMENT)]


async def test_the_same_failure_again_does_not_trip_what_was_lifted(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.SENT)
    await fail(pool, sale, row)
    await breakers.lift(pool, (await breakers.open_breakers(pool))[0].breaker_id, "ana", None)
    await fail(pool, sale, row)
    assert await open_keys(pool) == []


async def test_a_failure_before_our_own_answer_was_stored_goes_back_and_trips(
    pool: Pool, sale: Campaign
) -> None:
    await fail(pool, sale, await sale.row(State.SENDING))
    assert await open_keys(pool) == [("account", "WABA", PAYMENT)]
    assert await sale.tallies() == {("K", 0): 1, ("R", PAYMENT): 1}
    assert await sale.recount() == await sale.books() == {State.PENDING: 1}


async def test_whoever_stopped_marketing_is_suppressed_and_the_row_fails(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.SENT)
    await pool.execute(
        "INSERT INTO recipient_data (id, campaign_id, phone, line) VALUES ($1, 1, '+5511988880001', 2)", row
    )
    applier = await fail(pool, sale, row, code=131050)
    assert await sale.state(row) is State.FAILED
    found = await pool.fetch("SELECT phone, scope, source FROM suppression ORDER BY phone")
    assert [tuple(one) for one in found] == [
        ("+551188880001", "marketing", "131050"),
        ("+5511988880001", "marketing", "131050"),
    ]
    assert applier.counts.opted_out == 2
