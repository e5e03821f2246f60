"""Two consoles at once, one around the engine and one attached: each sees what the other did, once."""

import asyncio
from collections import Counter

import pytest

from engine.domain.act import PauseNumber, ResumeNumber, SetRate
from engine.domain.snapshot import Snapshot
from tests.journeys.test_attach import attached, seen, stage
from tests.support.inside import carried_out, engine_inside, owned, until_snapshot
from tests.support.world import NUMBER, scenario, world


def told(snapshot: Snapshot, *words: str) -> bool | None:
    """Whether an event has all these words."""
    return any(all(word in event.text for word in words) for event in snapshot.events) or None


async def test_each_console_sees_the_other_s_act_once_and_the_owner_follows_both(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        world(database_url, scenario(), {NUMBER: 20}) as w,
        engine_inside(w, monkeypatch) as host,
        attached(w) as ana,
    ):
        await until_snapshot(host, lambda s: owned(s) or None)
        acts = (stage(ana, SetRate(NUMBER, 10), "in effect"), carried_out(host, PauseNumber(NUMBER, "lunch")))
        await asyncio.gather(*acts)
        await until_snapshot(host, lambda s: told(s, "rate", NUMBER, "20→10", "(attach)"))
        await seen(ana, lambda s: told(s, "pause number", NUMBER, "(console)"))
        await seen(ana, lambda s: [(n.state, n.rate) for n in s.numbers] == [("paused", 10)] or None)
        await carried_out(host, ResumeNumber(NUMBER))
        await stage(ana, SetRate(NUMBER, 5), "in effect")
        last = await until_snapshot(host, lambda s: s if told(s, "rate", "10→5") else None)
        assert set(Counter(e.text for e in last.events if e.author != "auto").values()) == {1}
        assert sum("PAUSE" in e.text or "pause number" in e.text for e in last.events) == 1
