"""What nodes publish of themselves for `tidegate attach`, and what is read of all of them at once."""

import zlib
from dataclasses import dataclass, replace
from uuid import UUID

import msgspec

from engine.domain.snapshot import Snapshot
from engine.postgres.pool import Executor

SECONDS = 300
"""Of the per-second series; older moments are in the series by the minute."""

EVENTS = 50
"""Of the event log."""

PUBLISH = "UPDATE node SET snapshot = $2, snapshot_at = clock_timestamp() WHERE id = $1"

# Ages by the database's clock, so that no viewer's clock can make a dead node look alive.
READ = """
SELECT id, name, host, pid, draining,
       extract(epoch FROM clock_timestamp() - coalesce(snapshot_at, started_at))::float8 AS age_s, snapshot
  FROM node ORDER BY name, started_at
"""

OWNERS = "SELECT n.id, l.owner FROM lease l JOIN number n USING (number_id) WHERE l.released_at IS NULL"

VERSION = "SELECT version FROM control"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Snapshot).decode


@dataclass(frozen=True, slots=True)
class Published:
    """A node as the table has it; without a snapshot when it has just started."""

    id: UUID
    name: str
    host: str
    pid: int
    draining: bool
    age_s: float
    """Of its snapshot, by the database's clock."""
    snapshot: Snapshot | None


def encoded(snapshot: Snapshot) -> bytes:
    """A few kB, and about one for each number: short series, one decimal, compressed."""
    slim = replace(
        snapshot,
        accepted_series=_short(snapshot.accepted_series),
        tries_series=_short(snapshot.tries_series),
        rate_series=_short(snapshot.rate_series),
        token_wait_series=_short(snapshot.token_wait_series, 4),
        token_wait_median_series=_short(snapshot.token_wait_median_series, 4),
        events=snapshot.events[:EVENTS],
        acts=(),
        reconcile={},
    )
    return zlib.compress(_encode(slim), 1)


def _short(series: tuple[float, ...], digits: int = 1) -> tuple[float, ...]:
    return tuple(round(value, digits) for value in series[-SECONDS:])


async def publish(db: Executor, node: UUID, data: bytes) -> None:
    """Replace what a node said of itself."""
    await db.execute(PUBLISH, node, data)


async def read(db: Executor) -> list[Published]:
    """All nodes. One that runs another release, whose snapshot cannot be read, comes without it."""
    return [
        Published(r["id"], r["name"], r["host"], r["pid"], r["draining"], r["age_s"], _decoded(r["snapshot"]))
        for r in await db.fetch(READ)
    ]


def _decoded(data: bytes | None) -> Snapshot | None:
    if data is None:
        return None
    try:
        return _decode(zlib.decompress(data))
    except (zlib.error, msgspec.MsgspecError):
        return None


async def owners(db: Executor) -> dict[str, UUID]:
    """The node that holds each number's lease, by Meta's id."""
    return {r["id"]: r["owner"] for r in await db.fetch(OWNERS)}


async def version(db: Executor) -> int:
    """Of the desired state: what an act that has just been committed has raised it to, at least."""
    return int(await db.fetchval(VERSION))
