"""Random faults for N minutes, and then the books: `make soak`, SOAK_MINUTES=15 and SOAK_SEED=1 unless told otherwise.

What happened, with its moment, is printed as it happens; the same seed gives the same faults in the same order.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.faults.test_database import TERMINATE, Server, own_server
from tests.support.chaos import Fleet, granted, judge, until_settled
from tests.support.world import NUMBER, WINDOW_MS, World, scenario, world

RATE = 25.0
NUMBERS = {str(int(NUMBER) + nth): RATE for nth in range(4)}
NODES = 3
PEOPLE_PER_MINUTE = 3000
"""Half of what the numbers may send: faults take their time."""

LONGER_THAN_THE_LEASE_S = 7.0
REST_S = (2.0, 8.0)
SETTLED_WITHIN_S = 600.0

WITHIN_LIMIT = {number: {"limit": granted(RATE), "window_ms": WINDOW_MS} for number in NUMBERS}
QUICK: dict[str, Any] = scenario(latency={"median_ms": 100, "p95_ms": 400}, numbers=WITHIN_LIMIT)
STORMS: tuple[Mapping[str, Any], ...] = (
    {"do": "html_502"},
    {"do": "error", "code": 131000, "http_status": 500},
    {"do": "error", "code": 130429, "http_status": 429},
    {"do": "close_before_reading"},
    {"do": "close_after_reading"},
    {"do": "reset_after_reading"},
    {"do": "half_reply"},
    {"do": "slow", "extra_ms": 3000},
)


async def _storm(w: World, chance: random.Random) -> None:
    """A fifth of all requests meets one fault for some seconds."""
    rule = dict(chance.choice(STORMS)) | {"match": {"share": 0.2}}
    await w.sim.replace(QUICK | {"rules": [rule]})
    await asyncio.sleep(chance.uniform(2, 6))
    await w.sim.replace(QUICK)


async def _restart(database: Server, chance: random.Random) -> None:
    database.kill()
    await asyncio.sleep(chance.uniform(0, 8))
    await database.start()


def _faults(
    w: World, fleet: Fleet, database: Server, chance: random.Random
) -> dict[str, Callable[[], Awaitable[object]]]:
    return {
        "kill -9": fleet.kill_one,
        "SIGTERM": fleet.drain_one,
        "SIGSTOP for a moment": lambda: fleet.stop_one(1.0),
        "SIGSTOP for longer than the lease": lambda: fleet.stop_one(LONGER_THAN_THE_LEASE_S),
        "connections ended": lambda: w.db.fetchval(TERMINATE),
        "database killed": lambda: _restart(database, chance),
        "provider": lambda: _storm(w, chance),
    }


@pytest.mark.soak
async def test_random_faults_lose_and_double_nothing() -> None:
    minutes = float(os.environ.get("SOAK_MINUTES", "15"))
    seed = int(os.environ.get("SOAK_SEED", "1"))
    chance = random.Random(seed)
    people = round(PEOPLE_PER_MINUTE * minutes)
    async with own_server() as database, world(database.url, QUICK, NUMBERS) as w:
        await w.campaign(people=people)
        fleet = Fleet(w, chance)
        await fleet.start(NODES)
        await fleet.until_up()
        faults = _faults(w, fleet, database, chance)
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < minutes * 60:
            name = chance.choice(sorted(faults))
            print(f"{passed:6.1f} s  {name}", flush=True)
            await faults[name]()
            await fleet.until_up()
            await asyncio.sleep(chance.uniform(*REST_S))
        await until_settled(w, SETTLED_WITHIN_S)
        print(await judge(w, people))
        ended = await w.tidegate("audit")
        print(ended.out)
        assert ended.code == 0, ended.out + ended.err
