"""Sends per second and CPU per send: the engine with and without its console, and what people would write instead.

All contestants meet the same simulator with the same latency, one after another, each with a fresh database on the
same server. A send counts when the simulator has taken it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import psutil  # type: ignore[import-untyped]

from engine.domain.pacing import interval, window_seconds
from engine.postgres.pool import Pool
from tests.bench.pgqueuer_worker import Choice, enqueue
from tests.bench.results import Goal, Row, Section
from tests.bench.terminal import Terminal, open_terminal
from tests.bench.usage import Span, between, look
from tests.bench.world import LATENCY_MS, TIDEGATE, TOKEN_VARIABLE, World, command, module, provider, tail
from tests.support import builders
from tests.support.simulator import Simulator

RUN_S = 20.0
RAMP_S, WINDOW_S = 0.2 * RUN_S, 0.6 * RUN_S
"""Measured is what lies between 20 % and 80 % of a run; the simulator's first request begins it."""

FULL = 0.85
"""The share of a core from which on whoever has it is taken to be at its end."""

STARTS_WITHIN_S = 30.0
IDS = tuple(f"1065403522429{n:02}" for n in range(10))
SCREEN = (120, 40)


@dataclass(frozen=True, slots=True)
class Load:
    """Numbers of one rate each, in messages/s; each is granted `limit`, a quarter more unless told otherwise.

    There are people enough for `lasts_s` seconds, and for a slow start.
    """

    numbers: int
    rate: float
    limit: float | None = None
    lasts_s: float = RUN_S

    @property
    def name(self) -> str:
        """For the table."""
        return f"{'one number' if self.numbers == 1 else f'{self.numbers} numbers'} at {self.rate:,.0f}/s"


@dataclass(frozen=True, slots=True)
class Sending:
    """An engine at work. `url`: its database; `port`: where it listens."""

    simulator: Simulator
    process: psutil.Process
    pool: Pool
    url: str
    port: int


Prepare = Callable[[str, Pool, Load], Awaitable[None]]
"""Puts numbers, a running campaign and its people into the database at a URL, before the engine starts."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One contestant's window. `statuses`: per second, as taken by the engine's webhook."""

    sends: float
    statuses: float
    span: Span
    behind: int = 0
    failed: int = 0

    @property
    def each_ms(self) -> float:
        """CPU milliseconds of the sending process for one send."""
        return 1000 * self.span.cores("sender") / self.sends if self.sends else float("nan")

    @property
    def per_cpu_second(self) -> float:
        """Sends for one CPU second of the sending process."""
        return self.sends / self.span.cores("sender")


CHOICES = (
    Choice(batch=100, tasks=250, tuned=False),  # what 1,000/s at 250 ms asks for
    Choice(batch=50, tasks=100, tuned=False),  # no more tasks than connections
    Choice(batch=100, tasks=1000, tuned=True),
)

# The driver says text for its enum, whatever its name is.
FAILED = "SELECT count(*) FROM pgqueuer_log WHERE status::text = 'exception'"

ONE, TEN = Load(1, 1000.0), Load(10, 80.0)
FLAT_OUT = Load(1, 4000.0)
"""More than one process can do: what is measured is its limit."""


COMPARED = (
    "**What is compared.** Every contestant posts the same request to the same simulator "
    f"({LATENCY_MS:.0f} ms, no limit of its own), one after another, on one machine that also carries the simulator "
    "and Postgres (the product's own settings, fsync on). CPU is that of the sending process with all its threads, "
    f"over {WINDOW_S:.0f} s in the middle of a run of {RUN_S:.0f} s. The engine's figure holds everything it does: "
    "claim, mark before the send, pace, result, books, proof of the ceiling, and three statuses a message received, "
    f"stored and applied. Its windows are {window_seconds(ONE.rate)} s wide, so that "
    + " and ".join(
        f"{load.name} means at most {load.numbers / interval(load.rate):,.0f} sends/s" for load in (ONE, TEN)
    )
    + "."
)

FAIR = (
    "**Fair to the others.** httpx and PgQueuer get no statuses, keep no pace, mark nothing before a send and keep no "
    "message id. PgQueuer runs under uvloop as `pgq run` does, with asyncpg's pool and shared clients. httpx's default "
    "pool gets dear when more tasks want it than it has connections, so it is measured on both sides of that line."
)


