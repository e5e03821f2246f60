"""The throughput of one number, as Meta grants it: so many messages in any sliding window."""

from __future__ import annotations

from collections import deque


class SlidingWindow:
    """Arrivals in (t - window, t]. Times are microseconds on one monotonic clock, never going back.

    True sliding, no bucket and no fixed seconds: a bucket would let twice the limit through around a
    refill, and then the simulator could not judge a client's pacing.
    """

    __slots__ = ("_arrivals",)

    def __init__(self) -> None:
        self._arrivals: deque[int] = deque()

    def room(self, at_us: int, limit: int, window_us: int) -> bool:
        """Whether one more arrival at `at_us` stays within `limit`."""
        arrivals, horizon = self._arrivals, at_us - window_us
        while arrivals and arrivals[0] <= horizon:
            arrivals.popleft()
        return len(arrivals) < limit

    def take(self, at_us: int) -> None:
        """Count an arrival. Only what Meta accepts counts; a refusal costs the number nothing."""
        self._arrivals.append(at_us)
