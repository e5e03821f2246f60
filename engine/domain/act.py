"""The acts of an operator, as values. `engine.commands` carries them out; screens and the CLI only make them.

An act binds to the number or campaign that it names, never to a place on the screen.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PauseNumber:
    """No request starts from this number until it is resumed."""

    number: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeNumber:
    """Take back a pause, by a person or by the engine."""

    number: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SetRate:
    """messages/s; 0 is a pause; never above the provider's limit."""

    number: str
    rate: float


@dataclass(frozen=True, slots=True)
class PauseAll:
    """Every running campaign's numbers stop; resume-all lifts only what this stopped."""

    reason: str


@dataclass(frozen=True, slots=True)
class ResumeAll:
    """Lift what pause-all stopped, and nothing else."""


@dataclass(frozen=True, slots=True)
class StartCampaign:
    """From draft to running."""

    campaign: str


@dataclass(frozen=True, slots=True)
class PauseCampaign:
    """No request of this campaign starts until it is resumed."""

    campaign: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeCampaign:
    """From paused (or held, once looked at) to running."""

    campaign: str


@dataclass(frozen=True, slots=True)
class CancelCampaign:
    """Pending and claimed rows become cancelled; what has left stays open until settled."""

    campaign: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RetryFailed:
    """Failed rows whose failure may pass become pending again."""

    campaign: str
    reason: str


@dataclass(frozen=True, slots=True)
class LiftHold:
    """Close a breaker by its id; `target` is what it stops, for people."""

    hold: int
    target: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Settle `unknown` rows whose window has passed; with dry_run only say what would happen."""

    campaign: str | None = None
    dry_run: bool = True


@dataclass(frozen=True, slots=True)
class AcknowledgeAlerts:
    """One alert by its key, or all with None."""

    key: str | None = None


@dataclass(frozen=True, slots=True)
class StopEngine:
    """Drain and end, exit code 0."""

    reason: str


Act = (
    PauseNumber
    | ResumeNumber
    | SetRate
    | PauseAll
    | ResumeAll
    | StartCampaign
    | PauseCampaign
    | ResumeCampaign
    | CancelCampaign
    | RetryFailed
    | LiftHold
    | Reconcile
    | AcknowledgeAlerts
    | StopEngine
)
