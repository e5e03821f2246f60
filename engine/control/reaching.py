"""Stops an account before it has reached as many people within 24 hours as Meta allows it, and says until when."""

import asyncio
from math import ceil

import structlog

from engine import clock
from engine.domain.breaker import Stop
from engine.domain.errors import Scope
from engine.postgres import breakers, reach
from engine.postgres.pool import Pool
from engine.postgres.reach import Limited

LOOK = 0.25
"""Seconds between looks."""

log = structlog.get_logger()


def margin(limit: int, rate: float) -> int:
    """How many people before the limit an account stops: what leaves between two looks, at most half of it.

    >>> margin(100_000, 64), margin(250, 1000)
    (48, 125)
    """
    return min(ceil(rate * 3 * LOOK), limit // 2)


class Reach:
    """Counts an account only when it may have come near its limit since the last count."""

    def __init__(self, db: Pool) -> None:
        self._db = db
        self._counted: dict[str, tuple[float, int]] = {}

    async def guard(self) -> None:
        """One look at all accounts with a limit."""
        for one in await reach.limited(self._db):
            await self._look(one)

    async def _look(self, one: Limited) -> None:
        now = asyncio.get_running_loop().time()
        most = one.limit - margin(one.limit, one.rate)
        at, reached = self._counted.get(one.account, (now, most))
        if reached + one.rate * (now - at) < most and now - at < 60.0:
            return
        reached = await reach.reached(self._db, one.account)
        self._counted[one.account] = (now, reached)
        if reached < most:
            return
        until = await reach.free_at(self._db, one.account, reached - most + 1)
        if until is None:
            return
        reason = (
            f"account {one.account} has reached {reached:,} people within 24 h; Meta allows it {one.limit:,}"
        )
        stop = Stop(Scope.ACCOUNT, one.account, None, reason, until=until)
        async with self._db.acquire() as db, db.transaction():
            if await breakers.trip(db, stop, clock.now()):
                log.warning("account waits", account=one.account, reached=reached, until=until.isoformat())
