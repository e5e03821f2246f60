"""Breakers: what trips, what heals, and what old evidence may not do."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from engine.domain.breaker import Stop
from engine.domain.errors import Scope
from engine.postgres import breakers, desired, journal
from engine.postgres.breakers import Breaker
from engine.postgres.pool import Pool

KEY = "WABA1"
PAYMENT = Stop(Scope.ACCOUNT, KEY, 131042, "131042 The account has a payment problem.")
HOUR = timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


async def only(pool: Pool) -> Breaker:
    (one,) = await breakers.open_breakers(pool)
    return one


async def lift(pool: Pool) -> Breaker | None:
    async with pool.acquire() as connection, connection.transaction():
        return await breakers.lift(connection, (await only(pool)).breaker_id, "ana", "paid")


async def heal(pool: Pool, at: datetime) -> Breaker | None:
    async with pool.acquire() as connection, connection.transaction():
        return await breakers.heal(connection, Scope.ACCOUNT, KEY, at, "REINSTATE")


async def test_the_first_evidence_trips_and_the_next_changes_nothing(pool: Pool) -> None:
    before = await desired.version(pool)
    assert await breakers.trip(pool, PAYMENT, now())
    assert not await breakers.trip(pool, PAYMENT, now())
    assert await desired.version(pool) == before + 1
    (entry,) = await journal.recent(pool)
    assert (entry.author, entry.act, entry.target) == ("auto", "hold account", KEY)
    held = await only(pool)
    assert (held.state, held.code, held.reason, held.until) == ("held", 131042, PAYMENT.reason, None)


async def test_many_at_once_trip_it_once(pool: Pool) -> None:
    at = now()
    assert sorted(await asyncio.gather(*(breakers.trip(pool, PAYMENT, at) for _ in range(8)))) == [
        *[False] * 7,
        True,
    ]


async def test_after_a_lift_only_newer_evidence_trips_again(pool: Pool) -> None:
    left_before = now()
    await breakers.trip(pool, PAYMENT, left_before)
    lifted = await lift(pool)
    assert lifted is not None
    assert lifted.state == "held"
    assert await breakers.open_breakers(pool) == []
    assert not await breakers.trip(pool, PAYMENT, left_before)
    assert await breakers.trip(pool, PAYMENT, now() + timedelta(seconds=1))


async def test_lifting_twice_says_so_and_writes_one_line(pool: Pool) -> None:
    await breakers.trip(pool, PAYMENT, now())
    breaker_id = (await only(pool)).breaker_id
    assert await breakers.lift(pool, breaker_id, "ana", None) is not None
    assert await breakers.lift(pool, breaker_id, "ana", None) is None
    assert await breakers.lift(pool, 999, "ana", None) is None
    found = await breakers.find(pool, breaker_id)
    assert found is not None
    assert found.state == "closed"
    assert await breakers.find(pool, 999) is None
    assert [entry.act for entry in await journal.recent(pool)] == ["lift account", "hold account"]


async def test_good_news_heals_what_is_older(pool: Pool) -> None:
    at = now()
    await breakers.trip(pool, PAYMENT, at)
    assert await heal(pool, at - HOUR) is None
    assert (await only(pool)).state == "held"
    healed = await heal(pool, at + timedelta(seconds=1))
    assert healed is not None
    assert await breakers.open_breakers(pool) == []
    assert (await journal.recent(pool))[0].act == "lift account"


async def test_good_news_that_overtakes_the_bad_keeps_it_from_tripping(pool: Pool) -> None:
    at = now()
    assert await heal(pool, at) is None
    assert not await breakers.trip(pool, PAYMENT, at - timedelta(seconds=1))
    assert await breakers.trip(pool, PAYMENT, at + timedelta(seconds=1))
    assert [entry.act for entry in await journal.recent(pool)] == ["hold account"]


async def test_old_good_news_does_not_make_older_evidence_count_again(pool: Pool) -> None:
    at = now()
    await heal(pool, at)
    await heal(pool, at - HOUR)
    assert not await breakers.trip(pool, PAYMENT, at - timedelta(seconds=1))


async def test_what_waits_may_wait_longer_or_be_held_but_not_shorter(pool: Pool) -> None:
    end = now() + HOUR
    waiting = Stop(Scope.ACCOUNT, KEY, 80007, "wait", until=end)
    assert await breakers.trip(pool, waiting, now())
    assert not await breakers.trip(pool, Stop(Scope.ACCOUNT, KEY, 80007, "less", until=end - HOUR / 2), now())
    assert (await only(pool)).until == end
    assert await breakers.trip(pool, Stop(Scope.ACCOUNT, KEY, 80007, "more", until=end + HOUR), now())
    assert (await only(pool)).until == end + HOUR
    assert await breakers.trip(pool, PAYMENT, now())
    assert (await only(pool)).state == "held"
    assert not await breakers.trip(pool, waiting, now())
    assert (await only(pool)).state == "held"


async def test_what_waits_closes_by_itself_and_may_trip_again(pool: Pool) -> None:
    past = now() - timedelta(seconds=1)
    await breakers.trip(pool, Stop(Scope.ACCOUNT, KEY, 80007, "wait", until=past), past - HOUR)
    assert await breakers.open_breakers(pool) == []
    assert [one.key for one in await breakers.close_passed(pool)] == [KEY]
    assert await breakers.close_passed(pool) == []
    assert not await breakers.trip(pool, PAYMENT, past - timedelta(seconds=1))
    assert await breakers.trip(pool, PAYMENT, now())


async def test_several_stops_are_folded_to_the_newest_of_each_key(pool: Pool) -> None:
    at = now()
    other = Stop(Scope.NUMBER, "1060", 131048, "restricted")
    tripped = await breakers.trip_all(
        pool, [(PAYMENT, at - HOUR), (other, at), (Stop(Scope.ACCOUNT, KEY, 131031, "locked"), at)]
    )
    assert [(one.scope, one.code) for one in tripped] == [(Scope.ACCOUNT, 131031), (Scope.NUMBER, 131048)]


async def test_batches_in_opposite_order_do_not_wait_for_each_other(pool: Pool) -> None:
    stops = [(Stop(Scope.NUMBER, str(n), 131048, "restricted"), now()) for n in range(20)]

    async def batch(order: list[tuple[Stop, datetime]]) -> int:
        async with pool.acquire() as connection, connection.transaction():
            return len(await breakers.trip_all(connection, order))

    assert sum(await asyncio.gather(batch(stops), batch(stops[::-1]), batch(stops))) == 20


async def test_one_node_probes_at_a_time_and_only_what_is_to_be_probed(pool: Pool) -> None:
    await breakers.trip(pool, PAYMENT, now())
    breaker_id = (await only(pool)).breaker_id
    assert not await breakers.take_probe(pool, breaker_id, uuid.uuid4(), 60)
    await lift(pool)
    probed = Stop(Scope.ACCOUNT, KEY, 190, "expired", probe_at=now() - timedelta(seconds=1))
    await breakers.trip(pool, probed, now() + timedelta(seconds=1))
    assert await breakers.take_probe(pool, breaker_id, uuid.uuid4(), 60)
    assert not await breakers.take_probe(pool, breaker_id, uuid.uuid4(), 60)
    await pool.execute("UPDATE breaker SET probe_until = clock_timestamp() - interval '1 second'")
    assert await breakers.take_probe(pool, breaker_id, uuid.uuid4(), 60)


@pytest.mark.parametrize("scope", ["number", "account", "credential", "template", "country"])
async def test_every_scope_that_stops_has_a_place(pool: Pool, scope: str) -> None:
    assert await breakers.trip(pool, Stop(Scope(scope), "key", None, "why"), now())
