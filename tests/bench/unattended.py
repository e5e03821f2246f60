"""The console when nobody works at it: its first picture, a screen over an idle engine, a terminal that hangs."""

import asyncio
import time
from contextlib import AsyncExitStack

from tests.bench.flow import Flow, flow
from tests.bench.results import Goal, Row, Section
from tests.bench.sends import RAMP_S, SCREEN, Load, sending
from tests.bench.terminal import open_terminal
from tests.bench.usage import main_thread_s, quantile
from tests.bench.world import TIDEGATE, World, command

PAINTS = 5
PAINTS_WITHIN_S = 30.0
FIRST = "NUMBERS"
"""Drawn with the first picture."""

MOST_FIRST_S, MOST_IDLE = 1.5, 0.02
MOST_LATE_S, MOST_GAP_S = 0.05, 1.0
IDLE_S = 10.0

STALLED_S = 60.0
LOAD = Load(1, 80.0, lasts_s=RAMP_S + IDLE_S + STALLED_S)


async def measure(world: World) -> Section:
    """First pictures, then rest, then the terminal that hangs."""
    firsts, idle, idle_bytes = await _start(world)
    before, stalled = await _stall(world)
    first = quantile(firsts, 0.5)
    late = max(0.0, stalled.gap(0.99) - 1 / before.rate)
    size = f"{SCREEN[0]}x{SCREEN[1]}"
    rows = [
        Row(
            f"First picture of `tidegate run` on {size}",
            p50=1000 * first,
            p99=1000 * max(firsts),
            note=f"from the start of the process, {PAINTS} times",
        ),
        Row(
            f"Console on {size}, engine idle",
            idle_bytes,
            note=f"bytes to the terminal; the screen's thread takes {idle:.1%} of a core",
        ),
        before.row(f"Engine under a console, {LOAD.name}"),
        stalled.row(f"The same while the terminal reads nothing for {STALLED_S:.0f} s"),
    ]
    goals = [
        Goal(f"first picture within {MOST_FIRST_S} s (median)", f"{first:.2f} s", first < MOST_FIRST_S),
        Goal(
            f"over an idle engine the screen takes less than {MOST_IDLE:.0%} of a core",
            f"{idle:.1%}",
            idle < MOST_IDLE,
        ),
        Goal(
            f"with the terminal stalled for {STALLED_S:.0f} s no gap between sends above {MOST_GAP_S:.0f} s, and "
            f"lateness p99 below {1000 * MOST_LATE_S:.0f} ms",
            f"longest gap {1000 * stalled.gap(1.0):.0f} ms, p99 {1000 * late:.0f} ms over the even pace",
            stalled.gap(1.0) <= MOST_GAP_S and late < MOST_LATE_S,
        ),
    ]
    return Section(rows, goals)


async def _start(world: World) -> tuple[list[float], float, float]:
    """Seconds to each first picture; then, of the last one at rest, cores of its thread and bytes/s."""
    firsts = []
    async with world.database() as (url, _):
        environment = world.environment(url, listen=f"127.0.0.1:{world.port()}")
        for nth in range(PAINTS):
            with open_terminal(*SCREEN) as terminal:
                started = time.monotonic()
                log = world.directory / "console.log"
                async with command(
                    TIDEGATE, "run", environment=environment, log=log, terminal=terminal.slave
                ) as process:
                    await terminal.until(FIRST, PAINTS_WITHIN_S)
                    firsts.append(time.monotonic() - started)
                    if nth < PAINTS - 1:
                        continue
                    await asyncio.sleep(RAMP_S)
                    used, drawn = main_thread_s(process), terminal.received
                    await asyncio.sleep(IDLE_S)
                    used, drawn = main_thread_s(process) - used, terminal.received - drawn
    return firsts, used / IDLE_S, drawn / IDLE_S


async def _stall(world: World) -> tuple[Flow, Flow]:
    """Sends while the terminal reads, and while it does not."""
    async with AsyncExitStack() as up:
        terminal = up.enter_context(open_terminal(*SCREEN))
        at_work = await up.enter_async_context(sending(world, LOAD, terminal))
        await asyncio.sleep(RAMP_S)
        marks = [(await at_work.simulator.totals())["requests"]]
        for seconds in (IDLE_S, STALLED_S):
            await asyncio.sleep(seconds)
            marks.append((await at_work.simulator.totals())["requests"])
            terminal.stall()
        ledger = await at_work.simulator.ledger()
    first, then, last = marks
    return flow(ledger[first:then]), flow(ledger[then:last])
