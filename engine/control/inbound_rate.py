"""How much people write to each number right now: what comes in counts against the same limit as what goes out.

Webhooks may be applied by any process, so the count is in the database, and its growth from look to look is the rate.
"""

from collections.abc import Mapping

SHORTEST = 0.9
"""Seconds between two counts that are compared: an act makes the follower look again at once."""

STALE = 3.0
"""Seconds after which a rate says nothing any more."""


class InboundRate:
    """Of all numbers, by Meta's phone number id. Times: seconds of the loop."""

    def __init__(self) -> None:
        self._counted: Mapping[str, int] = {}
        self._at = float("-inf")
        self._rates: dict[str, float] = {}

    def see(self, counted: Mapping[str, int], at: float) -> None:
        """Messages of each number, counted since ever. A number that appears, or starts anew, has no rate yet."""
        passed = at - self._at
        if passed < SHORTEST:
            return
        before, self._counted, self._at = self._counted, dict(counted), at
        self._rates = {number: max(0, n - before.get(number, n)) / passed for number, n in counted.items()}

    def of(self, number: str, at: float) -> float:
        """messages/s between the last two looks; 0 when the last one is too long ago."""
        return self._rates.get(number, 0.0) if at - self._at < STALE else 0.0
