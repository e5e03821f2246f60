"""Which campaign a number serves next: nobody starves, and what is urgent goes first."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

FAIR_SHARE = 10
"""Every tenth claim goes round-robin over all campaigns with ready rows, so none waits for long."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A campaign that may have ready rows for a number."""

    campaign_id: int
    priority: int
    deadline: datetime | None


@dataclass(slots=True)
class Turns:
    """A number's memory of whose turn it is."""

    claims: int = 0
    served: dict[int, int] = field(default_factory=dict)
    """The turn at which each campaign last got rows. Turns, not rows: who had nothing ready for an hour comes
    back with one turn's lead, and not with an hour's."""

    def order(self, candidates: Sequence[Candidate], now: datetime) -> list[Candidate]:
        """The candidates, the one to serve first in front: by priority, nearest deadline to come, longest wait.

        Each tenth time the one that has waited longest leads instead, whatever its priority.
        """
        self.claims += 1
        longest_wait = sorted(candidates, key=lambda c: (self.served.get(c.campaign_id, 0), c.campaign_id))
        if self.claims % FAIR_SHARE == 0:
            return longest_wait
        return sorted(longest_wait, key=lambda c: (-c.priority, *_deadline_rank(c.deadline, now)))

    def serve(self, campaign_id: int, rows: int) -> None:
        """Remember who got the rows of this turn; nobody when there were none."""
        if rows:
            self.served[campaign_id] = self.claims


def _deadline_rank(deadline: datetime | None, now: datetime) -> tuple[int, float]:
    """Deadlines that can still be met come first, nearest first; then none; then those that have passed."""
    if deadline is None:
        return (1, 0.0)
    left = (deadline - now).total_seconds()
    return (0, left) if left > 0 else (2, 0.0)
