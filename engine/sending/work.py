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

    template_key: str = ""
    """Of its template's breaker."""
    spaced: bool = False
    """This person has just been written to in a conversation: the row must wait its turn."""
    probe: int | None = None
    """The breaker that this request is to find out about."""

    @property
    def country(self) -> str:
        """Alpha-2 of the row's lane, or ''."""
        lanes = self.campaign.lanes
        return self.campaign.countries[lanes.index(self.row.lane_id)] if self.row.lane_id in lanes else ""

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
