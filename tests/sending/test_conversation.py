"""Conversations and campaigns of one number, in virtual time: who goes first, who makes room, and what stops whom."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence

import httpx
import pytest

from engine.domain.gateway import Reply
from engine.domain.windows import Send, Windows
from engine.sending.gate import CAMPAIGN, CONVERSATION
from engine.sending.pipeline import Pipeline
from tests.sending.stage import Stage, accepted, at_work, refused, seconds
from tests.support.virtual_loop import run

BODY = b'{ "to": "5511988880001",  "type":"text", "biz_opaque_callback_data": "client-7" }'
PATIENCE = 5.0
RATE = 80


class Talk:
    """Clients of the gateway: what they sent and how long each waited, in seconds of the virtual loop."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.waits: list[float] = []
        self.replies: list[Reply] = []

    async def say(self, patience: float = PATIENCE) -> Reply:
        reply = await self._pipeline.conversations.send(BODY, "T", patience)
        self.replies.append(reply)
        return reply

    async def keep_saying(self, per_second: float, for_seconds: float) -> None:
        """Messages at an even pace, each in a task of its own."""
        async with asyncio.TaskGroup() as all_of_them:
            for _ in range(round(per_second * for_seconds)):
                all_of_them.create_task(self.say())
                await asyncio.sleep(1 / per_second)


class Log:
    """All stamps of a pipeline, by lane."""

    def __init__(self, pipeline: Pipeline, limit: float) -> None:
        cut = [(us + b.base_mono_us, b.lane, b.rate) for b in pipeline.cut_stamps() for us in b.us]
        self.sends = sorted(cut)
        self._limit = limit

    def moments(self, lane: str, after: float = 0.0) -> list[float]:
        return [us / 1e6 for us, of, _ in self.sends if of == lane and us / 1e6 > after]

    def breaches(self) -> int:
        """By the audit's own judgement: campaigns within the rate, both together within the limit."""
        windows = Windows()
        for us, lane, rate in self.sends:
            windows.add(Send(1, us, us, 0, lane == CAMPAIGN, rate, self._limit))
        return windows.breaches


def stage_of(answer: Callable[[httpx.Request], httpx.Response] = accepted) -> Stage:
    return Stage(answer=answer, latency=lambda: 0.2)


def on_stage(
    monkeypatch: pytest.MonkeyPatch,
    play: Callable[[Stage, Pipeline, Talk], Awaitable[None]],
    stage: Stage | None = None,
    *,
    rate: float = RATE,
    limit: float = RATE,
) -> None:
    """Three seconds of a full campaign, and then the scene."""

    async def scenario() -> None:
        there = stage or stage_of()
        async with at_work(there, rate, monkeypatch, limit=limit) as pipeline:
            await seconds(3)
            await play(there, pipeline, Talk(pipeline))

    run(scenario())


def error_of(reply: Reply) -> dict[str, object]:
    body = json.loads(reply.body)
    assert set(body) == {"error"}
    assert {"message", "type", "code", "error_data", "fbtrace_id"} == set(body["error"])
    error: dict[str, object] = body["error"]
    return error


def test_a_conversation_leaves_at_the_next_place_of_a_full_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        Log(pipeline, RATE)
        begun = asyncio.get_running_loop().time()
        assert (await talk.say()).status == 200
        [left] = Log(pipeline, RATE).moments(CONVERSATION)
        assert left - begun < 0.1

    on_stage(monkeypatch, play)


