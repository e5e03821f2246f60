"""Daily partitions of the tries, made ahead."""

from engine.postgres.pool import Executor

ENSURE = "SELECT ensure_try_partitions($1)"

DAYS_AHEAD = 3


async def ensure_partitions(db: Executor) -> None:
    """Make the partitions of today and the next days, where they are missing and may be made."""
    await db.execute(ENSURE, DAYS_AHEAD)
