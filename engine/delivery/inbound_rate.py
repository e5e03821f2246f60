"""How much people write to each number right now: what comes in counts against the same limit as what goes out."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta

SECOND = timedelta(seconds=1)


class InboundRate:
    """Messages of the last second by number, by the time of their receipt."""

    def __init__(self) -> None:
        self._written: dict[str, deque[datetime]] = {}

    def add(self, messages: Iterable[tuple[str, datetime]]) -> None:
        """Messages by Meta's phone number id; in any order, though the newest second is all that stays."""
        for number, at in messages:
            kept = self._written.setdefault(number, deque())
            kept.append(at)
            while kept[0] <= at - SECOND:
                kept.popleft()

    def last_second(self, number: str, now: datetime) -> int:
        """How many were received in (now - 1 s, now]; 0 for a number that nobody wrote to."""
        return sum(now - SECOND < at <= now for at in self._written.get(number, ()))
