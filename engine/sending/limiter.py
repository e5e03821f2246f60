"""The spacing of one number's sends: one aiolimiter bucket, replaced whenever the rate changes.

aiolimiter keeps its rate for life (setting `max_rate` on a live one does nothing), and a bucket of 80 lets 159
sends through in its first second. So the bucket is tiny: it spaces, while the window at the gate counts.
"""

import asyncio

from aiolimiter import AsyncLimiter

from engine.domain.pacing import interval

BURST_SECONDS = 0.02
"""A late timer may be caught up by this much; less than a tenth of a second's share, so sends stay even."""

POLL = 0.25
"""Seconds to wait at one bucket: when the next permit is far away, a new rate must not be slept through."""


class Limiter:
    """Permits at an even pace. One waiter at a time."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._bucket = _bucket(rate)

    def set_rate(self, rate: float) -> None:
        """messages/s, above 0. Takes effect at the next permit, or within POLL for slow rates."""
        if rate != self.rate:
            self.rate = rate
            self._bucket = _bucket(rate)

    async def permit(self) -> None:
        """Wait for the next permit."""
        while True:
            try:
                async with asyncio.timeout(POLL):
                    return await self._bucket.acquire()
            except TimeoutError:  # the bucket may have been replaced meanwhile
                continue


def _bucket(rate: float) -> AsyncLimiter:
    spacing = interval(rate)
    burst = max(2, int(BURST_SECONDS / spacing)) if spacing <= POLL else 1
    return AsyncLimiter(burst, burst * spacing)
