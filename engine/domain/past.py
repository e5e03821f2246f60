"""What figures were like during the last six hours, in memory that does not grow.

Everything is kept once for each window that a screen offers, in steps of that window: six hours as finely as one
minute would be 360 times as much as anybody can read. Times are whole seconds or seconds of one steady clock.

    Track       a figure with one value a second    30 means for each window; at most 5 kB
    Spread      a duration, many samples a second   a histogram for each window; at most 26 kB, none while unused
    CodeCounts  refusals by code                    10 counts for each window and code, of at most MOST_CODES codes
"""

import math
from array import array
from bisect import bisect_left
from collections import Counter, deque
from itertools import accumulate

from engine.domain.snapshot import WINDOWS, Percentiles

POINTS = 30
"""Steps of a window that a track keeps."""

SLICES = 6
"""Parts of a window that a spread forgets one by one: it reaches back between 5/6 of the window and all of it."""

SLOTS = 10
"""Parts of a window that codes are counted in."""

SMALLEST = 1e-4
PER_OCTAVE = 8
BUCKETS = 22 * PER_OCTAVE
"""0.1 ms to 419 s, each 9 % wide: a percentile is within 9 % of the truth."""

MOST_CODES = 50
OTHER_CODE = -999
"""Counts any code beyond the first MOST_CODES: the provider must not fill our memory."""


class _Steps:
    """Means of `step` seconds, the newest POINTS of them."""

    __slots__ = ("_count", "_shown", "_step", "_sum", "_values")

    def __init__(self, step: int) -> None:
        self._step = step
        self._values: deque[float] = deque(maxlen=POINTS)
        self._shown: tuple[float, ...] | None = None
        self._sum, self._count = 0.0, 0

    def add(self, value: float, seconds: int = 1) -> None:
        """The same value for some seconds."""
        while seconds > 0:
            taken = min(seconds, self._step - self._count)
            self._sum, self._count, seconds = self._sum + value * taken, self._count + taken, seconds - taken
            if self._count == self._step:
                self._values.append(round(self._sum / self._step, 4))
                self._sum, self._count, self._shown = 0.0, 0, None

    def values(self) -> tuple[float, ...]:
        if self._shown is None:
            self._shown = tuple(self._values)
        return self._shown