@pytest.mark.parametrize("per_second", [1, 30, 70, 200])
def test_both_lanes_together_keep_the_limit_in_every_window(
    per_second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        await talk.keep_saying(per_second, 6)
        log = Log(pipeline, RATE)
        assert log.breaches() == 0
        assert len(log.moments(CONVERSATION)) == sum(reply.status == 200 for reply in talk.replies) > 0
        assert len(log.sends) >= 0.9 * RATE * 9

    on_stage(monkeypatch, play)


def test_a_rate_below_the_limit_leaves_room_that_conversations_use(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        await talk.keep_saying(15, 10)
        log = Log(pipeline, 80)
        assert log.breaches() == 0
        assert [reply.status for reply in talk.replies] == [200] * 150
        assert len(log.moments(CAMPAIGN)) >= 0.97 * 64 * 13

    on_stage(monkeypatch, play, rate=64, limit=80)


def test_a_campaign_makes_room_for_conversations_and_takes_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        await talk.keep_saying(30, 12)
        assert pipeline.rate == pytest.approx(50, abs=3)
        await seconds(15)
        assert pipeline.rate == pytest.approx(RATE, abs=1)

    on_stage(monkeypatch, play)


def test_what_people_write_counts_against_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        stage.inbound = 20
        await seconds(15)
        Log(pipeline, RATE)
        await seconds(5)
        assert len(Log(pipeline, RATE).moments(CAMPAIGN)) == pytest.approx(60 * 5, rel=0.04)
        stage.inbound = 500
        await seconds(15)
        assert pipeline.rate == 0.25  # a campaign never stands still because others are busy

    on_stage(monkeypatch, play)


def test_a_person_s_pause_stops_campaigns_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        pipeline.pause_here()
        Log(pipeline, RATE)
        await talk.keep_saying(10, 3)
        log = Log(pipeline, RATE)
        assert not log.moments(CAMPAIGN)
        assert len(log.moments(CONVERSATION)) == 30

    on_stage(monkeypatch, play)


def test_a_silence_that_the_provider_asks_for_stops_both_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        pipeline.silence(8, "the provider asked for silence")
        until = asyncio.get_running_loop().time() + 8
        Log(pipeline, RATE)
        reply = await talk.say(patience=1)
        assert (reply.status, error_of(reply)["code"]) == (429, 130429)
        assert dict(reply.headers)[b"retry-after"] == b"7"
        assert (await talk.say(patience=10)).status == 200
        assert min(us / 1e6 for us, _, _ in Log(pipeline, RATE).sends) >= until

    on_stage(monkeypatch, play)


def test_a_throttled_conversation_silences_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    throttled = refused(130429, {"retry-after": "4"})

    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        pipeline.pause_here()  # only the conversation asks
        await seconds(1)
        stage.answer = throttled
        reply = await talk.say()
        assert (reply.status, reply.body, reply.retry_after) == (
            400,
            throttled(httpx.Request("GET", "http://x")).content,
            4,
        )
        assert pipeline.silent_for > 3

    on_stage(monkeypatch, play)


@pytest.mark.parametrize("stop", ["held", "lease", "drain"])
def test_a_hold_a_lost_lease_and_a_drain_stop_both_lanes(stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        match stop:
            case "held":
                pipeline.stop_here("the account is restricted")
            case "lease":
                pipeline.lease_until = 0.0
            case _:
                pipeline.stopping()
        Log(pipeline, RATE)
        reply = await talk.say()
        assert reply.status == 503
        assert reply.retry_after is not None
        error_of(reply)
        await seconds(1)
        assert not Log(pipeline, RATE).sends

    on_stage(monkeypatch, play)


def test_a_lease_that_runs_out_while_a_conversation_waits_lets_it_not_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        pipeline.silence(1.5, "the provider asked for silence")
        waiting = asyncio.create_task(talk.say())
        await seconds(1)
        pipeline.lease_until = 0.0
        Log(pipeline, RATE)
        assert (await waiting).status == 503
        assert not Log(pipeline, RATE).moments(CONVERSATION)

    on_stage(monkeypatch, play)


def test_places_that_nobody_used_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        pipeline.silence(2, "the provider asked for silence")
        many = [asyncio.create_task(talk.say(patience=1)) for _ in range(200)]
        await asyncio.sleep(0)
        for task in many[::2]:
            task.cancel()  # the client went away
        await asyncio.wait(many)
        await seconds(8)
        Log(pipeline, RATE)
        await seconds(5)
        assert len(Log(pipeline, RATE).moments(CAMPAIGN)) >= 0.97 * RATE * 5

    on_stage(monkeypatch, play)


def _bytes_of(requests: Sequence[httpx.Request]) -> list[bytes]:
    return [request.content for request in requests]


def test_the_client_s_bytes_go_out_and_the_provider_s_bytes_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[httpx.Request] = []
    meta = b'{"messaging_product" : "whatsapp",\n "messages":[{"id":"wamid.Y"}]}'

    def answer(request: httpx.Request) -> httpx.Response:
        if b"client-7" not in request.content:
            return accepted(request)
        seen.append(request)
        return httpx.Response(200, content=meta, headers={"content-type": "application/json; charset=UTF-8"})

    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        reply = await talk.say()
        assert (reply.status, reply.body) == (200, meta)
        assert reply.content_type == "application/json; charset=UTF-8"
        assert _bytes_of(seen) == [BODY]
        assert seen[0].headers["authorization"] == "Bearer T"

    on_stage(monkeypatch, play, stage_of(answer))


def test_a_request_of_which_nobody_knows_is_answered_so_and_never_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if b"client-7" not in request.content:
            return accepted(request)
        asked.append(request.content)
        raise httpx.ReadError("gone", request=request)

    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        reply = await talk.say()
        assert reply.status == 504
        error_of(reply)
        await seconds(10)
        assert len(asked) == 1

    on_stage(monkeypatch, play, stage_of(answer))


def test_a_row_for_somebody_who_has_just_been_written_to_asks_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(stage: Stage, pipeline: Pipeline, talk: Talk) -> None:
        conversations = pipeline.conversations
        assert not conversations.wrote_lately("+5511988880001")
        await talk.say()
        assert conversations.wrote_lately("+5511988880001")
        assert not conversations.wrote_lately("+5511988880002")
        await seconds(6)
        assert not conversations.wrote_lately("+5511988880001")

    on_stage(monkeypatch, play)
