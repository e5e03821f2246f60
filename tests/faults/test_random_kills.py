"""Kills at random instants, on three nodes with several numbers: nobody is lost, nobody is asked for twice."""

from __future__ import annotations

import random

import pytest

from engine.domain.pacing import in_flight_bound, lead_room
from engine.domain.recipient import State
from tests.support.chaos import Fleet, judge, until_settled
from tests.support.world import NUMBER, World, scenario, world

RATE = 40.0
NUMBERS = {str(int(NUMBER) + nth): RATE for nth in range(4)}
SLOWEST_S = 0.4
PROVIDER = scenario(latency={"median_ms": 100, "p95_ms": 400})


async def _kills(w: World, seed: int, kills: int, people: int) -> str:
    """So many kills, spread by chance over the run."""
    chance = random.Random(seed)
    await w.campaign(people=people)
    fleet = Fleet(w, chance)
    await fleet.start(3)
    instants = sorted(chance.uniform(0.02, 0.9) * people for _ in range(kills))
    for instant in instants:
        await w.until_requests(int(instant), within_s=240.0)
        await fleet.kill_one()
    await until_settled(w, within_s=240.0)
    told = await judge(w, people)
    # Each kill leaves at most what its numbers had open or on the way to the gate.
    bound = kills * len(NUMBERS) * (in_flight_bound(RATE, SLOWEST_S) + lead_room(RATE))
    assert (await w.counts())[State.UNKNOWN] <= bound
    assert fleet.kills == kills
    return told


async def test_ten_kills_at_random_instants_lose_and_double_nothing(database_url: str) -> None:
    async with world(database_url, PROVIDER, NUMBERS) as w:
        await _kills(w, seed=11, kills=10, people=2000)


@pytest.mark.soak
async def test_fifty_kills_in_twenty_thousand_recipients_lose_and_double_nothing(database_url: str) -> None:
    async with world(database_url, PROVIDER, NUMBERS) as w:
        print(await _kills(w, seed=50, kills=50, people=20_000))
