"""The pace of one number, from the claim to the wire, in virtual time: full, even, and never above the ceiling."""

import asyncio
from itertools import pairwise

import pytest

from tests.sending.stage import (
    Stage,
    at_work,
    hiccups,
    judged,
    most_within,
    seconds,
    set_rate,
    stamps,
)
from tests.support.virtual_loop import jump, run


def assert_held(sends: list[tuple[float, float]], limit: float = 1000.0) -> None:
    windows = judged(sends, limit)
    assert windows.sends == len(sends) > 0
    assert windows.breaches == 0, windows.first


@pytest.mark.parametrize("rate", [1, 2, 3, 4, 5, 10, 20, 64, 80])
def test_a_rate_is_used_and_never_exceeded(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, rate, monkeypatch) as pipeline:
            await seconds(2)
            begin = asyncio.get_running_loop().time()
            span = 10 if rate >= 10 else 60
            await seconds(span)
            sends = stamps(pipeline)
        assert_held(sends)
        steady = [at for at, _ in sends if at > begin]
        assert len(steady) >= 0.98 * rate * span - 1
        assert most_within(stage.arrivals, 1.0) <= rate
        assert most_within(stage.arrivals, 0.1) <= 2 * rate * 0.1 + 2

    run(scenario())


def test_a_thousand_a_second_are_used_and_held(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 1000, monkeypatch) as pipeline:
            await seconds(0.5)
            before = len(stage.arrivals)
            await seconds(2)
            assert len(stage.arrivals) - before >= 0.98 * 2000
            assert_held(stamps(pipeline))
        assert most_within(stage.arrivals, 0.1) <= 202

    run(scenario())


def test_a_fifth_of_a_message_a_second_is_one_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 0.2, monkeypatch) as pipeline:
            await seconds(60)
            assert_held(stamps(pipeline))
        gaps = [b - a for a, b in pairwise(stage.arrivals)]
        assert 11 <= len(stage.arrivals) <= 12
        assert min(gaps) >= 5

    run(scenario())


@pytest.mark.parametrize("rate", [1.5, 2.9, 33.3])
def test_a_fraction_of_a_message_is_not_sent(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, rate, monkeypatch) as pipeline:
            await seconds(20)
            assert_held(stamps(pipeline))
        assert most_within(stage.arrivals, 1.0) == int(rate)

    run(scenario())


def test_a_higher_rate_acts_within_a_second_and_breaks_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 20, monkeypatch) as pipeline:
            await seconds(5)
            set_rate(pipeline, 80)
            await seconds(1)
            before = len(stage.arrivals)
            await seconds(5)
            assert len(stage.arrivals) - before >= 0.98 * 400
            assert_held(stamps(pipeline))

    run(scenario())


def test_a_lower_rate_acts_within_a_second_and_breaks_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(5)
            cut = asyncio.get_running_loop().time()
            set_rate(pipeline, 20)
            await seconds(6)
            assert_held(stamps(pipeline))
        later = [at for at in stage.arrivals if at > cut + 1]
        assert most_within(later, 1.0) <= 20
        assert len(later) >= 0.95 * 100

    run(scenario())


def test_a_rate_that_changes_all_the_time_breaks_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(mark_seconds=hiccups(7, 0.08))
        async with at_work(stage, 80, monkeypatch) as pipeline:
            for turn in range(200):
                await seconds(0.05 + turn % 7 * 0.03)
                set_rate(pipeline, (80, 3, 40, 0.5, 200, 64.5, 1)[turn % 7])
            assert_held(stamps(pipeline))

    run(scenario())


def test_a_rate_from_very_slow_to_fast_is_not_slept_through(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 0.01, monkeypatch) as pipeline:
            await seconds(5)
            assert len(stage.arrivals) == 1
            set_rate(pipeline, 80)
            await seconds(1)
            assert len(stage.arrivals) > 40

    run(scenario())


@pytest.mark.parametrize("rate", [80, 1000])
def test_slow_commits_bunch_no_sends(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(mark_seconds=hiccups(20, 0.2))
        async with at_work(stage, rate, monkeypatch) as pipeline:
            await seconds(4)
            assert_held(stamps(pipeline))
        assert most_within(stage.arrivals, 1.0) <= rate

    run(scenario())


def test_after_idle_no_credit_has_been_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(rows=5)
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(30)
            assert len(stage.arrivals) == 5
            stage.rows = float("inf")
            await seconds(3)
            assert_held(stamps(pipeline))
        assert most_within(stage.arrivals, 0.1) <= 18

    run(scenario())


def test_after_a_suspend_there_is_no_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(2)
            jump(3600)
            await seconds(2)
            assert_held(stamps(pipeline))
        assert most_within(stage.arrivals, 0.1) <= 18

    run(scenario())


def test_open_requests_are_bounded_by_the_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(latency=lambda: 3600.0)
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(30)
            assert stage.most_open == pipeline.in_flight == 130  # 80/s x 1 s (not measured yet) x 1.5 + 10
            pipeline.abandon()
        assert stage.outcomes.count("unknown") == 130

    run(scenario())


def test_a_predecessor_s_sends_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        now = asyncio.get_running_loop().time()
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            before = [now - 0.9 + i * 0.01 for i in range(80)]
            pipeline.open_at(now, before)
            await seconds(2)
        assert stage.arrivals[0] >= before[0] + 1.0
        assert most_within(before + stage.arrivals, 1.0) <= 80

    run(scenario())


def test_nothing_leaves_before_a_dead_owner_s_window_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        opens = asyncio.get_running_loop().time() + 1.065
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            pipeline.open_at(opens, [])
            await seconds(3)
        assert stage.arrivals[0] >= opens

    run(scenario())
