"""A pause holds with the database away, and still holds when it is back (invariant 4)."""

from __future__ import annotations

import pytest

from engine.domain.act import Act, PauseAll, PauseNumber, ResumeNumber
from tests.faults.test_database import RATE, own_server
from tests.support.inside import acted, carried_out, engine_inside, owned, snapshots, until_snapshot
from tests.support.world import NUMBER, World, scenario, world

PEOPLE = 300
PAUSED = "SELECT paused_at IS NOT NULL FROM number WHERE id = $1"


@pytest.mark.parametrize(
    ("act", "lease"),
    [(PauseNumber(NUMBER, "stop"), 5.0), (PauseNumber(NUMBER, "stop"), 60.0), (PauseAll("stop"), 60.0)],
)
async def test_a_pause_given_while_the_database_was_away_holds_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, act: Act, lease: float
) -> None:
    async with (
        own_server() as database,
        world(database.url, scenario(), {NUMBER: RATE}) as w,
        engine_inside(w, monkeypatch, lease=lease) as host,
    ):
        await w.campaign(people=PEOPLE)
        await w.until_requests(40)
        database.kill()
        await until_snapshot(host, lambda snapshot: snapshot.database == "away" or None)
        act_id = host.submit(act)
        await until_snapshot(host, lambda snapshot: acted(snapshot, act_id, "acknowledged"))
        before = await w.requests()
        if lease < 10:
            await snapshots(host, round(lease / 0.5) + 2)  # by then it has run out
        await database.start()
        await until_snapshot(host, lambda snapshot: owned(snapshot) or None)
        await w.until(lambda: _is_paused(w), "the pause in the database")
        await snapshots(host, 6)
        assert await w.requests() == before < PEOPLE

        await carried_out(host, ResumeNumber(NUMBER))
        await w.until_requests(before + 40)


async def test_a_pause_by_command_without_a_database_reaches_the_running_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        own_server() as database,
        world(database.url, scenario(), {NUMBER: RATE}) as w,
        engine_inside(w, monkeypatch, lease=60.0) as host,
    ):
        await w.campaign(people=PEOPLE)
        await w.until_requests(40)
        database.kill()
        paused = await w.tidegate("number", "pause", NUMBER, "--reason", "stop")
        assert paused.code == 0, paused.err
        assert str(NUMBER) in paused.err
        before = await w.requests()
        await database.start()
        await w.until(lambda: _is_paused(w), "the pause in the database")
        await until_snapshot(host, lambda snapshot: snapshot.numbers[0].state == "paused" or None)
        stopped = await w.requests()
        assert stopped - before <= 3 * RATE, "more than the second that a stop from elsewhere may take"
        await snapshots(host, 4)
        assert await w.requests() == stopped < PEOPLE


async def _is_paused(w: World) -> bool:
    return bool(await w.db.fetchval(PAUSED, NUMBER))
