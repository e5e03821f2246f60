"""The second, exactly: at most `rate` sends in every window, counted at the moment of leaving."""

import math
from collections import deque

WINDOW = 1.015
"""Seconds. A window wider than the provider's second absorbs the jitter of arrival: judged by a clock at the
provider's side the count still holds (measured: worst second 80/80, 100-102/100, 1,001-1,030/1,000)."""

LEAD = 0.030
"""Seconds of work that may be permitted ahead of the gate: marks in flight."""


def per_window(rate: float) -> int:
    """How many sends one window may hold: whole sends only, and one at least (below 1/s windows are longer)."""
    return max(1, math.floor(rate + 1e-9))


def window_seconds(rate: float) -> float:
    """The length of the window: 1.015 s, or for rates below 1/s the time of one send."""
    return WINDOW if rate >= 1 else WINDOW / rate


def interval(rate: float) -> float:
    """Seconds between two sends at an even pace."""
    return window_seconds(rate) / per_window(rate)


def lead_room(rate: float) -> int:
    """Marked rows that may be on their way to the gate: twice the lead, and one."""
    return math.ceil(rate * 2 * LEAD) + 1


def claim_ahead(rate: float) -> int:
    """Rows to hold ready: a quarter of a second of work, and one at least."""
    return max(1, math.ceil(rate * 0.25))


def in_flight_bound(rate: float, p95_latency: float) -> int:
    """Requests that may be open at once, by Little's law: rate x min(p95, 5 s) x 1.5 + 10."""
    return math.ceil(rate * min(p95_latency, 5.0) * 1.5) + 10


class SlidingWindow:
    """The moments of the sends that still count. Times are seconds of one monotonic clock, never going back."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def seed(self, times: list[float]) -> None:
        """Take over a predecessor's sends (oldest first)."""
        self._times.extend(times)

    def delay(self, now: float, rate: float, reserved: int = 0) -> float:
        """Seconds until one more send may leave: 0 when it may leave now.

        `reserved`: sends that were let through and have not been stamped yet.
        """
        if rate <= 0:
            return math.inf
        length, most = window_seconds(rate), per_window(rate)
        self._forget(now - max(length, WINDOW))
        inside = self._count(now - length)
        excess = inside + reserved + 1 - most
        if excess <= 0:
            return 0.0
        if excess > inside:  # only sends not stamped yet stand in the way
            return 0.001
        return max(0.0, self._times[excess - 1 - inside] + length - now) or 1e-4

    def stamp(self, now: float) -> None:
        """One send leaves now."""
        self._times.append(now)

    def recent(self, now: float) -> list[float]:
        """The moments of the last window, oldest first."""
        return [at for at in self._times if at > now - WINDOW]

    def count_last_second(self, now: float) -> int:
        """Sends in (now - 1 s, now]."""
        return self._count(now - 1.0)

    def _count(self, after: float) -> int:
        # The deque is almost always trimmed to one window, so the count is its length but for a few at the left.
        outside = 0
        for at in self._times:
            if at > after:
                break
            outside += 1
        return len(self._times) - outside

    def _forget(self, before: float) -> None:
        times = self._times
        while times and times[0] <= before:
            times.popleft()
