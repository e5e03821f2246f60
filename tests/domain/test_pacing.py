"""The window: for any sends, any rates and any changes of rate, no second holds more than it may."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.pacing import (
    WINDOW,
    SlidingWindow,
    claim_ahead,
    in_flight_bound,
    interval,
    lead_room,
    per_window,
)
from engine.domain.windows import allowed

rates = st.one_of(
    st.integers(1, 100).map(float), st.floats(0.05, 1), st.floats(1, 120), st.sampled_from([0.2, 80, 1000.0])
)
pauses = st.one_of(st.floats(0, 0.05), st.floats(0, 3), st.just(0.0))


def worst(sent: list[tuple[float, float]]) -> None:
    """Every half-open second that ends with a send holds no more than that send's rate allows."""
    for index, (at, rate) in enumerate(sent):
        inside = sum(before > at - 1.0 for before, _ in sent[: index + 1])
        assert inside <= allowed(rate), (at, rate, inside)


@given(st.lists(st.tuples(pauses, rates), max_size=150))
def test_no_second_holds_more_than_its_rate(steps: list[tuple[float, float]]) -> None:
    window, now = SlidingWindow(), 100.0
    sent: list[tuple[float, float]] = []
    for pause, rate in steps:
        now += pause
        if window.delay(now, rate) == 0:
            window.stamp(now)
            sent.append((now, rate))
    worst(sent)


@given(rates, st.lists(rates, max_size=4), st.integers(1, 60))
def test_waiting_as_told_is_always_enough_and_ends(first: float, later: list[float], each: int) -> None:
    window, now = SlidingWindow(), 100.0
    sent: list[tuple[float, float]] = []
    for rate in (first, *later):
        for _ in range(min(each, allowed(rate) * 3)):
            looks = 0
            while (delay := window.delay(now, rate)) > 0:
                now += delay
                looks += 1
                assert looks < 20
            window.stamp(now)
            sent.append((now, rate))
    worst(sent)


@given(st.lists(st.tuples(pauses, rates, st.integers(0, 3)), max_size=120))
def test_sends_that_were_let_through_and_not_stamped_yet_count(steps: list[tuple[float, float, int]]) -> None:
    window, now = SlidingWindow(), 100.0
    waiting: list[float] = []
    sent: list[tuple[float, float]] = []
    for pause, rate, leave in steps:
        now += pause
        for _ in range(min(leave, len(waiting))):
            window.stamp(now)
            sent.append((now, waiting.pop(0)))
        if window.delay(now, rate, len(waiting)) == 0:
            waiting.append(rate)
    if len({rate for _, rate, _ in steps}) <= 1:
        worst(sent)
    # Across changes a send leaves by the rate that let it through; no window exceeds the highest in it.
    for index, (at, _) in enumerate(sent):
        inside = [rate for before, rate in sent[: index + 1] if before > at - 1.0]
        assert len(inside) <= max(map(allowed, inside))


@given(st.integers(1, 1000))
def test_an_integer_rate_is_used_to_98_percent(rate: int) -> None:
    window, now = SlidingWindow(), 100.0
    count = 0
    while now < 103.0 + 1 / rate:
        delay = window.delay(now, rate)
        if delay == 0:
            window.stamp(now)
            count += 1
            now += 1e-5
        else:
            now += delay
    assert count >= 0.98 * rate * 3


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.99])
def test_below_one_a_second_the_window_is_as_long_as_one_send(rate: float) -> None:
    window = SlidingWindow()
    window.stamp(100.0)
    assert window.delay(100.0, rate) == pytest.approx(WINDOW / rate)
    assert window.delay(100.0 + 0.99 / rate, rate) > 0
    assert window.delay(100.0 + WINDOW / rate + 1e-6, rate) == 0


def test_no_rate_never_lets_anything_out() -> None:
    assert SlidingWindow().delay(100.0, 0) == math.inf


def test_a_cut_waits_until_the_window_is_below_the_new_rate() -> None:
    window = SlidingWindow()
    for i in range(80):
        window.stamp(100 + i / 80)
    delay = window.delay(101.0, 20)
    assert delay > 0.7
    inside = window.recent(101.0 + delay)
    assert len(inside) == 19


def test_a_predecessor_s_sends_count_and_are_forgotten() -> None:
    window = SlidingWindow()
    window.seed([99.5, 99.6])
    assert window.delay(100.0, 2) == pytest.approx(99.5 + WINDOW - 100)
    assert window.count_last_second(100.0) == 2
    assert window.delay(101.0, 2) == 0
    assert window.recent(101.0) == []


@given(st.floats(0.01, 2000))
def test_what_is_held_ahead_follows_the_rate(rate: float) -> None:
    assert per_window(rate) == allowed(rate)
    assert interval(rate) * per_window(rate) == pytest.approx(max(WINDOW, WINDOW / rate))
    assert 1 <= claim_ahead(rate) <= rate / 4 + 1
    assert 2 <= lead_room(rate) <= rate * 0.06 + 2


@given(st.floats(0.01, 2000), st.floats(0, 100))
def test_open_requests_are_bounded_by_little_s_law(rate: float, latency: float) -> None:
    bound = in_flight_bound(rate, latency)
    assert rate * min(latency, 5) * 1.5 + 10 <= bound <= rate * 7.5 + 11
