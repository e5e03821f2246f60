"""Pause, resume and rate on a running engine: from another process, and through the seam that a screen uses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic import SecretStr

from console.host import EngineHost
from engine.config import Address, Config, RunOptions
from engine.domain.act import Act, PauseNumber, ResumeNumber, SetRate
from engine.domain.recipient import State
from engine.domain.snapshot import ActView, Snapshot
from tests.support.world import NUMBER, World, free_port, scenario, world

T = TypeVar("T")

ELSEWHERE_S = 1.0
JOURNAL = "SELECT act, target, before, after FROM journal WHERE origin = $1 AND act <> 'import' ORDER BY id"


async def test_a_pause_from_another_process_stops_within_a_second_until_it_is_resumed(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        await w.campaign(people=140)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="10s")
        await w.until_requests(20)
        paused = await w.tidegate("number", "pause", NUMBER, "--reason", "wrong text")
        returned = time.monotonic()
        assert paused.code == 0, paused.err
        await w.until(lambda: _nothing_in_hand(w), "nothing claimed or in flight")
        before = (await w.sim.totals())["requests"]
        [shown] = (
            await w.tidegate("number", "list", "--json")
        ).json  # a second process: time enough to notice
        assert (shown["state"], shown["reason"]) == ("paused", "wrong text")
        assert (await w.sim.totals())["requests"] == before < 140

        resumed = time.monotonic()
        assert (await w.tidegate("number", "resume", NUMBER)).code == 0
        assert (await engine.ended()).code == 0
        stamps = [at / 1e6 for at in await w.stamps()]
        assert not [at for at in stamps if returned + ELSEWHERE_S < at < resumed]
        assert await w.counts() == {State.READ: 140}
        await w.prove()


async def test_a_rate_from_another_process_takes_effect_within_a_second(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        await w.campaign(people=160)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="10s")
        await w.until_requests(50)
        assert (await w.tidegate("number", "rate", NUMBER, "10")).code == 0
        cut = time.monotonic()
        await w.until_requests((await w.sim.totals())["requests"] + 35)
        raised = time.monotonic()
        assert (await w.tidegate("number", "rate", NUMBER, "40")).code == 0
        assert (await engine.ended()).code == 0
        stamps = [at / 1e6 for at in await w.stamps()]
        slow = [at for at in stamps if cut + ELSEWHERE_S < at < raised]
        assert slow, "nothing was sent at the lower rate"
        assert max(sum(1 for at in slow if t - 1.0 < at <= t) for t in slow) <= 10
        assert ("rate", NUMBER, "40", "10") in [tuple(r) for r in await w.db.fetch(JOURNAL, "cli")]
        await w.prove()


async def test_after_an_acknowledged_pause_on_the_screen_nothing_leaves(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w, _engine_inside(w, monkeypatch) as host:
        await w.campaign(people=200)
        await w.until_requests(30)
        paused = await _carried_out(host, PauseNumber(NUMBER, "stop"))
        await w.until(lambda: _nothing_in_hand(w), "nothing claimed or in flight")
        before = (await w.sim.totals())["requests"]
        await _snapshots(host, 2)
        assert (await w.sim.totals())["requests"] == before < 200

        resumed = await _carried_out(host, ResumeNumber(NUMBER))
        await w.until_requests(before + 20)
        slower = await _carried_out(host, SetRate(NUMBER, 10))
        await w.until_requests((await w.sim.totals())["requests"] + 25)
        faster = await _carried_out(host, SetRate(NUMBER, 40))
        await w.until_counts(read=200)

        stamps = [at / 1e6 for at in await w.stamps()]
        assert not [at for at in stamps if paused < at < resumed], "a request left after the acknowledgement"
        slow = [at for at in stamps if slower + ELSEWHERE_S < at < faster]
        assert max(sum(1 for at in slow if t - 1.0 < at <= t) for t in slow) <= 10
        acts = [tuple(row)[:2] for row in await w.db.fetch(JOURNAL, "console")]
        assert acts == [
            ("pause number", NUMBER),
            ("resume number", NUMBER),
            ("rate", NUMBER),
            ("rate", NUMBER),
        ]
        await w.prove()


@asynccontextmanager
async def _engine_inside(w: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EngineHost]:
    """An engine in a thread of this process, as under a screen."""
    monkeypatch.setenv("TOKEN", w.environment["TOKEN"])
    config = Config(
        database_url=SecretStr(w.url),
        api_url=w.sim.url,
        data_dir=Path(w.environment["TIDEGATE_DATA_DIR"]),
        listen=Address("127.0.0.1", w.port),
        metrics_listen=Address("127.0.0.1", free_port()),
        app_secret=(SecretStr(w.environment["TIDEGATE_APP_SECRET"]),),
        node="inside",
    )
    host = EngineHost(config, RunOptions())
    await asyncio.to_thread(host.start)
    try:
        yield host
    finally:
        host.drain("the test ends")
        assert (await asyncio.to_thread(host.join)).code == 0


async def _carried_out(host: EngineHost, act: Act) -> float:
    """Submit an act and wait until it is in effect; when it was acknowledged, on the monotonic clock."""
    submitted = time.monotonic()
    act_id = host.submit(act)

    def view(snapshot: Snapshot) -> ActView | None:
        return next((a for a in snapshot.acts if a.id == act_id and a.stage == "in effect"), None)

    found = await _until_snapshot(host, view)
    assert found.ack_ms is not None
    return submitted + found.ack_ms / 1000


async def _snapshots(host: EngineHost, more: int) -> None:
    now = host.snapshot()
    assert now is not None
    wanted = now.seq + more
    await _until_snapshot(host, lambda snapshot: snapshot if snapshot.seq >= wanted else None)


async def _until_snapshot(host: EngineHost, seen: Callable[[Snapshot], T | None]) -> T:
    async with asyncio.timeout(60):
        while True:
            snapshot = host.snapshot()
            found = seen(snapshot) if snapshot is not None else None
            if found is not None:
                return found
            await asyncio.sleep(0.02)


async def _nothing_in_hand(w: World) -> bool:
    counts = await w.counts()
    return not (counts[State.CLAIMED] or counts[State.SENDING])
