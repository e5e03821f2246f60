"""What being seen costs: a scrape of /metrics every 15 s, and the counters behind it, at 1,000 sends/s.

A scrape is a matter of milliseconds a minute: too little to be told from the noise of a running engine. So it is
timed by itself, on the page of ten numbers, and held against what the engine uses for its sends.
"""

import asyncio
import timeit
from time import process_time

from prometheus_client import CollectorRegistry, generate_latest

from engine.observe.metrics import NETWORK, Histogram, NumberFigures
from engine.observe.prometheus import NodeCollector
from tests.bench import sends
from tests.bench.results import Goal, Row, Section
from tests.bench.world import World
from tests.support.scraped import eventful

EVERY_S = 15.0
MOST = 0.02
NUMBERS = 10
RATE = 1000.0
WATCHED_S = 6.0
SCRAPES, COUNTED = 100, 100_000


async def measure(world: World) -> Section:
    """The engine at its work, then a page and a count by themselves."""
    async with sends.sending(world, sends.ONE) as at_work:
        await asyncio.sleep(sends.RAMP_S)
        engine = await sends.window(world, at_work.simulator, at_work.process, WATCHED_S)
    page_s, page = scrape()
    count_s = counted()
    share = (page_s / EVERY_S + count_s * RATE) / (engine.each_ms / 1000 * RATE)
    size = f"{NUMBERS} numbers: {len(page) / 1000:.0f} kB, {len(page.splitlines()):,} lines"
    rows = [
        Row("One scrape of /metrics", each=1000 * page_s, note=size),
        Row(
            "Counting one send",
            each=1000 * count_s,
            note=f"of {engine.each_ms:.2f} ms that a send costs in all",
        ),
    ]
    goal = f"metrics cost at most {MOST:.0%} of the engine's CPU at 1,000 sends/s, a scrape every {EVERY_S:.0f} s"
    return Section(rows, [Goal(goal, f"{share:.2%}", share <= MOST)])


def scrape() -> tuple[float, bytes]:
    """CPU seconds of one scrape, and the page."""
    registry = CollectorRegistry()
    registry.register(NodeCollector(eventful(NUMBERS)))
    page = generate_latest(registry)
    took = timeit.repeat(lambda: generate_latest(registry), timer=process_time, number=SCRAPES, repeat=3)
    return min(took) / SCRAPES, page


def counted() -> float:
    """CPU seconds to count one send: two histograms and one stored result, the console's share of it included."""
    number, histogram = NumberFigures(), Histogram(NETWORK)

    def one() -> None:
        histogram.add(1.0, 0.25)
        histogram.add(1.0, 0.25)
        number.stored(1.0, "accepted", None, throttled=False)

    return min(timeit.repeat(one, timer=process_time, number=COUNTED, repeat=3)) / COUNTED
