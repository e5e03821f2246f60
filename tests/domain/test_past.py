"""Six hours in little memory: windows are what they say, merging loses nothing, and nothing grows."""

import math
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.past import BUCKETS, MOST_CODES, OTHER_CODE, POINTS, CodeCounts, Spread, Track
from engine.domain.snapshot import WINDOWS

durations = st.floats(0.0002, 300)
STEP = WINDOWS[0] // POINTS
window = st.sampled_from(range(len(WINDOWS)))


@settings(deadline=None)
@given(st.lists(st.floats(0, 1000), min_size=1, max_size=400), window)
def test_a_track_keeps_the_mean_of_each_whole_step(values: list[float], at: int) -> None:
    track = Track()
    for second, value in enumerate(values):
        track.put(second, value)
    step = WINDOWS[at] // POINTS
    whole = [values[i : i + step] for i in range(0, len(values) - step + 1, step)][-POINTS:]
    assert track.points(at) == pytest.approx([sum(part) / step for part in whole], abs=1e-4)


def test_a_track_reaches_back_six_hours_and_never_holds_more_than_its_points() -> None:
    track = Track()
    for second in range(2 * WINDOWS[-1]):
        track.put(second, float(second >= WINDOWS[-1]))
    assert [len(track.points(i)) for i in range(len(WINDOWS))] == [POINTS] * len(WINDOWS)
    assert track.points(4) == (1.0,) * POINTS
    track.put(2 * WINDOWS[-1], 0.0)
    assert track.points(4) == (1.0,) * POINTS


@pytest.mark.parametrize("gap", [2, 60, 3600, 10**9])
def test_seconds_that_nobody_told_of_are_empty_and_cost_no_time(gap: int) -> None:
    track = Track()
    track.put(0, 5.0)
    track.put(gap + 1, 7.0)
    assert track.points(0)[-1] == 7.0 / STEP
    assert track.newest(1) == track.points(0)[-1]
    assert sum(track.points(0)) <= (7.0 + 5.0) / STEP


def test_a_second_that_was_told_already_is_dropped() -> None:
    track = Track()
    for second, value in ((4, 1.0), (4, 9.0), (3, 9.0), (5, 2.0)):
        track.put(second, value)
    assert track.points(0) == (1.5,)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 2000), durations), min_size=1, max_size=60), window)
def test_a_window_counts_what_lies_within_it_and_nothing_older(
    steps: list[tuple[float, float]], at: int
) -> None:
    spread, now, moments = Spread(), 50_000.0, []
    for gap, sample in steps:
        now += gap
        spread.add(now, sample)
        moments.append(now)
    found = spread.percentiles(now, at)
    count = found.count if found else 0
    reach = WINDOWS[at]
    assert sum(m > now - reach * 5 / 6 for m in moments) <= count <= sum(m > now - reach for m in moments)


@settings(deadline=None)
@given(st.lists(durations, min_size=1, max_size=200), window)
def test_every_window_s_percentiles_are_within_9_percent_of_the_truth(samples: list[float], at: int) -> None:
    spread = Spread()
    for i, sample in enumerate(samples):
        spread.add(3600.0 + i / 10, sample)  # over two slices of the shortest window: handed on in between
    found = spread.percentiles(3600.0 + len(samples) / 10, at)
    assert found is not None
    assert found.count == len(samples)
    ordered = sorted(samples)
    for share, value in ((0.5, found.p50), (0.95, found.p95), (0.99, found.p99)):
        assert value == pytest.approx(ordered[max(0, math.ceil(share * len(samples)) - 1)], rel=0.09)


@given(st.lists(durations, max_size=50), st.lists(durations, max_size=50))
def test_what_is_merged_from_slices_is_as_if_it_had_been_counted_at_once(
    first: list[float], second: list[float]
) -> None:
    apart, together = Spread(), Spread()
    for sample in first:
        apart.add(3600.0, sample)
    for sample in second:
        apart.add(3611.0, sample)
    for sample in (*first, *second):
        together.add(3600.0, sample)
    assert apart.percentiles(3650.0, 2) == together.percentiles(3650.0, 2)


def test_a_longer_window_is_at_most_ten_seconds_behind() -> None:
    spread = Spread()
    spread.add(3600.0, 0.1)
    assert spread.percentiles(3600.0, 4) is not None
    for second in range(3601, 7200):
        spread.add(float(second), 0.1)
        found = spread.percentiles(float(second), 4)
        assert found is not None
        assert second - 3599 - found.count <= 10


def test_a_spread_of_six_busy_hours_stays_within_its_bound() -> None:
    spread = Spread()
    for second in range(0, WINDOWS[-1], 7):
        spread.add(float(second), 0.001 * (1 + second % 977))
    kept = sum(
        sys.getsizeof(counts)
        for slices in spread._windows
        for counts in (slices.total, *slices._slices)
        if counts is not None
    )
    assert kept <= 26 * 1024 + len(WINDOWS) * 7 * 80  # the buckets, and what an array costs beside them
    assert all(len(slices.total) == BUCKETS for slices in spread._windows)


def test_an_unused_spread_costs_nothing() -> None:
    spread = Spread()
    assert spread.percentiles(1e6, 3) is None
    assert spread._windows == ()


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 900), st.integers(1, 3)), max_size=60), window)
def test_codes_are_counted_in_every_window(steps: list[tuple[float, int]], at: int) -> None:
    counts, now, kept = CodeCounts(), 50_000.0, list[tuple[float, int]]()
    for gap, code in steps:
        now += gap
        counts.add(now, code)
        kept.append((now, code))
    slot = WINDOWS[at] / 10
    oldest = (int(now * 10 / WINDOWS[at]) - 9) * slot
    expected = Counter(code for moment, code in kept if moment >= oldest)
    assert {code: sum(trend) for code, trend in counts.trends(now, at).items()} == expected


def test_a_provider_that_invents_codes_does_not_fill_our_memory() -> None:
    counts = CodeCounts()
    for code in range(10_000):
        counts.add(100.0, code)
    for at in range(len(WINDOWS)):
        trends = counts.trends(100.0, at)
        assert len(trends) == MOST_CODES + 1
        assert sum(trends[OTHER_CODE]) == 10_000 - MOST_CODES
