"""Figures in memory: per-second rings and coarse histograms. Bounded, cheap to add to, read twice a second.

Times are seconds of the engine's loop. All of it belongs to the engine's thread; screens see snapshots only.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from engine.domain.past import MOST_CODES, OTHER_CODE, CodeCounts, Spread
from engine.domain.snapshot import Percentiles
from engine.observe.ring import Ring
from engine.observe.stalls import Stalls

QUICK = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds in seconds for what a database or a loop takes."""

NETWORK = (0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""For requests to the provider, and for waits of a row; 20 s is the request deadline."""

JOURNEY = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)
"""For a message on its way to a phone."""


class Histogram:
    """A duration's distribution: of the last minute and of the longer windows (see Spread), and since the start,
    counted between `bounds` (seconds, ascending) for whoever scrapes."""

    def __init__(self, bounds: tuple[float, ...] = QUICK) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Samples since the start in (bound before, bound]; the last place is for what lies beyond all."""
        self.total_s = 0.0
        """Sum of all samples since the start."""
        self._spread = Spread()

    def add(self, now: float, seconds: float) -> None:
        """One sample."""
        self._spread.add(now, seconds)
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total_s += seconds

    def percentiles(self, now: float) -> Percentiles | None:
        """p50, p95, p99 of the last minute; None without a sample."""
        return self._spread.percentiles(now)

    def windows(self, now: float) -> tuple[Percentiles | None, ...]:
        """The same over each of WINDOWS."""
        return self._spread.all(now)


@dataclass(slots=True)
class NumberFigures:
    """What one number did."""

    accepted: Ring = field(default_factory=Ring)
    tries: Ring = field(default_factory=Ring)
    refused: Ring = field(default_factory=Ring)
    token_wait: Histogram = field(default_factory=partial(Histogram, NETWORK))
    latency: Histogram = field(default_factory=partial(Histogram, NETWORK))
    codes: CodeCounts = field(default_factory=CodeCounts)
    last_accepted: float | None = None
    waits: dict[str, float] = field(default_factory=dict)
    """Seconds that the pacer spent waiting for each thing since the last look; halved at each look."""
    results: Counter[tuple[str, int | None]] = field(default_factory=Counter)
    """Stored results since the start, by outcome and code."""
    throttled: Ring = field(default_factory=Ring)
    """Refusals for throughput."""
    throttled_total: int = 0
    leases_lost: int = 0
    lease_lost_at: float | None = None

    def stored(self, now: float, outcome: str, code: int | None, *, throttled: bool) -> None:
        """A result is in the database."""
        if code is not None and (outcome, code) not in self.results and len(self.results) >= MOST_CODES:
            code = OTHER_CODE
        self.results[outcome, code] += 1
        if throttled:
            self.throttled.add(now)
            self.throttled_total += 1

    def lose_lease(self, now: float) -> None:
        """The lease could not be kept."""
        self.leases_lost += 1
        self.lease_lost_at = now

    def waited(self, reason: str, seconds: float) -> None:
        """The pacer waited for this."""
        self.waits[reason] = self.waits.get(reason, 0.0) + seconds

    def waited_most(self) -> str:
        """What it waited for most, of late."""
        most = max(self.waits, key=lambda r: self.waits[r], default="rows")
        for reason in self.waits:
            self.waits[reason] /= 2
        return most


@dataclass(slots=True)
class NodeFigures:
    """What the node's shared parts did."""

    numbers: dict[int, NumberFigures] = field(default_factory=dict)
    webhook_codes: CodeCounts = field(default_factory=CodeCounts)
    """Refusals that came by webhook, of all numbers."""
    claim_time: Histogram = field(default_factory=Histogram)
    commit_time: Histogram = field(default_factory=Histogram)
    """Of both statements below together."""
    mark_time: Histogram = field(default_factory=Histogram)
    result_time: Histogram = field(default_factory=Histogram)
    loop_lag: Histogram = field(default_factory=Histogram)
    """How late the loop wakes whoever waits for a moment."""
    stalls: Stalls = field(default_factory=Stalls)
    """Whether the database keeps both statements above waiting."""

    def marked(self, now: float, seconds: float) -> None:
        """One group of rows is marked as sending."""
        self.mark_time.add(now, seconds)
        self.commit_time.add(now, seconds)

    def results_written(self, now: float, seconds: float) -> None:
        """One batch of results is stored."""
        self.result_time.add(now, seconds)
        self.commit_time.add(now, seconds)

    def number(self, number_id: int) -> NumberFigures:
        """The figures of one number; they outlive its ownership."""
        return self.numbers.setdefault(number_id, NumberFigures())