class Track:
    """One figure's past: for each window at most POINTS means, oldest first."""

    __slots__ = ("_second", "_windows")

    def __init__(self) -> None:
        self._second: int | None = None
        self._windows = tuple(_Steps(window // POINTS) for window in WINDOWS)

    def put(self, second: int, value: float) -> None:
        """The value of one second. Seconds in between, which nobody told of, count as 0; an earlier one is dropped."""
        missed = 0 if self._second is None else second - self._second - 1
        if missed < 0:
            return
        self._second = second
        for steps in self._windows:
            if missed:
                steps.add(0.0, min(missed, WINDOWS[-1]))
            steps.add(value)

    def points(self, window: int) -> tuple[float, ...]:
        """Of WINDOWS[window]; only whole steps. The same tuple until there is a new one."""
        return self._windows[window].values()

    def newest(self, steps: int) -> float:
        """Mean of the newest `steps` of the shortest window (two seconds each), or of as many as there are; else 0."""
        values = self.points(0)[-steps:]
        return sum(values) / len(values) if values else 0.0

    def all(self) -> tuple[tuple[float, ...], ...]:
        """The points of every window."""
        return tuple(steps.values() for steps in self._windows)


def _empty() -> "array[int]":
    return array("I", [0]) * BUCKETS


class _Slices:
    """Counts by bucket over the newest SLICES parts of one window, and their sum."""

    __slots__ = ("_at", "_length", "_slices", "total")

    def __init__(self, window: float) -> None:
        self._length = window / SLICES
        self._slices: list[array[int] | None] = [None] * SLICES
        self._at = 0
        self.total = _empty()

    def turn(self, now: float) -> None:
        """Forget what is older than the window."""
        at = int(now / self._length)
        for index in range(max(self._at + 1, at - SLICES + 1), at + 1):
            old, self._slices[index % SLICES] = self._slices[index % SLICES], None
            for bucket, count in enumerate(old or ()):
                if count:
                    self.total[bucket] -= count
        self._at = max(self._at, at)

    def add(self, bucket: int, count: int = 1) -> None:
        """Into the newest part."""
        part = self._slices[self._at % SLICES]
        if part is None:
            part = self._slices[self._at % SLICES] = _empty()
        part[bucket] += count
        self.total[bucket] += count


class Spread:
    """A duration's distribution over each window. A sample is counted once, and handed on to the longer windows when
    its slice of the shortest ends: merging histograms of the same buckets loses nothing."""

    __slots__ = ("_cached", "_closes", "_first", "_open", "_windows")

    def __init__(self) -> None:
        self._windows: tuple[_Slices, ...] = ()
        self._open: Counter[int] = Counter()
        """Samples that only the shortest window has."""
        self._closes = -1
        self._first = 0.0
        self._cached: dict[int, tuple[float, Percentiles | None]] = {}

    def add(self, now: float, seconds: float) -> None:
        """One sample."""
        if not self._windows:
            self._windows, self._first = tuple(_Slices(window) for window in WINDOWS), now
        self._turn(now)
        bucket = int(math.log2(max(seconds, SMALLEST) / SMALLEST) * PER_OCTAVE)
        bucket = min(bucket, BUCKETS - 1)
        self._windows[0].add(bucket)
        self._open[bucket] += 1

    def percentiles(self, now: float, window: int = 0) -> Percentiles | None:
        """p50, p95, p99 over WINDOWS[window]; None without a sample. Longer windows may be up to ten seconds behind."""
        if not self._windows:
            return None
        self._turn(now)
        if window == 0:
            return _percentiles(self._windows[0].total)
        made_at, found = self._cached.get(window, (float("-inf"), None))
        if now - made_at >= min(10.0, (now - self._first) / 10):
            counts = array("I", self._windows[window].total)
            for bucket, count in self._open.items():
                counts[bucket] += count
            found = _percentiles(counts)
            self._cached[window] = now, found
        return found

    def all(self, now: float) -> tuple[Percentiles | None, ...]:
        """Over every window."""
        return tuple(self.percentiles(now, window) for window in range(len(WINDOWS)))

    def _turn(self, now: float) -> None:
        closes = int(now / (WINDOWS[0] / SLICES))
        if closes > self._closes:
            for slices in self._windows[1:]:
                for bucket, count in self._open.items():
                    slices.add(bucket, count)
                slices.turn(now)
            self._open.clear()
            self._windows[0].turn(now)
            self._closes = closes


def _percentiles(counts: "array[int]") -> Percentiles | None:
    sums = list(accumulate(counts))
    total = sums[-1]
    if not total:
        return None
    p50, p95, p99 = (
        SMALLEST * 2 ** ((bisect_left(sums, share * total) + 0.5) / PER_OCTAVE)
        for share in (0.50, 0.95, 0.99)
    )
    return Percentiles(p50, p95, p99, total)


class CodeCounts:
    """Refusals by code, over each window in SLOTS parts."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: tuple[dict[int, Counter[int]], ...] = tuple({} for _ in WINDOWS)

    def add(self, now: float, code: int) -> None:
        """One refusal."""
        for window, slots in zip(WINDOWS, self._windows, strict=True):
            slot = int(now * SLOTS / window)
            counts = slots.get(slot)
            if counts is None:
                for old in [s for s in slots if s <= slot - SLOTS]:
                    del slots[old]
                counts = slots[slot] = Counter()
            counts[code if code in counts or len(counts) < MOST_CODES else OTHER_CODE] += 1

    def trends(self, now: float, window: int = 1) -> dict[int, tuple[int, ...]]:
        """For each code its counts per slot, oldest first; the newest slot is still running."""
        newest = int(now * SLOTS / WINDOWS[window])
        slots = [self._windows[window].get(s, Counter[int]()) for s in range(newest - SLOTS + 1, newest + 1)]
        codes = sorted({code for slot in slots for code in slot})
        return {code: tuple(slot[code] for slot in slots) for code in codes}
