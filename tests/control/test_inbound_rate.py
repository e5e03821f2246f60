"""What people write to a number presses on its owner, whichever process applies it."""

import asyncio
import json
from contextlib import suppress

import pytest

from engine.control.follower import Follower
from engine.control.inbound_rate import InboundRate
from engine.delivery.applier import Applier
from engine.postgres import webhooks
from engine.postgres.pool import Pool, open_pool
from tests.support import builders

NUMBER = "106540352242922"
JUST_NOW = "UPDATE inbox_work SET received_at = clock_timestamp() + interval '1 minute'"
"""However long it takes until they are applied: only what came in the last seconds presses."""


def written(first: int, count: int) -> bytes:
    messages = [
        {"from": "5511960000010", "id": f"wamid.{nth}", "type": "text", "text": {"body": "oi"}}
        for nth in range(first, first + count)
    ]
    value = {"metadata": {"phone_number_id": NUMBER}, "messages": messages}
    return json.dumps({"entry": [{"id": "W", "changes": [{"field": "messages", "value": value}]}]}).encode()


async def test_the_owner_sees_what_another_process_applied_without_asking_for_it(
    pool: Pool, database_url: str
) -> None:
    key = await builders.number(pool, NUMBER)
    looks: list[tuple[float, int]] = []
    rate, seen = InboundRate(), asyncio.Event()
    time = asyncio.get_running_loop().time
    async with open_pool(database_url, size=2) as elsewhere, asyncio.timeout(60):
        follower = Follower(pool, lambda desired: look(desired.numbers[key].inbound))

        def look(counted: int) -> None:
            at = time()
            looks.append((at, counted))
            rate.see({NUMBER: counted}, at)
            if rate.of(NUMBER, at) > 0:
                seen.set()

        following = asyncio.create_task(follower.run())
        while not looks:
            await asyncio.sleep(0)
        await webhooks.store(elsewhere, [written(0, 7), written(7, 5)])
        await elsewhere.execute(JUST_NOW)
        await Applier(elsewhere).apply_batch()
        await seen.wait()
        (since, before), (at, after) = looks[-2:]
        assert (before, after) == (0, 12)
        assert rate.of(NUMBER, at) == pytest.approx(12 / (at - since))
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


def test_a_rate_is_the_growth_between_two_looks_and_grows_old() -> None:
    rate = InboundRate()
    rate.see({"1": 1000, "2": 5}, 10.0)
    assert (rate.of("1", 10.0), rate.of("2", 10.0)) == (0, 0)
    rate.see({"1": 1030, "2": 5, "3": 7}, 12.0)
    assert (rate.of("1", 12.0), rate.of("2", 12.0), rate.of("3", 12.0)) == (15, 0, 0)
    rate.see({"1": 1090, "2": 5, "3": 7}, 12.25)  # an act: too soon to tell
    assert rate.of("1", 12.25) == 15
    rate.see({"1": 1090, "2": 0, "3": 7}, 13.0)
    assert (rate.of("1", 13.0), rate.of("2", 13.0)) == (60, 0)
    assert rate.of("1", 16.5) == 0
