"""How soon `p` stops a busy number, and what an engine costs whose terminal is gone."""

import asyncio
import signal
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tests.bench.results import Goal, Row, Section
from tests.bench.sends import RAMP_S, SCREEN, TEN, WINDOW_S, Load, Sending, engine, sending, window
from tests.bench.terminal import Terminal, open_terminal
from tests.bench.usage import quantile
from tests.bench.world import World

PAUSES = 20
STILL_S = 0.5
"""Without a request for so long after a pause, it has stopped: at this rate that are 200 of them."""

BUSY = Load(1, 400.0, lasts_s=RAMP_S + PAUSES * 4.0)
MOST_LAST_S = 0.1
MOST_ALONE = 1.25


@dataclass(frozen=True, slots=True)
class _Pause:
    """When the key was pressed, and how many requests the provider had seen when the number stood still."""

    pressed: float
    requests: int


async def measure(world: World) -> Section:
    """Pauses of a number at work, by the key; then a hang-up under ten numbers, beside the same without a screen."""
    lasts = await _pauses(world)
    alone, headless = await _alone(world), await engine(world, TEN)
    p50, p95, most = (1000 * quantile(lasts, share) for share in (0.5, 0.95, 1.0))
    ratio = alone / headless.span.cores("sender")
    rows = [
        Row(
            f"From `p` to the last request, {BUSY.name}",
            p50=p50,
            p99=most,
            note=f"p95 {p95:.0f} ms of {len(lasts)}; from the key, so with the wait for a second key; "
            "p99 is the longest",
        ),
        Row(
            f"Engine whose terminal was hung up, {TEN.name}",
            note=f"{alone:.0%} of a core, with --no-ui from the start {headless.span.cores('sender'):.0%}",
        ),
    ]
    goals = [
        Goal(
            f"the last request leaves within {1000 * MOST_LAST_S:.0f} ms of `p` (p95)",
            f"{p95:.0f} ms, at most {most:.0f} ms",
            p95 <= 1000 * MOST_LAST_S,
        ),
        Goal(
            f"after a hang-up the engine takes at most {MOST_ALONE:g} times the CPU of one without a screen",
            f"{ratio:.2f} times",
            ratio <= MOST_ALONE,
        ),
    ]
    return Section(rows, goals)


async def _pauses(world: World) -> list[float]:
    """Seconds from each key to the last request that reached the provider; 0 when none came after it."""
    async with AsyncExitStack() as up:
        terminal = up.enter_context(open_terminal(*SCREEN))
        at_work = await up.enter_async_context(sending(world, BUSY, terminal))
        await asyncio.sleep(RAMP_S)
        pauses = [await _pause(at_work, terminal) for _ in range(PAUSES)]
        at = [entry["at_us"] / 1e6 for entry in await at_work.simulator.ledger()]
    return [max(0.0, at[pause.requests - 1] - pause.pressed) for pause in pauses]


async def _pause(at_work: Sending, terminal: Terminal) -> _Pause:
    """One, and the number at work again."""
    pressed = time.monotonic()
    terminal.type("p")
    seen, requests = -1, (await at_work.simulator.totals())["requests"]
    async with asyncio.timeout(10):
        while requests != seen:
            await asyncio.sleep(STILL_S)
            seen, requests = requests, (await at_work.simulator.totals())["requests"]
    terminal.type("r")
    await at_work.simulator.until(lambda totals: totals["requests"] > requests + BUSY.rate)
    return _Pause(pressed, requests)


async def _alone(world: World) -> float:
    """Cores of an engine that lost its terminal."""
    async with AsyncExitStack() as up:
        terminal = up.enter_context(open_terminal(*SCREEN))
        at_work = await up.enter_async_context(sending(world, TEN, terminal))
        await asyncio.sleep(RAMP_S / 2)
        terminal.hang_up()
        at_work.process.send_signal(signal.SIGHUP)  # as the kernel does; the bench itself holds the other end
        await asyncio.sleep(RAMP_S / 2)
        return (await window(world, at_work.simulator, at_work.process, WINDOW_S)).span.cores("sender")
