"""What an alert rule is: one judgement, told twice, over a snapshot (console, log) and over metrics (Prometheus)."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field

from engine.domain.snapshot import Snapshot
from engine.domain.thresholds import DEFAULTS, Thresholds

CRITICAL, WARNING = "critical", "warning"

EASE = 0.8
"""A standing alert's figure must fall to this share of its threshold: no flicker at the edge."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Where a rule holds now. `subject` is bounded and stands in labels: Meta's number id, a campaign's name."""

    subject: str
    target: str
    """The subject as people know it."""
    cause: str


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is the case now. `key` stays the same while it lasts."""

    key: str
    severity: str
    target: str
    cause: str
    advice: str
    lasts_s: float = 0.0
    """Seconds that it must be the case before anybody is told."""
    runbook: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """What a rule looks at. `standing`: keys of the alerts that are active already."""

    snapshot: Snapshot
    thresholds: Thresholds = DEFAULTS
    standing: Collection[str] = field(default_factory=frozenset)

    def over(self, key: str, value: float, threshold: float) -> bool:
        """Whether `value` is above its threshold, which is lower for an alert that stands."""
        return value > threshold * (EASE if key in self.standing else 1.0)

    def under(self, key: str, value: float, threshold: float) -> bool:
        """Whether `value` is below its threshold, which is higher for an alert that stands."""
        return value < threshold / (EASE if key in self.standing else 1.0)


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert. `kind` names it everywhere: key, metric label, runbook page.

    `expr` is PromQL, in which %(name)g stands for a threshold; `subject` a Prometheus template that gives what a
    Finding has for its subject; `summary` one that says what is wrong.
    """

    kind: str
    severity: str
    meaning: str
    advice: str
    check: Callable[[Look], Iterator[Finding]]
    expr: str
    subject: str
    summary: str
    lasts: str | None = None
    """The threshold that says for how long it must be the case first; None: told at once."""
    seasoned: bool = False
    """What a snapshot tells of has lasted long enough; `lasts` is then for Prometheus alone."""

    @property
    def name(self) -> str:
        """TidegateNumberHeld"""
        return "Tidegate" + "".join(part.capitalize() for part in self.kind.split("_"))

    @property
    def runbook(self) -> str:
        """docs/runbooks/number-held.md"""
        return f"docs/runbooks/{self.kind.replace('_', '-')}.md"

    def key(self, subject: str) -> str:
        """(kind, subject) as one word."""
        return f"{self.kind}:{subject}"

    def lasts_s(self, thresholds: Thresholds) -> float:
        """Seconds that it must be the case first."""
        return float(getattr(thresholds, self.lasts)) if self.lasts else 0.0

    def query(self, thresholds: Thresholds) -> str:
        """The PromQL with its thresholds in place."""
        return self.expr % asdict(thresholds)
