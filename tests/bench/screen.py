"""The console over a busy engine: CPU of its thread, bytes to the terminal, and how soon a key has its effect."""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from console.guard import KeyGuard
from tests.bench.results import Goal, Row, Section
from tests.bench.sends import RAMP_S, TEN, WINDOW_S, sending, window
from tests.bench.terminal import Terminal, open_terminal
from tests.bench.usage import main_thread_s, quantile
from tests.bench.world import World

SMALL, LARGE = (80, 24), (120, 40)
MOST_BYTES = {SMALL: 2_000, LARGE: 10_000}
PRESSES = 25
BETWEEN_PRESSES_S = 0.3
"""Slower than a hand at its fastest: the console drops what comes too fast."""


@dataclass(slots=True)
class Shown:
    """`ui`: cores that the screen's thread used. `keys`: seconds from a key to its picture."""

    sends: float
    ui: float
    bytes_s: float
    keys: list[float] = field(default_factory=list)


async def measure(world: World) -> Section:
    """The small screen at 1 Hz and the large one at 2 Hz, ten numbers sending, so that every line changes."""
    small, large = await _show(world, SMALL), await _show(world, LARGE)
    rows = [_row("80x24, 1 Hz", small), _row("120x40, 2 Hz", large)]
    p50, p95 = (1000 * quantile(large.keys, share) for share in (0.5, 0.95))
    settle = 1000 * KeyGuard().settle
    note = f"p95 {p95:.0f} ms of {PRESSES}; {settle:.0f} ms of it is the wait for a second key"
    rows.append(Row("Key to picture, `?` on 120x40", p50=p50, p99=1000 * max(large.keys), note=note))
    told = f"{small.bytes_s / 1000:.1f} and {large.bytes_s / 1000:.1f} kB/s"
    frugal = small.bytes_s <= MOST_BYTES[SMALL] and large.bytes_s <= MOST_BYTES[LARGE]
    return Section(
        rows,
        [
            Goal(
                "the screen takes at most 10 % of a core at 2 Hz on 120x40",
                f"{large.ui:.1%}",
                large.ui <= 0.1,
            ),
            Goal("at most 2 kB/s on 80x24 and 10 kB/s on 120x40", told, frugal),
            Goal("a key has its effect within 100 ms (p95)", f"{p95:.0f} ms", p95 < 100),
        ],
    )


async def _show(world: World, size: tuple[int, int]) -> Shown:
    async with AsyncExitStack() as up:
        terminal = up.enter_context(open_terminal(*size))
        at_work = await up.enter_async_context(sending(world, TEN, terminal))
        await asyncio.sleep(RAMP_S)
        ui, received = main_thread_s(at_work.process), terminal.received
        measured = await window(world, at_work.simulator, at_work.process, WINDOW_S)
        seconds = measured.span.seconds
        used, drawn = main_thread_s(at_work.process) - ui, terminal.received - received
        keys = await _press(terminal) if size == LARGE else []
        return Shown(measured.sends, used / seconds, drawn / seconds, keys)


async def _press(terminal: Terminal) -> list[float]:
    """Open the help and leave it again; the times of opening."""
    times = []
    for _ in range(PRESSES):
        await asyncio.sleep(BETWEEN_PRESSES_S)
        started = time.monotonic()
        await terminal.press("?", shows="KEYS")
        times.append(time.monotonic() - started)
        await asyncio.sleep(BETWEEN_PRESSES_S)
        await terminal.press("\x1b", shows="NUMBERS")
    return times


def _row(size: str, shown: Shown) -> Row:
    note = f"bytes to the terminal; the screen's thread takes {shown.ui:.1%} of a core, {shown.sends:,.0f} sends/s"
    return Row(f"Console on {size}, {TEN.name}", shown.bytes_s, note=note)
