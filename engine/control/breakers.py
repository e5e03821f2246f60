"""Stops that the engine makes by itself: a fact in a row, with the reason, until a person (or time) lifts it."""

import structlog

from engine.postgres import campaigns, journal
from engine.postgres.pool import Pool

log = structlog.get_logger()


async def hold_campaign(db: Pool, name: str, reason: str) -> bool:
    """Hold a running campaign; False when it was not running any more. Its rows stay pending."""
    async with db.acquire() as connection, connection.transaction():
        moved = await campaigns.move(connection, name, ["running"], "held", reason)
        if moved is None:
            return False
        entry = journal.Entry("auto", "engine", "hold campaign", name, reason, "running", "held")
        await journal.write(connection, entry)
    log.error("campaign held", campaign=name, reason=reason)
    return True
