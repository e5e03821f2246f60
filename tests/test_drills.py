"""The drills: each can be played, says what it teaches, and two of them play a trouble beside the engine."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli import app
from engine.drills import DRILLS, scenario_of
from engine.postgres import figures
from engine.postgres.obstruction import lock_rows
from engine.postgres.pool import Pool
from engine.simulator.scenario import parse
from tests.support import builders
from tests.support.database import reachable_directory
from tests.support.process import put_down, spawn

NAMES = (
    "throttle", "expired-token", "template-paused", "webhook-silence", "dead-node", "stuck-rows", "slow-database",
    "deadline-at-risk",
)  # fmt: skip


def test_the_list_says_what_each_drill_teaches() -> None:
    shown = CliRunner().invoke(app, ["demo", "--list"])
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == list(NAMES)
    assert all(len(line.split()) > 12 for line in shown.stdout.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_the_simulator_takes_each_drill_s_day(name: str) -> None:
    good_day = {"numbers": {"106540352242922": {"limit": 80}}}
    day = parse(json.dumps(scenario_of(DRILLS[name], good_day)).encode(), name)
    assert day.number("106540352242922") is not None


def test_a_drill_that_is_none_is_one_sentence() -> None:
    shown = CliRunner().invoke(app, ["demo", "--no-ui", "--drill", "flood"])
    assert shown.exit_code != 0
    assert "There is no drill 'flood'" in str(shown.exception) + shown.output


WAIT = 60.0
"""Seconds until a wait in a test is called a failure."""

LOCKS = """
SELECT count(*) FROM pg_locks
 WHERE relation = 'recipient'::regclass AND granted = $1 AND (NOT granted OR mode = 'ShareLock')
"""


async def test_the_slow_database_holds_moves_and_lets_readers_through(pool: Pool, database_url: str) -> None:
    made = await builders.campaign(pool)
    await builders.recipients(pool, made, 1)
    locked = asyncio.create_task(lock_rows(database_url, seconds=WAIT))
    await _until_the_lock_is(pool, granted=True)
    assert await pool.fetchval("SELECT count(*) FROM recipient") == 1
    moved = asyncio.create_task(pool.execute("UPDATE recipient SET tries = tries"))
    await _until_the_lock_is(pool, granted=False)
    assert not moved.done()
    in_the_way = await figures.blocker(pool)
    assert in_the_way is not None
    assert in_the_way.application == "maintenance"
    locked.cancel()
    await moved


async def _until_the_lock_is(pool: Pool, *, granted: bool) -> None:
    """The drill's lock of this database's recipients is held, or somebody waits for it."""
    async with asyncio.timeout(WAIT):
        while not await pool.fetchval(LOCKS, granted):
            await asyncio.sleep(0.01)


@pytest.mark.soak  # a minute
async def test_a_drill_without_a_screen_plays_to_its_end_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with reachable_directory() as scratch:
        drill = await spawn(
            ("demo", "--no-ui", "--drill", "deadline-at-risk"),
            {"TMPDIR": str(scratch)},
            tmp_path,
            name="drill",
        )
        try:
            ended = await drill.ended(180)
        finally:
            await put_down(drill)
        assert ended.code == 0, ended.err
        assert "drill deadline-at-risk" in ended.err
        assert "expired" in ended.out
        assert list(scratch.iterdir()) == []
