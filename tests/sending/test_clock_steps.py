"""The wall clock is set forward, back, by a day: pace, windows and silences go by clocks that nobody sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from engine import clock
from tests.sending.stage import Stage, at_work, judged, refused, seconds, stamps
from tests.support.virtual_loop import run

STEPS = [timedelta(hours=1), timedelta(hours=-1), timedelta(days=400), timedelta(seconds=-3)]


def step(by: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the machine's clock is off by so much."""

    class Stepped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Stepped:
            return cls.fromtimestamp((datetime.now(UTC) + by).timestamp(), tz)

    monkeypatch.setattr(clock, "datetime", Stepped)


@pytest.mark.parametrize("by", STEPS, ids=str)
def test_a_step_neither_stops_the_pace_nor_breaks_a_window(
    by: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(3)
            before = len(stage.arrivals)
            step(by, monkeypatch)
            assert abs(clock.now() - datetime.now(UTC) - by) < timedelta(seconds=1)
            await seconds(10)
            windows = judged(stamps(pipeline))
        assert windows.breaches == 0, windows.first
        assert len(stage.arrivals) - before >= 0.98 * 800

    run(scenario())


@pytest.mark.parametrize("by", STEPS, ids=str)
def test_a_step_neither_shortens_nor_prolongs_a_silence(
    by: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(3)
            stage.answer = refused(130429, {"retry-after": "5"})
            await seconds(1)
            assert pipeline.silent_for > 3
            stage.answer = Stage().answer
            left, before = pipeline.silent_for, len(stage.arrivals)
            step(by, monkeypatch)
            assert pipeline.silent_for == left
            await seconds(left - 0.1)
            assert len(stage.arrivals) == before
            await seconds(5)
            assert len(stage.arrivals) > before

    run(scenario())
