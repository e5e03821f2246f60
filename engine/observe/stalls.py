"""Whether the database keeps our commits waiting: judged by how often in time, never by a share of them.

Between two locks of somebody else a hundred commits take a moment each, and behind each lock there are two: a share of
them looks well while half of the time is lost.
"""

from engine.observe.ring import Ring

LONG = 1.0
"""Seconds from which on a commit counts as one that waited."""

OF_LATE = 20
"""Seconds that are looked back."""

OFTEN = 3
"""Different seconds of these in which such a commit came to its end; one hiccup of a disk is none."""

UNDER_WAY = 5.0
"""Seconds after which one that has not come to its end is enough."""


class Stalls:
    """Commits of several kinds, at most one of each kind at a time."""

    def __init__(self) -> None:
        self._long = Ring()
        self._open: dict[str, float] = {}

    def began(self, kind: str, now: float) -> None:
        """A commit is on its way."""
        self._open[kind] = now

    def ended(self, kind: str, now: float) -> None:
        """It is done, or given up."""
        began = self._open.pop(kind, now)
        if now - began > LONG:
            self._long.add(now)

    def wait(self, now: float) -> bool:
        """Whether they have waited of late, or do so now."""
        often = sum(1 for count in self._long.last(now + 1, OF_LATE) if count) >= OFTEN
        return often or any(now - began > UNDER_WAY for began in self._open.values())
