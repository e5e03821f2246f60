"""One figure per second, of the last hour. Times are seconds of the engine's loop."""

from engine.domain.snapshot import SERIES_SECONDS

_RING = SERIES_SECONDS + 1
"""Places: the whole seconds, and the one that is running."""


class Ring:
    """One figure per second, the newest SERIES_SECONDS whole ones and the running one."""

    def __init__(self) -> None:
        self._values = [0.0] * _RING
        self._second = 0

    def add(self, now: float, value: float = 1.0) -> None:
        """Add to the second in which `now` lies."""
        self._advance(int(now))
        self._values[int(now) % _RING] += value

    def put(self, now: float, value: float) -> None:
        """Set the second in which `now` lies."""
        self._advance(int(now))
        self._values[int(now) % _RING] = value

    def last(self, now: float, count: int) -> tuple[float, ...]:
        """The `count` whole seconds before the running one, oldest first."""
        self._advance(int(now))
        end = int(now)
        return tuple(self._values[second % _RING] for second in range(end - count, end))

    def mean(self, now: float, count: int) -> float:
        """Per second, over the last `count` whole seconds."""
        return sum(self.last(now, count)) / count

    def _advance(self, second: int) -> None:
        if second <= self._second:
            return
        for stale in range(max(self._second + 1, second - _RING + 1), second + 1):
            self._values[stale % _RING] = 0.0
        self._second = second
