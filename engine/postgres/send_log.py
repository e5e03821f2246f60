"""The proof of the ceiling: when each send left, by its owner's monotonic clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.postgres.pool import Executor

APPEND = """
INSERT INTO send_log (number_id, epoch, lane, rate, lim, base_mono_us, base_db, err_us, us)
SELECT $1, $2, $3::"char", $4, $5, $6, $7, $8, $9
 WHERE NOT EXISTS (  -- a batch whose answer was lost is offered again
   SELECT FROM (SELECT epoch, lane, base_mono_us FROM send_log WHERE number_id = $1 ORDER BY id DESC LIMIT 50) l
    WHERE l.epoch = $2 AND l.lane = $3::"char" AND l.base_mono_us = $6)
"""

DATABASE_CLOCK = "SELECT clock_timestamp()"


@dataclass(frozen=True, slots=True)
class Stamps:
    """Sends of one number under one epoch, lane and rate. `us`: offsets from base_mono_us, ascending."""

    number_id: int
    epoch: int
    lane: str
    """c campaign, v conversation."""
    rate: float
    limit: float
    base_mono_us: int
    base_db: datetime
    """base_mono_us on the database's clock, give or take err_us."""
    err_us: int
    us: tuple[int, ...]


async def append(db: Executor, batches: Sequence[Stamps]) -> None:
    """Keep the batches; one that is there already is left alone."""
    for b in batches:
        await db.execute(
            APPEND,
            b.number_id,
            b.epoch,
            b.lane.encode(),
            b.rate,
            b.limit,
            b.base_mono_us,
            b.base_db,
            b.err_us,
            list(b.us),
        )


async def database_clock(db: Executor) -> datetime:
    """The database's time of day, now."""
    at: datetime = await db.fetchval(DATABASE_CLOCK)
    return at
