"""A campaign that sends at 50/s while an import that holds its people, and many more, runs on the same database.

Both windows are of one run and judged by the simulator's ledger: the seconds before the import, and those from the
start of its command to its end.
"""

import asyncio

from engine.postgres.pool import Pool
from tests.bench.flow import flow
from tests.bench.imports import carry_out, write_audience
from tests.bench.results import Goal, Section
from tests.bench.sends import RAMP_S, Load, numbered, sending
from tests.bench.usage import between, look
from tests.bench.world import World
from tests.support import builders

LOAD = Load(1, 50.0)
SENDING, COMING = "sending", "coming"
AUDIENCE, IMPORTED = 50_000, 300_000
"""People of the campaign that sends, and of the file, which begins with the same ones."""

BEFORE_S = 20.0
LEAST = 0.9


async def measure(world: World) -> Section:
    """Before and beside it."""
    path = world.directory / "coming.csv"
    write_audience(path, IMPORTED)

    async def prepare(url: str, pool: Pool, load: Load) -> None:
        await numbered(pool, load, SENDING)
        await builders.campaign(pool, COMING, body=["name", "date"])
        first = world.directory / "sending.csv"
        write_audience(first, AUDIENCE)
        await carry_out(world.environment(url), first, SENDING, AUDIENCE)
        await pool.execute("VACUUM ANALYZE")

    async with sending(world, LOAD, prepare=prepare) as at_work:
        await asyncio.sleep(RAMP_S)
        first = (await at_work.simulator.totals())["requests"]
        await asyncio.sleep(BEFORE_S)
        watched = {"Postgres": world.postmaster}
        began, then = (await at_work.simulator.totals())["requests"], look(watched)
        ran = await carry_out(world.environment(at_work.url), path, COMING, IMPORTED)
        ended, now = (await at_work.simulator.totals())["requests"], look(watched)
        ledger = await at_work.simulator.ledger()
    path.unlink()
    before, beside = flow(ledger[first:began]), flow(ledger[began:ended])
    span = between(then, now)
    note = (
        f"{ran.seconds:.1f} s, {IMPORTED / ran.seconds:,.0f} rows/s; "
        f"the command {ran.cpu / ran.seconds:.0%} of a core, Postgres {span.cores('Postgres'):.0%} of a core"
    )
    kept = beside.rate / before.rate
    slower = beside.gap(0.99) / before.gap(0.99)
    goal = Goal(
        f"an import of {IMPORTED:,} rows that holds its audience takes less than 10 % of a campaign's sending at 50/s",
        f"{kept:.1%} of the rate was kept; the p99 of the gap between two sends is {slower:.2f} times as long",
        kept >= LEAST,
    )
    rows = [
        before.row("Campaign at 50/s before an import"),
        beside.row(f"The same beside an import of {IMPORTED:,} rows that holds its audience", note),
    ]
    return Section(rows, [goal])