async def measure(world: World) -> Section:
    """All contestants, one after another."""
    headless = await engine(world, ONE)
    console = await engine(world, ONE, console=True)
    ten = await engine(world, TEN)
    ten_console = await engine(world, TEN, console=True)
    flat_out = await engine(world, FLAT_OUT)
    bare = {tasks: await httpx_alone(world, tasks) for tasks in (100, 250)}
    queues = {choice: await pgqueuer(world, choice) for choice in CHOICES}
    rows = [
        _row(f"Engine, headless, {ONE.name}", headless),
        _row(f"Engine, console open on 120x40, {ONE.name}", console),
        _row(f"Engine, headless, {TEN.name}", ten),
        _row(f"Engine, console open on 120x40, {TEN.name}", ten_console),
        _row(f"Engine, headless, {FLAT_OUT.name}: as fast as one process goes", flat_out),
        *(_row(f"httpx alone: one client, default pool, {tasks} tasks", m) for tasks, m in bare.items()),
        *(_row(choice.name, m) for choice, m in queues.items()),
    ]
    asked, *others = (headless.per_cpu_second / measured.per_cpu_second for measured in queues.values())
    goals = [*_goals(headless, console, ten_console), *_against(asked, others)]
    return Section(rows, goals, [COMPARED, FAIR, _next_bottleneck(flat_out)])


async def people(url: str, pool: Pool, load: Load) -> None:
    """One campaign over all numbers, with more people than a run can write to."""
    made = await numbered(pool, load)
    await builders.recipients(pool, made, round(load.numbers * load.rate * (load.lasts_s + STARTS_WITHIN_S)))
    await pool.execute("VACUUM ANALYZE")


async def numbered(pool: Pool, load: Load, name: str = "reminder") -> builders.MadeCampaign:
    """The numbers, and a running campaign that may use them all."""
    ids = list(IDS[: load.numbers])
    for number in ids:
        limit = load.limit or load.rate * 1.25
        await builders.number(pool, number, rate=load.rate, limit=limit, token=f"env:{TOKEN_VARIABLE}")
    return await builders.campaign(pool, name, numbers=ids, state="running", body=["name"])


@asynccontextmanager
async def sending(
    world: World, load: Load, terminal: Terminal | None = None, prepare: Prepare = people, **settings: str
) -> AsyncIterator[Sending]:
    """An engine that sends at full rate with statuses flowing back. `settings`: gateway_token="x" and the like."""
    port = world.port()
    async with AsyncExitStack() as up:
        url, pool = await up.enter_async_context(world.database())
        await prepare(url, pool, load)
        simulator = await up.enter_async_context(provider(f"http://127.0.0.1:{port}/webhook"))
        environment = world.environment(url, api_url=simulator.url, listen=f"127.0.0.1:{port}", **settings)
        words = (TIDEGATE, "run") if terminal else (TIDEGATE, "run", "--no-ui")
        log = world.directory / "engine.log"
        screen = terminal.slave if terminal else None
        running = command(*words, environment=environment, log=log, terminal=screen)
        process = await up.enter_async_context(running)
        try:
            await simulator.until(lambda totals: totals["requests"] > 0, STARTS_WITHIN_S)
        except TimeoutError:
            said = terminal.last if terminal else tail(log)
            raise RuntimeError(
                f"The engine sent nothing for {STARTS_WITHIN_S:.0f} s. It said: {said}"
            ) from None
        yield Sending(simulator, process, pool, url, port)


async def engine(world: World, load: Load, *, console: bool = False) -> Measured:
    """The engine itself, statuses flowing."""
    async with AsyncExitStack() as up:
        terminal = up.enter_context(open_terminal(*SCREEN)) if console else None
        at_work = await up.enter_async_context(sending(world, load, terminal))
        await asyncio.sleep(RAMP_S)
        measured = await window(world, at_work.simulator, at_work.process)
        behind = int(await at_work.pool.fetchval("SELECT count(*) FROM inbox_work"))
        return Measured(measured.sends, measured.statuses, measured.span, behind)


async def window(
    world: World, simulator: Simulator, process: psutil.Process, seconds: float = WINDOW_S
) -> Measured:
    """Watch for so long."""
    watched = {"sender": process, "Postgres": world.postmaster, "simulator": psutil.Process(simulator.pid)}
    totals, before = await simulator.totals(), look(watched)
    await asyncio.sleep(seconds)
    totals_after, after = await simulator.totals(), look(watched)
    span = between(before, after)
    statuses = sum(totals_after["statuses"].values()) - sum(totals["statuses"].values())
    return Measured(
        (totals_after["accepted"] - totals["accepted"]) / span.seconds, statuses / span.seconds, span
    )


