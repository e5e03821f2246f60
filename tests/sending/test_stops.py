"""What stops one number, in virtual time: nothing leaves after a stop, and no row is forgotten by it."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from engine.domain.outcome import Accepted, Ambiguous, NotSent, Withdrawn
from tests.sending.stage import Stage, accepted, at_work, campaign, refused, seconds, set_rate
from tests.support.virtual_loop import run


def unsettled(stage: Stage) -> set[int]:
    """Claimed rows of which nothing was heard again: neither a result nor given back."""
    settled = {result.work.row.id for result, _ in stage.results} | set(stage.given_back)
    return set(range(1, stage.claimed + 1)) - settled


def test_nothing_leaves_after_a_pause_here(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(mark_seconds=lambda: 0.05)
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(2)
            before = len(stage.arrivals)
            pipeline.pause_here()
            await seconds(10)
            assert len(stage.arrivals) == before > 100
            assert pipeline.leading == pipeline.in_flight == 0
            assert unsettled(stage) == set()

    run(scenario())


def test_requests_in_flight_finish_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(latency=lambda: 3.0)
        async with at_work(stage, 20, monkeypatch) as pipeline:
            await seconds(2)
            left = len(stage.arrivals)
            assert stage.outcomes == []
            pipeline.pause_here()
            await seconds(5)
        assert stage.outcomes.count("accepted") == left == len(stage.arrivals)

    run(scenario())


def test_a_pause_from_elsewhere_stops_and_a_resume_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(1)
            pipeline.follow(replace(pipeline.number, paused=True))
            before = len(stage.arrivals)
            await seconds(60)
            assert len(stage.arrivals) == before
            pipeline.follow(replace(pipeline.number, paused=False))
            await seconds(2)
            assert len(stage.arrivals) > before + 100

    run(scenario())


def test_a_pause_here_outlasts_older_news_from_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(1)
            pipeline.pause_here()
            before = len(stage.arrivals)
            pipeline.follow(replace(pipeline.number, paused=False))  # read before the act was stored
            await seconds(2)
            assert len(stage.arrivals) == before

    run(scenario())


def test_a_rate_of_nothing_is_a_pause_and_takes_back_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(2)
            set_rate(pipeline, 0)
            before = len(stage.arrivals)
            await seconds(5)
            assert len(stage.arrivals) == before
            assert pipeline.leading == 0
            assert unsettled(stage) == set()

    run(scenario())


def test_a_short_silence_is_waited_out_and_a_long_one_gives_rows_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(2)
            pipeline.silence(1.0, "a second")
            begin, before = asyncio.get_running_loop().time(), len(stage.arrivals)
            await seconds(3)
            assert stage.arrivals[before] >= begin + 1.0
            assert "withdrawn" not in stage.outcomes
            assert stage.given_back == []
            pipeline.silence(600.0, "ten minutes")
            before = len(stage.arrivals)
            await seconds(5)
            assert len(stage.arrivals) == before
            assert unsettled(stage) == set()  # other numbers may have them

    run(scenario())


def test_a_mark_that_comes_back_into_a_long_silence_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(mark_seconds=lambda: 0.2)
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(1)
            assert pipeline.leading > 0
            pipeline.silence(3600.0, "an hour")
            await seconds(0.5)
            assert pipeline.leading == 0
            assert any(isinstance(result.answer, Withdrawn) for result, _ in stage.results)

    run(scenario())


def test_a_throughput_error_silences_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(2)
            stage.answer = refused(130429, {"retry-after": "7"})
            while "refused" not in stage.outcomes:
                await seconds(0.01)
            begin, before = asyncio.get_running_loop().time(), len(stage.arrivals)
            assert pipeline.closed() == "provider"
            await seconds(10)
            assert stage.arrivals[before] >= begin + 7.0

    run(scenario())


def test_a_provider_out_of_reach_for_long_is_probed_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    async def scenario() -> None:
        stage = Stage(latency=lambda: 0.5, answer=unreachable)
        async with at_work(stage, 80, monkeypatch):
            await seconds(600)
            assert stage.outcomes.count("not_sent") > 1100  # beyond what a power of two can be a float of
            before = len(stage.arrivals)
            await seconds(60)
            assert 0 < len(stage.arrivals) - before <= 7 * 45  # seven looks, each until its first refusal
            stage.answer = accepted
            await seconds(15)
            assert stage.outcomes[-1] == "accepted"

    run(scenario())


def test_a_lost_lease_stops_at_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(1)
            stage.verdict = lambda _: "lost"
            await seconds(0.5)
            before = len(stage.arrivals)
            await seconds(5)
            assert len(stage.arrivals) == before
            assert pipeline.stopped() == "the lease ran out"

    run(scenario())


def test_an_expired_lease_stops_what_waits_at_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(1)
            pipeline.lease_until = 0.0  # by the clock that also runs in a suspend
            before = len(stage.arrivals)
            await seconds(5)
            assert len(stage.arrivals) == before

    run(scenario())


def test_a_row_that_was_not_marked_does_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(verdict=lambda ask: "ok" if ask.id % 2 else "held")
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(5)
            assert {result.work.row.id % 2 for result, _ in stage.results} == {1}
            assert pipeline.leading < 10

    run(scenario())


def test_a_drain_leaves_no_row_in_nobody_s_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(mark_seconds=lambda: 0.03)
        async with at_work(stage, 200, monkeypatch) as pipeline:
            await seconds(3)
            pipeline.stopping()
            before = len(stage.arrivals)
        assert len(stage.arrivals) == before
        assert unsettled(stage) == set()
        assert stage.outcomes.count("accepted") == before

    run(scenario())


def test_what_is_open_when_the_grace_ends_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(latency=lambda: 900.0)
        async with at_work(stage, 10, monkeypatch) as pipeline:
            await seconds(3)
            pipeline.stopping()
            assert pipeline.abandon() == len(stage.arrivals) > 20
        left = [result for result, _ in stage.results if not isinstance(result.answer, Withdrawn)]
        assert {type(result.answer) for result in left} == {Ambiguous}
        assert len(left) == len(stage.arrivals)

    run(scenario())


def test_rows_of_a_campaign_that_is_over_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 10, monkeypatch) as pipeline:
            await seconds(2)
            stage.rows, stage.campaigns = 0, []
            await seconds(5)
            assert unsettled(stage) == set()
            assert pipeline.in_flight == 0

    run(scenario())


def test_the_sweep_knows_every_row_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(latency=lambda: 30.0)
        async with at_work(stage, 10, monkeypatch) as pipeline:
            await seconds(5.5)
            [beside] = stage.swept_beside
            assert set(beside) >= unsettled(stage) - set(range(max(beside) + 1, stage.claimed + 1))
            assert len(beside) >= len(stage.arrivals)
            pipeline.abandon()

    run(scenario())


@pytest.mark.parametrize("fault", [RuntimeError("boom"), httpx.ReadTimeout("slow")])
def test_any_fault_after_the_hand_over_is_ambiguous(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: httpx.Request) -> httpx.Response:
        raise fault

    async def scenario() -> None:
        stage = Stage(answer=broken, rows=20)
        async with at_work(stage, 80, monkeypatch):
            await seconds(5)
        assert stage.outcomes == ["unknown"] * 20

    run(scenario())


def test_without_a_token_nothing_leaves_and_rows_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(token="The token file is empty: put the token alone into it.")
        async with at_work(stage, 80, monkeypatch):
            await seconds(5)
        assert stage.arrivals == []
        assert {type(result.answer) for result, _ in stage.results} <= {NotSent, Withdrawn}
        assert any(isinstance(result.answer, NotSent) for result, _ in stage.results)

    run(scenario())


def test_a_row_that_cannot_be_built_fails_alone_and_blocks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(rows=10, campaigns=[campaign(body=("name",))])
        async with at_work(stage, 80, monkeypatch):
            await seconds(3)
            assert stage.outcomes == ["refused"] * 10
            assert stage.arrivals == []
            stage.params, stage.rows = {"name": "Ana"}, 10
            await seconds(3)
        assert stage.outcomes[-1] == "accepted"
        assert any(isinstance(result.answer, Accepted) for result, _ in stage.results)

    run(scenario())


def test_a_fault_while_building_settles_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage(rows=10, campaigns=[campaign(body=("name",))], params={"name": "\ud800"})
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(30)
            assert pipeline.in_flight == 0
            assert unsettled(stage) == set()
        assert set(stage.outcomes) <= {"not_sent", "withdrawn"}
        assert stage.outcomes.count("not_sent") >= 5

    run(scenario())


def test_a_stop_from_here_outlasts_what_the_database_said_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with at_work(stage, 80, monkeypatch) as pipeline:
            await seconds(1)
            pipeline.stop_here("190 The access token expired")
            before = len(stage.arrivals)
            pipeline.follow(pipeline.number)  # read before the breaker's row was written
            await seconds(1)
            assert len(stage.arrivals) == before
            await seconds(2)
            pipeline.follow(pipeline.number)  # and now there is none: it was refused, or lifted
            await seconds(2)
            assert len(stage.arrivals) > before + 100

    run(scenario())
