"""Nodes that are alive, and the standing jobs that one of them does for all."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from engine.domain.heard import Heard
from engine.domain.snapshot import NodeView
from engine.postgres.pool import Executor

BEAT = """
INSERT INTO node (id, name, host, pid, advertise, draining) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp(), draining = excluded.draining
"""

SIGNS = "SELECT id, draining, extract(epoch FROM clock_timestamp() - seen_at)::float8 AS silent_s FROM node"

# Heard of by the database's clock alone: no two nodes' clocks have to agree.
SILENT = """
SELECT id, name, host, pid, draining, extract(epoch FROM clock_timestamp() - seen_at)::float8 AS silent
  FROM node WHERE id = ANY($1) AND seen_at < clock_timestamp() - make_interval(secs => $2)
 ORDER BY name, id
"""

HEARD = """
SELECT name, extract(epoch FROM clock_timestamp() - seen_at)::float8 AS silent FROM node ORDER BY seen_at DESC
"""

LEAVE = "DELETE FROM node WHERE id = $1"

FORGET = "DELETE FROM node WHERE seen_at < clock_timestamp() - interval '1 day'"

TAKE_JOB = """
INSERT INTO job_lease AS j (name, owner, until) VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
 WHERE j.owner = excluded.owner OR j.until < clock_timestamp()
"""

LEAVE_JOBS = "UPDATE job_lease SET until = clock_timestamp() WHERE owner = $1"


@dataclass(frozen=True, slots=True)
class Identity:
    """One process of the engine."""

    id: UUID
    name: str
    host: str
    pid: int
    advertise: str | None


@dataclass(frozen=True, slots=True)
class Sign:
    """What a node said last, and how long ago by the database's clock."""

    draining: bool
    silent_s: float


async def beat(db: Executor, node: Identity, *, draining: bool = False) -> None:
    """Say that this node is alive."""
    await db.execute(BEAT, node.id, node.name, node.host, node.pid, node.advertise, draining)


async def signs(db: Executor) -> dict[UUID, Sign]:
    """Of all nodes that did not take their leave."""
    return {row["id"]: Sign(row["draining"], row["silent_s"]) for row in await db.fetch(SIGNS)}


async def silent(db: Executor, nodes: Collection[UUID], for_s: float) -> dict[UUID, NodeView]:
    """Those of `nodes` that have given no sign for so many seconds; which numbers they hold is not said here."""
    rows = await db.fetch(SILENT, list(nodes), for_s)
    return {
        r["id"]: NodeView(r["name"], r["host"], r["pid"], r["silent"], False, r["draining"], (), 0.0, 0.0)
        for r in rows
    }


async def heard(db: Executor) -> list[Heard]:
    """All that did not take their leave within the last day, the liveliest first."""
    return [Heard(*row) for row in await db.fetch(HEARD)]


async def leave(db: Executor, node: UUID) -> None:
    """This node is going; its jobs are free at once."""
    await db.execute(LEAVE_JOBS, node)
    await db.execute(LEAVE, node)


async def forget_old(db: Executor) -> None:
    """Nodes that died a day ago are of no interest any more."""
    await db.execute(FORGET)


async def take_job(db: Executor, name: str, node: UUID, seconds: float) -> bool:
    """Whether this node does the job for the next `seconds`; prolongs its own turn."""
    return (await db.execute(TAKE_JOB, name, node, seconds)).endswith(" 1")
