"""The sliding window and the latency."""

from __future__ import annotations

from random import Random
from statistics import median, quantiles

from hypothesis import given
from hypothesis import strategies as st

from engine.simulator.latency import draw_ms
from engine.simulator.limits import SlidingWindow
from engine.simulator.scenario import Latency

SECOND = 1_000_000


def granted(arrivals: list[int], limit: int, window_us: int = SECOND) -> list[int]:
    window, taken = SlidingWindow(), []
    for at in arrivals:
        if window.room(at, limit, window_us):
            window.take(at)
            taken.append(at)
    return taken


def test_a_burst_is_granted_up_to_the_limit_and_refused_beyond() -> None:
    assert len(granted([5] * 100, 80)) == 80


def test_an_arrival_leaves_the_window_exactly_one_second_later() -> None:
    assert granted([0, SECOND - 1], 1) == [0]
    assert granted([0, SECOND], 1) == [0, SECOND]


def test_a_burst_across_the_turn_of_a_second_gets_no_second_allowance() -> None:
    late, early = [990_000] * 80, [1_010_000] * 80
    assert granted(late + early, 80) == late


def test_a_narrower_window_forgives_the_jitter_of_arrival() -> None:
    assert granted([0, 986_000], 1) == [0]
    assert granted([0, 986_000], 1, 985_000) == [0, 986_000]


def test_refused_arrivals_cost_nothing() -> None:
    assert granted([0, 1, 2, SECOND], 1) == [0, SECOND]


def test_a_limit_of_zero_grants_nothing() -> None:
    assert granted([0, SECOND, 2 * SECOND], 0) == []


@given(
    st.lists(st.integers(min_value=0, max_value=5 * SECOND), max_size=200).map(sorted),
    st.integers(min_value=1, max_value=20),
)
def test_no_sliding_second_ever_holds_more_than_the_limit(arrivals: list[int], limit: int) -> None:
    taken = granted(arrivals, limit)
    for end in taken:
        assert sum(end - SECOND < at <= end for at in taken) <= limit


def test_the_latency_has_the_median_and_the_95th_percentile_asked_for() -> None:
    chance = Random(7)
    drawn = [draw_ms(Latency(median_ms=250, p95_ms=600), chance) for _ in range(20_000)]
    assert 240 < median(drawn) < 260
    assert 570 < quantiles(drawn, n=20)[-1] < 630


def test_a_fixed_latency_is_always_the_same() -> None:
    assert {draw_ms(Latency(fixed_ms=12), Random(1)) for _ in range(5)} == {12}
