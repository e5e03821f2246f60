"""Processes that die in the middle: nothing is asked for twice, nothing is lost, and the books balance."""

from __future__ import annotations

import random
import signal

from engine.domain.pacing import in_flight_bound, lead_room
from engine.domain.recipient import State
from tests.support.world import NUMBER, SILENT, World, scenario, try_of, world

RATE = 40
SLOWEST_S = 2.5
"""What an answer may take, and this machine on top when it stands still."""

IN_DOUBT_AT_MOST = in_flight_bound(RATE, SLOWEST_S) + lead_room(RATE)
SENDING = "SELECT id FROM recipient WHERE state = 's'"
UNKNOWN = "SELECT id FROM recipient WHERE state = 'u'"
HELD_LEASES = "SELECT count(*) FROM lease WHERE released_at IS NULL"


async def test_engines_killed_at_any_instant_lose_and_double_nothing(database_url: str) -> None:
    chance = random.Random(7)
    provider = scenario(latency={"median_ms": 150, "p95_ms": 400})
    async with world(database_url, provider, {NUMBER: RATE}) as w:
        await w.campaign(people=320)
        in_doubt: set[int] = set()
        reached = 0
        for _ in range(3):
            engine = await w.engine(lease="5s")
            reached += chance.randint(25, 70)
            await w.until_requests(reached)
            engine.kill()
            await engine.ended()
            sending = {row["id"] for row in await w.db.fetch(SENDING)}
            assert len(sending) <= IN_DOUBT_AT_MOST
            in_doubt |= sending
            reached = await w.requests()

        await w.engine(lease="5s")
        await w.until(lambda: _told(w, 320), "every row read, or marked and killed before it left")
        arrived = {try_of(entry)[0] for entry in await w.prove(exact_tries=False)}
        assert {row["id"] for row in await w.db.fetch(UNKNOWN)} == in_doubt - arrived


async def test_an_answer_slower_than_the_grace_leaves_unknown_and_loses_no_row(database_url: str) -> None:
    async with world(
        database_url, scenario(latency={"fixed_ms": 6000}, statuses=SILENT), {NUMBER: RATE}
    ) as w:
        await w.campaign(people=100)
        engine = await w.engine("--grace", "1s", lease="10s")
        await w.until_requests(30)
        engine.signal(signal.SIGTERM)
        ended = await engine.ended()
        assert ended.code == 143, ended.err
        requests = await w.requests()
        counts = await w.counts()
        assert counts[State.UNKNOWN] == requests
        assert counts[State.PENDING] == 100 - requests
        assert await w.db.fetchval(HELD_LEASES) == 0
        await w.prove()

        await _go_on_without_delay(w)
        await w.until_counts(read=100)
        assert len(await w.prove(exact_tries=False)) == 100


async def test_the_second_sigterm_ends_the_process_at_once(database_url: str) -> None:
    async with world(
        database_url, scenario(latency={"fixed_ms": 60_000}, statuses=SILENT), {NUMBER: RATE}
    ) as w:
        await w.campaign(people=60)
        engine = await w.engine("--grace", "60s")
        await w.until_requests(20)
        engine.signal(signal.SIGTERM)

        async def draining() -> bool:
            return bool(engine.events("draining"))

        await w.until(draining, "the drain begun")
        engine.signal(signal.SIGTERM)
        ended = await engine.ended(within_s=40.0)  # less than the answers take, or the grace
        assert ended.code == 143
        counts = await w.counts()
        never_left = counts[State.SENDING] - await w.requests()  # marked, and ended before they could go back
        assert 0 <= never_left <= lead_room(RATE)
        assert counts[State.SENDING] + counts[State.PENDING] + counts[State.CLAIMED] == 60

        await _go_on_without_delay(w)
        await w.until(lambda: _told(w, 60), "every row read, or unknown because it never left")
        assert len(await w.prove(exact_tries=False)) == 60 - never_left


async def _go_on_without_delay(w: World) -> None:
    """Another engine; what was taken so far tells of itself, and what follows is quick."""
    taken = await w.sim.ledger()
    await w.sim.replace(scenario())
    await w.engine(lease="5s")
    for entry in taken:
        await w.tell(entry, "read")


async def _told(w: World, people: int) -> bool:
    counts = await w.counts()
    return counts[State.READ] + counts[State.UNKNOWN] == people and counts[State.READ] == await w.requests()
