"""Takes the node's figures once a second, and completes each snapshot with what they were during six hours.

What it costs is said in engine.domain.past: 0.1 MB for the node's figures, 30 kB for each number's tracks, 50 kB for
its two histograms, at most 10 kB for each code that it was refused with; 15 kB for each of at most MOST_CAMPAIGNS
campaigns, 0.3 MB. Nothing of it grows with time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from engine.domain.errors import describe
from engine.domain.merge import worst_spreads
from engine.domain.past import CodeCounts, Track
from engine.domain.recall import FIGURES, remembered
from engine.domain.snapshot import (
    WINDOWS,
    CampaignView,
    ErrorView,
    NumberPast,
    NumberView,
    Past,
    Points,
    Snapshot,
)
from engine.observe.metrics import Histogram, NodeFigures, NumberFigures

PACE = 3
"""Steps of two seconds that a number's use is a mean of."""

EVERY = 5
"""Seconds after which a number's past is made anew, one number after the other. All of it takes about 20 ms a second
with a hundred numbers."""


class _Tracks:
    """One number's."""

    __slots__ = ("accepted", "ceiling", "past", "rate", "refused", "token_wait", "tries")

    def __init__(self) -> None:
        self.accepted, self.tries, self.refused = Track(), Track(), Track()
        self.rate, self.ceiling, self.token_wait = Track(), Track(), Track()
        self.past: NumberPast | None = None

    def use(self) -> float | None:
        """Accepted / allowed, of the same seconds. Answers may come in a bunch: never more than all."""
        allowed = self.rate.newest(PACE)
        return min(1.0, self.accepted.newest(PACE) / allowed) if allowed else None

    def take(self, figures: NumberFigures, view: NumberView, second: int, seconds: int) -> None:
        """The `seconds` whole seconds before the running one: counts as they were, the rest as it is now."""
        wait = view.token_wait.p95 if view.token_wait is not None else 0.0
        for track, values in (
            (self.accepted, figures.accepted.last(second, seconds)),
            (self.tries, figures.tries.last(second, seconds)),
            (self.refused, figures.refused.last(second, seconds)),
            (self.rate, (view.rate,) * seconds),
            (self.ceiling, (view.ceiling,) * seconds),
            (self.token_wait, (wait,) * seconds),
        ):
            for ago, value in zip(range(seconds, 0, -1), values, strict=True):
                track.put(second - ago, value)

    def error_share(self) -> tuple[float | None, ...]:
        """Refused / tries over each window."""
        pairs = [(sum(self.refused.points(i)), sum(self.tries.points(i))) for i in range(len(WINDOWS))]
        return tuple(refused / tries if tries else None for refused, tries in pairs)


class _CampaignTracks:
    """One campaign's, from its books."""

    __slots__ = ("_accepted", "_tracks")

    def __init__(self) -> None:
        self._accepted: int | None = None
        self._tracks = {"accepted": Track(), "pending": Track(), "failed": Track()}

    def take(self, view: CampaignView, second: int, seconds: int) -> None:
        """The `seconds` whole seconds before the running one; what was accepted meanwhile is spread over them."""
        before = self._accepted if self._accepted is not None else view.accepted
        self._accepted = view.accepted
        values = {
            "accepted": max(0, view.accepted - before) / seconds,
            "pending": view.counts.get("pending", 0),
            "failed": view.counts.get("failed", 0),
        }
        for name, track in self._tracks.items():
            for ago in range(seconds, 0, -1):
                track.put(second - ago, values[name])

    def all(self) -> dict[str, Points]:
        """By name."""
        return {name: track.all() for name, track in self._tracks.items()}


class Recall:
    """Belongs to the engine's thread. Times are loop time."""

    def __init__(self, figures: NodeFigures) -> None:
        self._figures = figures
        self._numbers: dict[str, _Tracks] = {}
        self._campaigns: dict[str, _CampaignTracks] = {}
        self._tracks = {figure.name: Track() for figure in FIGURES}
        self._second = 0

    def complete(
        self, snapshot: Snapshot, keys: Mapping[str, int], at: float, delays: Histogram | None
    ) -> Snapshot:
        """The same snapshot with its past. `keys`: number_id by Meta's id; `delays`: from sent to delivered."""
        second = int(at)
        passed = min(second - self._second, WINDOWS[0]) if self._second else 1
        self._second = second
        for gone in self._numbers.keys() - keys.keys():
            del self._numbers[gone]
        numbers = []
        for turn, view in enumerate(snapshot.numbers):
            figures = self._figures.number(keys[view.id])
            tracks = self._numbers.setdefault(view.id, _Tracks())
            if passed:
                tracks.take(figures, view, second, passed)
            if tracks.past is None or (passed and (second + turn) % EVERY < passed):
                tracks.past = _past_of(tracks, figures, at)
            numbers.append(replace(view, use=tracks.use(), past=tracks.past))
        if passed:
            for figure in FIGURES:
                self._tracks[figure.name].put(second - 1, figure.read(snapshot) or 0.0)
        return replace(
            snapshot,
            numbers=tuple(numbers),
            campaigns=self._with_past(snapshot.campaigns, second, passed),
            past=self._past(numbers, at, delays),
        )

    def _with_past(
        self, campaigns: Sequence[CampaignView], second: int, passed: int
    ) -> tuple[CampaignView, ...]:
        kept = {c.name: self._campaigns.get(c.name) or _CampaignTracks() for c in remembered(campaigns)}
        self._campaigns = kept
        for view in campaigns:
            if passed and view.name in kept:
                kept[view.name].take(view, second, passed)
        return tuple(replace(c, past=kept[c.name].all()) if c.name in kept else c for c in campaigns)

    def _past(self, numbers: Iterable[NumberView], at: float, delays: Histogram | None) -> Past:
        figures = self._figures
        codes = (*(f.codes for f in figures.numbers.values()), figures.webhook_codes)
        views = list(numbers)
        return Past(
            figures={name: track.all() for name, track in self._tracks.items()},
            token_wait=worst_spreads([n.past.waits for n in views]),
            latency=worst_spreads([n.past.answers for n in views]),
            claim_time=figures.claim_time.windows(at),
            commit_time=figures.commit_time.windows(at),
            sent_to_delivered=delays.windows(at) if delays is not None else (),
            errors=tuple(errors(codes, at, window) for window in range(len(WINDOWS))),
        )


def _past_of(tracks: _Tracks, figures: NumberFigures, at: float) -> NumberPast:
    codes = (figures.codes.trends(at, window) for window in range(len(WINDOWS)))
    return NumberPast(
        accepted=tracks.accepted.all(),
        refused=tracks.refused.all(),
        ceiling=tracks.ceiling.all(),
        token_wait=tracks.token_wait.all(),
        waits=figures.token_wait.windows(at),
        answers=figures.latency.windows(at),
        error_share=tracks.error_share(),
        top_error=tuple(max(t, key=lambda code: sum(t[code]), default=None) for t in codes),
    )


def errors(codes: Iterable[CodeCounts], at: float, window: int) -> tuple[ErrorView, ...]:
    """All refusals of WINDOWS[window] by code, the most frequent first."""
    trends: dict[int, list[int]] = {}
    for counts in codes:
        for code, trend in counts.trends(at, window).items():
            total = trends.setdefault(code, [0] * len(trend))
            trends[code] = [a + b for a, b in zip(total, trend, strict=True)]
    views = [
        ErrorView(code, describe(code).title, describe(code).scope.value, sum(trend), tuple(trend))
        for code, trend in trends.items()
    ]
    return tuple(sorted(views, key=lambda view: -view.count))
