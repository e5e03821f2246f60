"""The limiter spaces one number's sends, and takes a new rate at once."""

import asyncio
from itertools import pairwise

import pytest

from engine.sending.limiter import Limiter
from tests.support.virtual_loop import run


async def permits(limiter: Limiter, seconds: float) -> list[float]:
    """The moments of the permits of so many seconds."""
    time = asyncio.get_running_loop().time
    end, moments = time() + seconds, []
    while time() < end:
        await limiter.permit()
        moments.append(time())
    return moments


@pytest.mark.parametrize("rate", [0.2, 1, 2, 3, 4, 20, 80, 1000])
def test_permits_come_evenly_at_the_rate(rate: float) -> None:
    async def scenario() -> None:
        limiter = Limiter(rate)
        await permits(limiter, 5 / rate)  # the first ones may come together
        span = max(5.0, 20 / rate)
        moments = await permits(limiter, span)
        assert 0.97 * rate * span - 1 <= len(moments) <= rate * span + 1
        gaps = [b - a for a, b in pairwise(moments)]
        assert max(gaps) <= 1.05 / rate + 0.001

    run(scenario())


@pytest.mark.parametrize("rate", [10, 80, 1000])
def test_a_full_bucket_is_no_burst(rate: float) -> None:
    async def scenario() -> None:
        moments = await permits(Limiter(rate), 0.1)
        assert len(moments) <= 2 * rate * 0.1 + 2

    run(scenario())


@pytest.mark.parametrize("slow", [0.001, 0.5, 3])
def test_a_new_rate_is_not_slept_through(slow: float) -> None:
    async def scenario() -> None:
        limiter = Limiter(slow)
        await limiter.permit()
        began = asyncio.get_running_loop().time()
        asyncio.get_running_loop().call_later(0.1, limiter.set_rate, 80)
        await limiter.permit()
        assert asyncio.get_running_loop().time() - began < 0.4

    run(scenario())


def test_a_cancelled_wait_takes_no_permit() -> None:
    async def scenario() -> None:
        limiter = Limiter(2)
        await limiter.permit()
        waiting = asyncio.ensure_future(limiter.permit())
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.wait([waiting])
        began = asyncio.get_running_loop().time()
        await limiter.permit()
        assert asyncio.get_running_loop().time() - began < 0.45

    run(scenario())
