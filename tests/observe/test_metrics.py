"""Figures in memory: bounded, honest over gaps, and within what they promise."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.past import CodeCounts
from engine.domain.snapshot import SERIES_SECONDS
from engine.observe.metrics import Histogram, NodeFigures, NumberFigures
from engine.observe.ring import Ring

durations = st.floats(0.0002, 300)


def test_a_ring_counts_by_whole_seconds() -> None:
    ring = Ring()
    for at in (100.0, 100.9, 101.0, 103.5):
        ring.add(at)
    assert ring.last(104.0, 5) == (0, 2, 1, 0, 1)
    assert ring.last(103.9, 3) == (2, 1, 0)  # the running second is not whole
    assert ring.mean(104.0, 4) == 1.0


def test_a_ring_is_empty_after_a_gap_as_long_as_itself() -> None:
    ring = Ring()
    for second in range(SERIES_SECONDS):
        ring.add(float(second))
    assert ring.mean(float(SERIES_SECONDS), SERIES_SECONDS) == 1.0
    ring.add(2.0 * SERIES_SECONDS)
    assert sum(ring.last(2.0 * SERIES_SECONDS + 1, SERIES_SECONDS)) == 1


@settings(deadline=None)  # the clock is no judge
@given(st.lists(st.tuples(st.integers(0, 2 * SERIES_SECONDS), st.integers(1, 9)), max_size=60))
def test_a_ring_forgets_nothing_within_its_hour_and_everything_beyond(steps: list[tuple[int, int]]) -> None:
    ring, now, kept = Ring(), 10_000, dict[int, int]()
    for gap, value in steps:
        now += gap
        ring.add(float(now), value)
        kept[now] = kept.get(now, 0) + value
    span = SERIES_SECONDS - 1
    expected = tuple(float(kept.get(second, 0)) for second in range(now + 1 - span, now + 1))
    assert ring.last(float(now + 1), span) == expected


def test_a_late_figure_lands_in_its_own_second() -> None:
    ring = Ring()
    ring.add(120.0)
    ring.add(105.0)
    assert ring.last(121.0, 16) == (1, *[0] * 14, 1)


def test_a_second_may_be_set() -> None:
    ring = Ring()
    ring.put(5.0, 7.0)
    ring.put(5.5, 8.0)
    assert ring.last(6.0, 1) == (8.0,)


@settings(deadline=None)  # the clock is no judge
@given(st.lists(durations, min_size=1, max_size=200))
def test_percentiles_are_within_9_percent(samples: list[float]) -> None:
    histogram = Histogram()
    for sample in samples:
        histogram.add(50.0, sample)
    found = histogram.percentiles(50.0)
    assert found is not None
    assert found.count == len(samples)
    ordered = sorted(samples)
    for share, value in ((0.5, found.p50), (0.95, found.p95), (0.99, found.p99)):
        true = ordered[max(0, math.ceil(share * len(samples)) - 1)]
        assert value == pytest.approx(true, rel=0.09)


def test_a_histogram_without_samples_says_so() -> None:
    assert Histogram().percentiles(100.0) is None


def test_a_sample_counts_for_a_minute_at_most_and_fifty_seconds_at_least() -> None:
    histogram = Histogram()
    histogram.add(100.0, 1.0)
    assert histogram.percentiles(149.0) is not None
    assert histogram.percentiles(160.0) is None


@settings(deadline=None)  # the clock is no judge
@given(st.lists(st.tuples(st.floats(0, 200), durations), max_size=40))
def test_after_any_gap_only_the_last_minute_counts(steps: list[tuple[float, float]]) -> None:
    histogram, now = Histogram(), 1000.0
    moments = []
    for gap, sample in steps:
        now += gap
        histogram.add(now, sample)
        moments.append(now)
    found = histogram.percentiles(now)
    count = found.count if found else 0
    assert sum(at > now - 50 for at in moments) <= count <= sum(at > now - 60 for at in moments)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e9])
def test_what_no_bucket_fits_goes_into_the_outermost(seconds: float) -> None:
    histogram = Histogram()
    histogram.add(1.0, seconds)
    found = histogram.percentiles(1.0)
    assert found is not None
    assert 1e-4 <= found.p50 <= 500


def test_codes_are_counted_in_ten_slots_of_half_a_minute() -> None:
    counts = CodeCounts()
    for at, code in ((0.0, 130429), (29.9, 130429), (30.0, 131026), (299.0, 130429)):
        counts.add(at, code)
    assert counts.trends(299.0) == {
        130429: (2, 0, 0, 0, 0, 0, 0, 0, 0, 1),
        131026: (0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
    }


def test_codes_of_more_than_five_minutes_ago_are_forgotten() -> None:
    counts = CodeCounts()
    counts.add(0.0, 130429)
    assert counts.trends(299.0) == {130429: (1, *[0] * 9)}
    assert counts.trends(300.0) == {}
    counts.add(1e6, 131026)
    assert counts.trends(1e6) == {131026: (*[0] * 9, 1)}


def test_a_number_tells_what_it_waited_for_most_of_late() -> None:
    figures = NumberFigures()
    assert figures.waited_most() == "rows"
    figures.waited("bucket", 3.0)
    figures.waited("slots", 1.0)
    assert figures.waited_most() == "bucket"
    for _ in range(3):
        figures.waited("slots", 1.0)
        last = figures.waited_most()
    assert last == "slots"  # what lies back counts less and less


def test_a_number_s_figures_outlive_its_ownership() -> None:
    node = NodeFigures()
    node.number(1).accepted.add(5.0)
    assert node.number(1).accepted.last(6.0, 1) == (1.0,)
    assert node.number(2).accepted.last(6.0, 1) == (0.0,)
