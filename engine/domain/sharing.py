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
    """Rows claimed for each campaign so far."""

    def order(self, candidates: Sequence[Candidate], now: datetime) -> list[Candidate]:
        """The candidates, the one to serve first in front: by priority, nearest deadline to come, least served.

        Each tenth time the one that was served longest ago by count leads instead.
        """
        self.claims += 1
        least_served = sorted(candidates, key=lambda c: (self.served.get(c.campaign_id, 0), c.campaign_id))
        if self.claims % FAIR_SHARE == 0:
            return least_served
        return sorted(least_served, key=lambda c: (-c.priority, *_deadline_rank(c.deadline, now)))

    def serve(self, campaign_id: int, rows: int) -> None:
        """Remember that `rows` rows of the campaign were claimed. A newcomer starts level with the others."""
        floor = min(self.served.values(), default=0)
        self.served[campaign_id] = self.served.get(campaign_id, floor) + rows

    def keep(self, campaign_ids: set[int]) -> None:
        """Forget the campaigns that are over."""
        self.served = {c: n for c, n in self.served.items() if c in campaign_ids}


def _deadline_rank(deadline: datetime | None, now: datetime) -> tuple[int, float]:
    """Deadlines that can still be met come first, nearest first; then none; then those that have passed."""
    if deadline is None:
        return (1, 0.0)
    left = (deadline - now).total_seconds()
    return (0, left) if left > 0 else (2, 0.0)
