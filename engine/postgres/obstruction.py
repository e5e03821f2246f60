"""Stands in the way on purpose, for the drill `slow-database`; nothing else uses it."""

import asyncio

from engine.postgres.pool import connect

# Readers go on, every move of a row waits.
LOCK = "LOCK TABLE recipient IN SHARE MODE"

# So that the alert can say who it is.
NAME = "SET LOCAL application_name = 'maintenance'"


async def lock_rows(url: str, *, seconds: float) -> None:
    """Hold a lock that every mark and every result must wait for. Raises what a database that is away raises."""
    async with connect(url) as db, db.transaction():
        await db.execute(NAME)
        await db.execute(LOCK)
        await asyncio.sleep(seconds)
