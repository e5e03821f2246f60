"""Decides whether a key may do something: a person presses one key at a time, a paste does not.

A key that does something waits a moment (30 ms); a different key in that moment, before or after it, means
that no hand pressed them, and neither counts. Keys that only move the cursor are always let through.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """What a key may do, as far as the guard is concerned."""

    MOVE = "moves the cursor or leaves a dialog: always let through"
    TEXT = "a character for an input"
    STEP = "may be pressed quickly in a row: + - w < >"
    ONCE = "does something: a held key does it once"


class Verdict(Enum):
    """What happens with a key."""

    PASS = "at once"
    WAIT = "after the moment, unless another key comes"
    HELD = "dropped: the key is being held down"
    BURST = "dropped: too fast for a hand"


@dataclass(slots=True)
class KeyGuard:
    """Times are seconds on the clock of `events.Key.time`. Set `settle` and `per_second` to 0 to let all through."""

    settle: float = 0.03
    per_second: int = 20
    held: float = 0.7
    """A key that comes again within this time is still the same press (the first repeat takes about 0.5 s)."""
    _changes: deque[float] = field(default_factory=deque)
    _last_key: str = ""
    _last_at: float = float("-inf")

    def press(self, key: str, kind: Kind, at: float) -> Verdict:
        """The verdict on a key pressed at `at`; remembers it."""
        same, gap = key == self._last_key, at - self._last_at
        self._last_key, self._last_at = key, at
        if not same:
            self._changes.append(at)
        while self._changes and at - self._changes[0] > 1.0:
            self._changes.popleft()
        if kind in (Kind.MOVE, Kind.TEXT):
            return Verdict.PASS
        if self.per_second and (len(self._changes) > self.per_second or (not same and gap < self.settle)):
            return Verdict.BURST
        if same and gap < (self.held if kind is Kind.ONCE else self.settle):
            return Verdict.HELD if self.per_second else Verdict.PASS
        return Verdict.WAIT if self.settle else Verdict.PASS