async def httpx_alone(world: World, tasks: int) -> Measured:
    """A loop around httpx."""
    return await baseline(world, "bare_httpx", lambda url: [url, str(tasks)])


async def pgqueuer(world: World, choice: Choice) -> Measured:
    """PgQueuer's worker, with more jobs than it can do in the time."""
    async with world.database("bench_empty") as (database, pool):
        await enqueue(pool, 40_000)
        await pool.execute("VACUUM ANALYZE")
        measured = await baseline(world, "pgqueuer_worker", lambda url: [database, url, *choice.words()])
        return replace(measured, failed=await pool.fetchval(FAILED))


async def baseline(world: World, name: str, arguments: Callable[[str], Sequence[str]]) -> Measured:
    """Another sender, without statuses: it could not take them. `arguments` of its module follow from the URL."""
    async with provider("") as simulator:
        words = module(name, *arguments(f"{simulator.url}/{IDS[0]}/messages"))
        log = world.directory / f"{name}.log"
        async with command(*words, environment=world.environment("postgresql://unused"), log=log) as process:
            await simulator.until(lambda totals: totals["requests"] > 0, STARTS_WITHIN_S)
            await asyncio.sleep(RAMP_S)
            return await window(world, simulator, process)


def _row(what: str, measured: Measured) -> Row:
    span = measured.span
    notes = [f"{name} {span.cores(name):.0%} of a core" for name in ("sender", "Postgres", "simulator")]
    if measured.statuses:
        notes.append(f"{measured.statuses:,.0f} statuses/s taken, {measured.behind} bodies not applied yet")
    if measured.failed:
        notes.append(f"{measured.failed:,} jobs failed for want of a connection")
    if span.others > 0.1:
        notes.append(f"strangers on this machine {span.others:.0%}")
    return Row(what, measured.sends, measured.each_ms, note=", ".join(notes))


def _goals(headless: Measured, console: Measured, ten: Measured) -> list[Goal]:
    enough = console.sends >= 600 and ten.sends >= 600
    flowing = f"{console.sends:,.0f}/s from one number, {ten.sends:,.0f}/s from ten"
    cost = 1 - console.sends / headless.sends
    return [
        Goal("at least 600 sends/s from one process, console open, statuses flowing", flowing, enough),
        Goal("the console costs the sending rate less than 5 %", f"{cost:.1%}", cost < 0.05),
    ]


def _against(asked: float, others: Sequence[float]) -> list[Goal]:
    held, tuned = others
    most = "at least 10 times the sends per CPU second of PgQueuer + httpx"
    return [
        Goal(f"{most}, one client and the 250 tasks that 1,000/s need", f"{asked:.1f} times", asked >= 10),
        Goal(
            f"{most}, set up at its best",
            f"{held:.1f} times when it is held to 100 tasks, {tuned:.1f} times when its clients are tuned",
            min(held, tuned) >= 10,
        ),
    ]


def _next_bottleneck(flat_out: Measured) -> str:
    """What was at its end when more was asked for than one process can do."""
    span, cores = flat_out.span, psutil.cpu_count() or 1
    parts = {"the engine": "sender", "Postgres": "Postgres", "the simulator": "simulator"}
    used = {part: span.cores(name) for part, name in parts.items()}
    total = sum(used.values()) + span.others
    shares = ", ".join(f"{part} {share:.0%} of a core" for part, share in used.items())
    dearest = max(used, key=lambda part: used[part])
    if used[dearest] >= FULL:
        end = f"{dearest} had one core to itself and could not use another: that is the next bottleneck"
        end += "; more rate asks for a second node with other numbers" if dearest == "the engine" else ""
    elif total >= FULL * cores:
        end = f"the {cores} cores of this machine were the limit, not one part of the engine"
    else:
        end = f"nothing was at its end ({total:.0%} of {cores} cores were busy): the limit is a wait, not CPU"
    return (
        f"**Next bottleneck.** Asked for {FLAT_OUT.rate:,.0f}/s one process did {flat_out.sends:,.0f} sends/s and took "
        f"{flat_out.statuses:,.0f} statuses/s, with {shares}, strangers {span.others:.0%}: {end}."
    )
