"""A campaign's report: what was planned against every outcome, with reasons; and whether it adds up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.domain.control import ControlStanding
from engine.domain.recipient import State

DEFAULT_MAX_FAILED = 0.1
"""Share of a campaign's people; with more failures a run ends with exit code 3."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Rows of one outcome for one reason."""

    outcome: str
    reason: str
    rows: int
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Beat:
    """One minute of the time line, over all numbers."""

    minute: datetime
    tries: int
    accepted: int
    refused: int
    throttled: int


@dataclass(frozen=True, slots=True)
class Pace:
    """One number: what it sent for the campaign. `mean` over the time between its first and its last try, `best` over
    its best whole minute, `rate` and `limit` as they are set now; messages/s."""

    number: str
    display: str
    tries: int
    throttled: int
    mean: float | None
    best: float
    rate: float
    limit: float


@dataclass(frozen=True, slots=True)
class PaceChange:
    """A number's rate or limit was set while the campaign ran. `before`, `after`: in the journal's words."""

    at: datetime
    number: str
    act: str
    before: str
    after: str
    author: str


@dataclass(frozen=True, slots=True)
class Closing:
    """The whole report."""

    name: str
    state: str
    reason: str | None
    at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline: datetime | None
    planned: int
    counts: Mapping[State, int]
    reasons: Sequence[Reason]
    tries: int
    attempts: int
    accepted: int
    possible_duplicates: int
    confirmed_duplicates: int
    assumed_sent: int
    refused_lines: int
    folded_lines: int
    line: Sequence[Beat]
    paces: Sequence[Pace]
    pace_changes: Sequence[PaceChange] = ()
    controls: ControlStanding | None = None
    """Its control phones, who are in none of the figures above."""

    @property
    def faults(self) -> list[str]:
        """What does not add up, a sentence each; nothing when the report balances."""
        counted = sum(self.counts.values())
        found = []
        if counted != self.planned:
            found.append(f"{self.planned:,} rows were planned and {counted:,} are counted.")
        for state in (State.FAILED, State.SUPPRESSED, State.EXPIRED):
            reasons = sum(r.rows for r in self.reasons if r.outcome == state.word)
            if reasons != self.counts[state]:
                found.append(
                    f"{self.counts[state]:,} rows are {state.word}, and reasons are known for {reasons:,}."
                )
        return found
