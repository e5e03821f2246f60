"""One row on its way through a number, from the claim to its written result."""

from dataclasses import dataclass

from engine.domain.outcome import Answer
from engine.postgres.claims import Claimed, Permission
from engine.postgres.desired import Campaign


@dataclass(slots=True)
class Work:
    """A claimed row with all that its request needs. Times are seconds of the loop."""

    row: Claimed
    campaign: Campaign
    permission: Permission
    ready_at: float
    marked_at: float = 0.0
    sent_at: float = 0.0
    rate: float = 0.0
    """messages/s in force when the gate let it through."""

    @property
    def n(self) -> int:
        """The number of the try that this request will be."""
        return self.row.tries + 1


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one marked row."""

    work: Work
    answer: Answer
    answered_at: float
