"""The database is away for a while in mid-run, in three shapes. Sending stops, memory stays within what
docs/operations.md states, sending goes on by itself within seconds, and every person gets one message."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import httpx
import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.domain.pacing import in_flight_bound, lead_room
from tests.faults.test_database import own_server
from tests.support.chaos import judge
from tests.support.process import Process
from tests.support.road import road_to_database
from tests.support.world import NUMBER, World, scenario, try_of, world

RATE = 40
SLOW = {"median_ms": 400, "p95_ms": 600}
"""So that requests are open when the database goes, and their answers come while it is away."""

PROMISED_S = 5.0
"""Within which sending goes on again."""

IN_COMPANY_S = 25.0
"""The same beside other tests: still below the 30 s that a statement may wait for its answer."""

OPEN_AT_MOST = in_flight_bound(RATE, 2.5) + lead_room(RATE)
"""Requests; an answer takes SLOW, and as long as this machine stands still."""

GROWTH = 16 * 1024 * 1024
"""Bytes of resident memory: results in hand are kilobytes, the rest is the allocator's."""

AWAY_S = 60.0


@dataclass
class Outage:
    """A database that can be put away and brought back; `url` goes around what may be in the way."""

    url: str
    engine_url: str
    begin: Callable[[], object]
    end: Callable[[], Awaitable[object]]


@asynccontextmanager
async def killed() -> AsyncIterator[Outage]:
    async with own_server() as database:
        yield Outage(database.url, database.url, database.kill, database.start)


@asynccontextmanager
async def frozen() -> AsyncIterator[Outage]:
    async with own_server() as database:

        async def thaw() -> None:
            database.thaw()

        yield Outage(database.url, database.url, database.freeze, thaw)


@asynccontextmanager
async def lost() -> AsyncIterator[Outage]:
    async with own_server() as database, road_to_database(database.url) as (way, over_it):

        async def let_through() -> None:
            way.let_through()

        yield Outage(database.url, over_it, way.lose, let_through)


@dataclass
class Seen:
    """What an engine held, as it was looked at again and again."""

    engine: Process
    metrics: str
    in_hand: list[float] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)

    async def look(self) -> None:
        self.resident.append(psutil.Process(self.engine.pid).memory_info().rss)
        async with httpx.AsyncClient(trust_env=False, timeout=60.0) as client:
            page = (await client.get(f"http://{self.metrics}/metrics")).text
        for family in text_string_to_metric_families(page):
            self.in_hand += [s.value for s in family.samples if s.name == "tidegate_results_backlog_rows"]


async def _until_passed(w: World, seconds: float, seen: Seen) -> None:
    """The outage itself, with looks at the engine on the way."""
    ends = time.monotonic() + seconds

    async def over() -> bool:
        await seen.look()
        return time.monotonic() >= ends

    await w.until(over, "the outage over", within_s=seconds + 30.0)


async def away(
    shape: Callable[[], AbstractAsyncContextManager[Outage]],
    seconds: float,
    people: int,
    resumes_within_s: float,
) -> None:
    async with shape() as outage, world(outage.url, scenario(latency=SLOW), {NUMBER: RATE}) as w:
        await w.campaign(people=people)
        engine = await w.engine(database_url=outage.engine_url)
        await w.until_requests(80)
        seen = Seen(engine, w.environment["TIDEGATE_METRICS_LISTEN"])
        await seen.look()
        outage.begin()
        begun = time.time()
        await _until_passed(w, seconds, seen)
        ended = time.time()
        await outage.end()
        back = time.time()
        await w.until_counts(read=people, within_s=120.0)
        left = [entry["unix_us"] / 1e6 for entry in await w.sim.ledger()]
        late = [at for at in left if begun < at < ended]  # it was on its way, or marked already
        assert len(late) <= in_flight_bound(RATE, 0.6) + lead_room(RATE), "it went on without a database"
        resumed = min(at for at in left if at >= ended) - back
        print(
            f"{shape.__name__}, {seconds:.0f} s: resumed after {resumed:.1f} s, {max(seen.in_hand):.0f} results"
            f" in hand, {(max(seen.resident) - seen.resident[0]) / 2**20:.1f} MiB more"
        )
        assert resumed < resumes_within_s
        assert 0 < max(seen.in_hand) <= OPEN_AT_MOST
        assert max(seen.resident) - seen.resident[0] < GROWTH
        asked = Counter(try_of(entry) for entry in await w.sim.ledger())
        assert (set(asked.values()), len(asked)) == ({1}, people)
        await judge(w, people)
        assert (await w.tidegate("audit")).code == 0
        assert engine.running


async def test_a_database_lost_for_seconds_costs_nobody_a_message() -> None:
    await away(lost, 4.0, 200, IN_COMPANY_S)


@pytest.mark.soak
@pytest.mark.parametrize("shape", [killed, frozen, lost])
async def test_a_database_away_for_a_minute_costs_nobody_a_message(
    shape: Callable[[], AbstractAsyncContextManager[Outage]],
) -> None:
    await away(shape, AWAY_S, 300, PROMISED_S)
