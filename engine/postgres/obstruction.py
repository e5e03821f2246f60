"""Stands in the way on purpose, for the drill `slow-database`; nothing else uses it."""

import asyncio

from engine.postgres.pool import connect

# Readers go on, every move of a row waits.
LOCK = "LOCK TABLE recipient IN SHARE MODE"


async def lock_rows(url: str, *, seconds: float) -> None:
    """Hold a lock that every mark and every result must wait for. Raises what a database that is away raises."""
    async with connect(url) as db, db.transaction():
        await db.execute(LOCK)
        await asyncio.sleep(seconds)
