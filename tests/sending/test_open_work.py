"""When a number should be sending and does not: never while anything holds it, always when a part of ours hangs.

The whole pipeline in virtual time, looked at as the engine looks at it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.observe.watchdog import StalledError, WorkWatch
from engine.sending.pipeline import Pipeline
from engine.watch import open_work
from tests.sending.stage import Stage, at_work, refused, seconds, set_rate
from tests.support.virtual_loop import run

LANE = 1
LONG = 500.0
"""Seconds: more than four times the interval of the slowest number here, whose patience is the longest."""


async def watched(stage: Stage, pipeline: Pipeline, span: float) -> bool:
    """Look at the pipeline for so long, with a row of its lane always due; whether it was taken to stand still."""
    watch = WorkWatch(lambda: open_work([pipeline], lambda _: stage.campaigns, [LANE], 20.0))
    watching = asyncio.create_task(watch.run())
    done, _ = await asyncio.wait({watching}, timeout=span)
    watching.cancel()
    return bool(done) and isinstance(watching.exception(), StalledError)


def stalls(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Stage, Pipeline], object], rate: float = 2.0
) -> bool:
    """Whether what follows a change is taken for a fault of ours."""
    found: list[bool] = []

    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, rate, monkeypatch) as pipeline:
            await seconds(2)
            change(stage, pipeline)
            found.append(await watched(stage, pipeline, LONG))

    run(scenario())
    return found == [True]


def pause(_: Stage, pipeline: Pipeline) -> None:
    pipeline.follow(replace(pipeline.number, paused=True))


def hold(_: Stage, pipeline: Pipeline) -> None:
    pipeline.stop_here("131042")


def wait_for_the_provider(_: Stage, pipeline: Pipeline) -> None:
    pipeline.silence(2 * LONG, "the provider asked for silence")


def throttle(stage: Stage, _: Pipeline) -> None:
    stage.answer = refused(130429)


def lose_the_database(_: Stage, pipeline: Pipeline) -> None:
    pipeline._shared.marker.healthy = False


def lose_the_lease(_: Stage, pipeline: Pipeline) -> None:
    pipeline.lease_until = 0.0


def close_the_lanes(stage: Stage, _: Pipeline) -> None:
    stage.campaigns[:] = [replace(one, lanes=()) for one in stage.campaigns]


def end_the_campaign(stage: Stage, _: Pipeline) -> None:
    stage.campaigns.clear()


def give_others_the_rows(stage: Stage, _: Pipeline) -> None:
    stage.rows = 0


def be_slow(_: Stage, pipeline: Pipeline) -> None:
    set_rate(pipeline, 0.01)


@pytest.mark.parametrize(
    "change",
    [
        lambda *_: None,
        pause,
        hold,
        wait_for_the_provider,
        throttle,
        lose_the_database,
        lose_the_lease,
        close_the_lanes,
        end_the_campaign,
        give_others_the_rows,
        be_slow,
    ],
    ids=lambda change: change.__name__,
)
def test_a_number_that_sends_or_waits_for_a_reason_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Stage, Pipeline], object]
) -> None:
    assert not stalls(monkeypatch, change)


async def never(*_: object) -> None:
    await asyncio.get_running_loop().create_future()


def hang_the_marker(stage: Stage, _: Pipeline) -> None:
    stage.mark_seconds = lambda: 200.0


def hang_the_limiter(_: Stage, pipeline: Pipeline) -> None:
    pipeline._limiter.permit = never  # type: ignore[method-assign]


def lose_every_request(_: Stage, pipeline: Pipeline) -> None:
    pipeline.in_flight = 1_000_000


@pytest.mark.parametrize("change", [hang_the_marker, hang_the_limiter, lose_every_request])
def test_a_part_that_hangs_is_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Stage, Pipeline], object]
) -> None:
    assert stalls(monkeypatch, change)
