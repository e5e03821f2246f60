"""Baseline: a PgQueuer worker whose entry point posts with httpx, as `pgq run` would run it.

Arguments: database URL, messages URL, batch size, tasks, `one` (one client with its default pool) or `tuned`.

As its documentation and its own benchmark have it: uvloop, the asyncpg pool driver, the client shared through
`resources`, a bound on running tasks. Each job is claimed with SKIP LOCKED in batches, kept alive by heartbeats,
and moved to the log in batches when its answer was good.
What it does not do, and the engine does: keep a rate, mark a row before its request leaves, store the message id,
count books, take statuses, draw a screen. A worker that dies leaves jobs that are sent again.
"""

import itertools
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import cast

import asyncpg
import httpx
import pgqueuer
import uvloop
from pgqueuer import Job, PgQueuer, Queries
from pgqueuer.models import Context

from engine.domain.message import Token
from tests.bench.message import headers, message

ENTRYPOINT = "send"
PER_CLIENT = 10
"""Connections of one client in the tuned set-up: httpcore looks at all of its connections for each request, so ten
clients of ten cost a fraction of one of a hundred."""

Clients = Iterator[httpx.AsyncClient]


@dataclass(frozen=True, slots=True)
class Choice:
    """How the worker is set up."""

    batch: int
    tasks: int
    tuned: bool

    @property
    def name(self) -> str:
        """For the table."""
        clients = f"tuned: clients of {PER_CLIENT} connections" if self.tuned else "one client, default pool"
        return f"PgQueuer + httpx, {clients}, batches of {self.batch}, {self.tasks} tasks"

    def words(self) -> Sequence[str]:
        """As arguments of this module."""
        return str(self.batch), str(self.tasks), "tuned" if self.tuned else "one"


async def enqueue(pool: "asyncpg.Pool[asyncpg.Record]", jobs: int) -> None:
    """PgQueuer's tables, and one job for each person."""
    queries = Queries.from_asyncpg_pool(pool)
    await queries.install()
    for start in range(1, jobs + 1, 1000):
        people = range(start, start + 1000)
        payloads: list[bytes | None] = [
            json.dumps({"id": n, "to": f"+5511{n:09}", "name": "Ana"}).encode() for n in people
        ]
        await queries.enqueue([ENTRYPOINT] * len(payloads), payloads, [0] * len(payloads))


@asynccontextmanager
async def clients(choice: Choice) -> AsyncIterator[Clients]:
    """One client, or enough small ones to take turns with."""
    limits = httpx.Limits(max_connections=PER_CLIENT, max_keepalive_connections=PER_CLIENT)
    async with AsyncExitStack() as up:
        if not choice.tuned:
            yield itertools.repeat(await up.enter_async_context(httpx.AsyncClient(headers=headers())))
            return
        several: Sequence[httpx.AsyncClient] = [
            await up.enter_async_context(httpx.AsyncClient(headers=headers(), limits=limits, timeout=30.0))
            for _ in range(-(-choice.tasks // PER_CLIENT))
        ]
        yield itertools.cycle(several)


async def main(database: str, url: str, choice: Choice) -> None:
    @asynccontextmanager
    async def worker() -> AsyncIterator[PgQueuer]:
        async with asyncpg.create_pool(database) as pool, clients(choice) as turns:
            queue = PgQueuer.from_asyncpg_pool(pool, resources={"clients": turns})

            async def send(job: Job, context: Context) -> None:
                client = next(cast(Clients, context.resources["clients"]))
                person = json.loads(job.payload or b"")
                body = message(person["to"], person["name"], Token("pgq", person["id"], job.attempts + 1))
                answer = await client.post(url, json=body)
                answer.raise_for_status()

            # Called, not written as a decorator: its types are only known where the bench is installed.
            queue.entrypoint(ENTRYPOINT, accepts_context=True)(send)
            yield queue

    await pgqueuer.run(worker, batch_size=choice.batch, max_concurrent_tasks=choice.tasks)


if __name__ == "__main__":
    database_url, messages_url, batch, tasks, kind = sys.argv[1:]
    uvloop.run(main(database_url, messages_url, Choice(int(batch), int(tasks), kind == "tuned")))
