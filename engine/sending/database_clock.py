"""Where the loop's clock stands on the database's: the seams between owners are judged by one clock."""

import asyncio
from datetime import UTC, datetime, timedelta

from engine.postgres import send_log
from engine.postgres.pool import Pool

_KEEP = 60.0
"""Seconds after which a good sample is replaced by a worse one, so that drift does not add up."""


class DatabaseClock:
    """A running estimate: offset and its error, half a round trip."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._error = float("inf")
        self._taken_at = 0.0

    async def sample(self, db: Pool) -> None:
        """Ask the database for its time; keep the answer when it is tighter than what is known, or newer by far."""
        time = asyncio.get_running_loop().time
        before = time()
        at = await send_log.database_clock(db)
        after = time()
        error = (after - before) / 2
        if error < self._error or after - self._taken_at > _KEEP:
            self._offset = at.timestamp() - (before + after) / 2
            self._error, self._taken_at = error, after

    def at(self, loop_time: float) -> tuple[datetime, int]:
        """A moment of the loop as (database time, error in microseconds)."""
        moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=loop_time + self._offset)
        return moment, min(round(self._error * 1e6), 2**31 - 1) if self._error < 2000 else 2**31 - 1
