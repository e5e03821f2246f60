"""What an engine remembers, over days: every ring filled second by second, as fast as the machine can."""

import asyncio
import gc
import tracemalloc

from engine.observe.metrics import Histogram, NodeFigures, NumberFigures
from engine.observe.recall import Recall
from tests.bench.results import Goal, Row, Section
from tests.bench.world import World
from tests.console.support import a_campaign, a_number, normal

FULL_H, LATER_H = 7, 19
"""Hours: the longest ring is six long; twelve hours later it has been written over twice."""

PICTURE_S = 30
"""Seconds between two pictures here; an engine makes two a second, of the same figures."""

NUMBERS = (a_number("0001", rate=80.0),)
CAMPAIGNS = tuple(a_campaign(f"campaign {nth}") for nth in range(22))
CODES = (130429, 131026, 131049)
MOST = 1.02


async def measure(_: World) -> Section:
    """Bytes that are held after the longest ring is full, and twelve hours later."""
    full, later = await asyncio.to_thread(_filled)
    what = f"What a number and {len(CAMPAIGNS)} campaigns leave in memory"
    return Section(
        [Row(what, note=f"{full / 1e6:.2f} MB after {FULL_H} hours, {later / 1e6:.2f} MB after {LATER_H}")],
        [
            Goal(
                f"memory is flat: {LATER_H - FULL_H} hours after the longest ring is full at most {MOST - 1:.0%} more",
                f"{later / full - 1:+.2%}",
                later <= MOST * full,
            )
        ],
    )


def _filled() -> tuple[int, int]:
    tracemalloc.start()
    try:
        figures, delays = NodeFigures(), Histogram()
        recall = Recall(figures)
        taken = []
        for begins, ends in ((0, FULL_H), (FULL_H, LATER_H)):
            _live(recall, figures, delays, begins * 3600, ends * 3600)
            gc.collect()
            taken.append(tracemalloc.get_traced_memory()[0])
        return taken[0], taken[1]
    finally:
        tracemalloc.stop()


def _live(recall: Recall, figures: NodeFigures, delays: Histogram, first: int, end: int) -> None:
    snapshot, keys = normal(numbers=NUMBERS, campaigns=CAMPAIGNS), {n.id: i for i, n in enumerate(NUMBERS)}
    for second in range(first, end):
        at = float(second)
        for key in keys.values():
            _second(figures.number(key), at)
        figures.claim_time.add(at, 0.004)
        figures.commit_time.add(at, 0.007)
        delays.add(at, 1.0 + second % 7)
        if second % PICTURE_S == PICTURE_S - 1:
            recall.complete(snapshot, keys, at + 1.0, delays)


def _second(number: NumberFigures, at: float) -> None:
    number.accepted.add(at, 78)
    number.tries.add(at, 80)
    number.refused.add(at, 2)
    number.token_wait.add(at, 0.05 * (1 + at % 11))
    number.latency.add(at, 0.1 * (1 + at % 5))
    number.codes.add(at, CODES[int(at) % len(CODES)])
