"""Publishes what this node's screen would show, for `tidegate attach`, and takes in what other screens acknowledged."""

import asyncio

import structlog

from engine.node import Engine
from engine.postgres import snapshots
from engine.postgres.faults import DATABASE_FAULTS

PERIOD = 0.5
"""Seconds; with the follower's poll of 0.25 s an act shows as in effect within a second."""

log = structlog.get_logger()


async def publishing(engine: Engine) -> None:
    """For ever. A database that is away is waited for: viewers then see this node grow old."""
    seen: int | None = None
    while True:
        try:
            if seen is None:
                seen = await snapshots.journal_end(engine.db)
            seen = await _acknowledge(engine, seen)
            if engine.latest is not None:
                await snapshots.publish(engine.db, engine.identity.id, snapshots.encoded(engine.latest))
        except DATABASE_FAULTS as error:
            log.debug("snapshot not published", error=type(error).__name__)
        await asyncio.sleep(PERIOD)


async def _acknowledge(engine: Engine, seen: int) -> int:
    for one in await snapshots.acknowledged(engine.db, seen):
        engine.acknowledge(one.key, one.author)
        seen = one.id
    return seen
