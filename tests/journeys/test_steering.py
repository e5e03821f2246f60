"""Pause, resume and rate on a running engine: from another process, and through the seam that a screen uses."""

from __future__ import annotations

import time

import pytest

from engine.domain.act import PauseNumber, ResumeNumber, SetRate
from engine.domain.recipient import State
from tests.support.inside import carried_out, engine_inside, snapshots
from tests.support.world import NUMBER, World, scenario, world

ELSEWHERE_S = 2
"""Within so many seconds of sending a node does what another process asked for. It promises one; a test counts what was
sent, for a machine that stands still sends nothing either."""

JOURNAL = "SELECT act, target, before, after FROM journal WHERE origin = $1 AND act <> 'import' ORDER BY id"


async def test_a_pause_from_another_process_stops_within_a_second_until_it_is_resumed(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        await w.campaign(people=240)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="10s")
        await w.until_requests(20)
        paused = await w.tidegate("number", "pause", NUMBER, "--reason", "wrong text")
        returned = time.monotonic()
        assert paused.code == 0, paused.err
        await w.until(lambda: _nothing_in_hand(w), "nothing claimed or in flight")
        before = await w.requests()
        [shown] = (
            await w.tidegate("number", "list", "--json")
        ).json  # a second process: time enough to notice
        assert (shown["state"], shown["reason"]) == ("paused", "wrong text")
        assert await w.requests() == before < 240

        resumed = time.monotonic()
        assert (await w.tidegate("number", "resume", NUMBER)).code == 0
        assert (await engine.ended()).code == 0
        stamps = [at / 1e6 for at in await w.stamps()]
        assert len([at for at in stamps if returned < at < resumed]) <= ELSEWHERE_S * 20
        assert await w.ends() == {State.READ: 240}
        await w.prove()


async def test_a_rate_from_another_process_takes_effect_within_a_second(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        await w.campaign(people=400)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="10s")
        await w.until_requests(50)
        assert (await w.tidegate("number", "rate", NUMBER, "10")).code == 0
        cut = time.monotonic()
        await w.until(lambda: _slow(w, 20), "a while at the lower rate")
        raised = time.monotonic()
        assert (await w.tidegate("number", "rate", NUMBER, "40")).code == 0
        assert (await engine.ended()).code == 0
        stamps = [at / 1e6 for at in await w.stamps()]
        slow = [at / 1e6 for at in await w.stamps(rate=10)]
        assert max(sum(1 for at in stamps if t - 1.0 < at <= t) for t in slow) <= 10
        assert len([at for at in stamps if cut < at < raised and at not in slow]) <= ELSEWHERE_S * 40
        assert ("rate", NUMBER, "40", "10") in [tuple(r) for r in await w.db.fetch(JOURNAL, "cli")]
        await w.prove()


async def test_after_an_acknowledged_pause_on_the_screen_nothing_leaves(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w, engine_inside(w, monkeypatch) as host:
        await w.campaign(people=200)
        await w.until_requests(30)
        paused = await carried_out(host, PauseNumber(NUMBER, "stop"))
        await w.until(lambda: _nothing_in_hand(w), "nothing claimed or in flight")
        before = await w.requests()
        await snapshots(host, 2)
        assert await w.requests() == before < 200

        resumed = time.monotonic()
        await carried_out(host, ResumeNumber(NUMBER))
        await w.until_requests(before + 20)
        slower = await carried_out(host, SetRate(NUMBER, 10))
        await w.until_requests(await w.requests() + 25)
        faster = time.monotonic()
        await carried_out(host, SetRate(NUMBER, 40))
        await w.until_counts(read=200)

        stamps = [at / 1e6 for at in await w.stamps()]
        assert not [at for at in stamps if paused < at < resumed], "a request left after the acknowledgement"
        slow = [at for at in stamps if slower + 1.0 < at < faster]
        assert max(sum(1 for at in slow if t - 1.0 < at <= t) for t in slow) <= 10
        acts = [tuple(row)[:2] for row in await w.db.fetch(JOURNAL, "console")]
        assert acts == [
            ("pause number", NUMBER),
            ("resume number", NUMBER),
            ("rate", NUMBER),
            ("rate", NUMBER),
        ]
        await w.prove()


async def _slow(w: World, sent: int) -> bool:
    return len(await w.stamps(rate=10)) >= sent


async def _nothing_in_hand(w: World) -> bool:
    counts = await w.counts()
    return not (counts[State.CLAIMED] or counts[State.SENDING])
