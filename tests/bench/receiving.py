"""Webhook bodies per second into one receiver, and whether receiver and applier keep up with the statuses.

Posted from this process over kept-alive connections, each with one body at a time; bodies are written and signed
before the clock starts. Each person's message is told sent, delivered and read, a third of the run apart.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]
from pyreqwest.client import Client, ClientBuilder

from engine.domain.message import Token
from engine.domain.recipient import State
from engine.domain.signature import sign
from engine.postgres.pool import Pool
from tests.bench.results import Goal, Row, Section
from tests.bench.usage import Span, between, look, quantile
from tests.bench.world import World, command, module, tail
from tests.support import builders
from tests.support.bodies import status, webhook
from tests.support.simulator import APP_SECRET

NUMBER = "106540352242922"
NEEDED = 3300.0
"""Statuses/s of 1,000 sends/s, with some to spare."""

STARTS_WITHIN_S = 20.0
APPLIED_WITHIN_S = 120.0

# Rows whose statuses have all been applied.
READ = "SELECT count(*) FROM recipient WHERE state = 'r'"
WAITING = "SELECT count(*) FROM inbox_work"


@dataclass(frozen=True, slots=True)
class Load:
    """`people` who each get three statuses, in bodies of `size`, over so many connections."""

    size: int
    people: int
    connections: int

    @property
    def statuses(self) -> int:
        """In all."""
        return 3 * self.people


@dataclass(slots=True)
class Posted:
    """Answer times in seconds; when the first body left, the last was answered, the last was applied."""

    times: list[float]
    began: float
    answered: float
    applied: float
    span: Span


Body = tuple[bytes, str]

LOADS = (Load(1, 8_000, 64), Load(100, 40_000, 8))


async def measure(world: World) -> Section:
    """Bodies of one status, as Meta mostly sends them, and of a hundred."""
    rows, sustained = [], {}
    for load in LOADS:
        posted = await _run(world, load)
        rate = load.statuses / load.size / (posted.answered - posted.began)
        sustained[load.size] = load.statuses / (posted.applied - posted.began)
        cores = posted.span.cores("receiver"), posted.span.cores("Postgres")
        note = (
            f"{load.connections} connections; {sustained[load.size]:,.0f} statuses/s from first body to last row "
            f"moved; receiver with applier {cores[0]:.0%} of a core, Postgres {cores[1]:.0%}"
        )
        each = 1000 * cores[0] * posted.span.seconds / (load.statuses / load.size)
        name = (
            f"Webhook bodies with {load.size} status{'es' if load.size > 1 else ''}, one receiver and applier"
        )
        p50, p99 = (1000 * quantile(posted.times, share) for share in (0.5, 0.99))
        rows.append(Row(name, rate, each, p50, p99, note))
    told = ", ".join(f"{rate:,.0f}/s in bodies of {size}" for size, rate in sustained.items())
    goal = Goal(f"at least {NEEDED:,.0f} statuses/s received and applied", told, sustained[100] >= NEEDED)
    return Section(rows, [goal])


async def _run(world: World, load: Load) -> Posted:
    async with AsyncExitStack() as up:
        url, pool = await up.enter_async_context(world.database())
        await builders.number(pool, NUMBER)
        made = await builders.campaign(pool, state="running", numbers=[NUMBER])
        ids = await builders.recipients(pool, made, load.people, state=State.SENT)
        await pool.execute("VACUUM ANALYZE")
        bodies = _bodies(await pool.fetchval("SELECT random_id FROM campaign"), ids, load.size)
        port, log = world.port(), world.directory / "receiver.log"
        log.unlink(missing_ok=True)
        words = module("receiver", url, str(port))
        process = await up.enter_async_context(command(*words, environment=world.environment(url), log=log))
        client = await up.enter_async_context(ClientBuilder().no_proxy().build())
        async with asyncio.timeout(STARTS_WITHIN_S):
            while not (log.exists() and "ready" in tail(log)):
                await asyncio.sleep(0.05)
        return await _post(world, process, pool, client, f"http://127.0.0.1:{port}/webhook", bodies, load)


async def _post(
    world: World,
    process: psutil.Process,
    pool: Pool,
    client: Client,
    url: str,
    bodies: Sequence[Body],
    load: Load,
) -> Posted:
    watched = {"receiver": process, "Postgres": world.postmaster}
    times: list[float] = []
    turns = iter(bodies)

    async def post_for_ever() -> None:
        for data, signature in turns:
            started = time.monotonic()
            request = client.post(url).header("x-hub-signature-256", signature).body_bytes(data).build()
            answer = await request.send()
            times.append(time.monotonic() - started)
            assert answer.status == 200, answer.status

    before = look(watched)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(load.connections):
            tasks.create_task(post_for_ever())
    answered = time.monotonic()
    async with asyncio.timeout(APPLIED_WITHIN_S):
        while await pool.fetchval(WAITING):
            await asyncio.sleep(0.02)
    after = look(watched)
    read = await pool.fetchval(READ)
    assert read == load.people, f"{load.people - read} of {load.people} rows did not come to be read"
    return Posted(times, before.at, answered, after.at, between(before, after))


def _bodies(campaign: str, ids: Sequence[int], size: int) -> list[Body]:
    """Signed, in the order in which they are posted."""
    told = [(word, row) for word in ("sent", "delivered", "read") for row in ids]
    bodies = []
    for start in range(0, len(told), size):
        items = [status(word, Token(campaign, row, 1)) for word, row in told[start : start + size]]
        data = webhook(*items, number=NUMBER)
        bodies.append((data, sign(APP_SECRET.encode(), data)))
    return bodies
