"""Which of a snapshot's series a window is drawn from: seconds while they reach back far enough, else minutes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from engine.domain.snapshot import Snapshot

Name = Literal["accepted", "rate", "token_wait", "token_wait_median"]
T = TypeVar("T")
MINUTE = 60


@dataclass(frozen=True, slots=True)
class History:
    """Values, oldest first, each a mean of `step` seconds; `second` is when the newest ended, in its steps."""

    values: Sequence[float]
    step: int
    second: int

    @property
    def seconds(self) -> int:
        """How far back it reaches."""
        return len(self.values) * self.step


def chosen(kept: Sequence[T], window: int, otherwise: T) -> T:
    """What is kept for the chosen window (index into WINDOWS); `otherwise` where nothing is kept by windows."""
    return kept[window] if len(kept) > window else otherwise


def history(snapshot: Snapshot, name: Name, window: int) -> History:
    """The newest `window` seconds of one series, or as much of them as is kept."""
    seconds: Sequence[float] = getattr(snapshot, f"{name}_series")
    minutes: Sequence[float] = getattr(snapshot, f"{name}_minutes")
    at = int(snapshot.at.timestamp())
    if len(seconds) >= window or len(minutes) * MINUTE <= len(seconds):
        return History(seconds[-window:], 1, at)
    return History(minutes[-(window // MINUTE) :], MINUTE, at // MINUTE)
