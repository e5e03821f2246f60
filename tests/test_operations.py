"""What docs/ tells operators to do: units that systemd takes, and grants with which an engine runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from engine.postgres import webhooks
from engine.postgres.partitions import ensure_partitions
from engine.postgres.pool import connect, open_pool
from tests.support.chaos import judge
from tests.support.database import TestServer
from tests.support.world import NUMBER, scenario, world

DOCS = Path(__file__).parents[1] / "docs"
UNITS = sorted((DOCS / "systemd").glob("*.service"))
GRANTS = DOCS / "grants.sql"
ROLE = "DO $$ BEGIN CREATE ROLE tidegate_engine LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
PARTITIONS = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'try'::regclass"
LATER = "SELECT ensure_try_partitions(9)"

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd-analyze is not at hand: the units are not verified here",
)


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong_with_a_unit(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text().replace(
        "/opt/tidegate/bin/tidegate", "/bin/true"
    )  # the one thing that is not here
    (tmp_path / unit.name).write_text(text)
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (verified.returncode, verified.stderr.strip()) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_again_what_can_be_mended_by_it(unit: Path) -> None:
    said = dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE))
    assert said["Restart"] == "on-failure"
    assert "2" in said["RestartPreventExitStatus"].split()  # a wrong setting stays wrong
    assert "1" not in said["RestartPreventExitStatus"].split()
    assert said["SuccessExitStatus"] == "143"
    assert int(said["TimeoutStopSec"].removesuffix("s")) > 25


def _as_engine(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"tidegate_engine@{parts.netloc.rpartition('@')[2]}"))


@pytest.fixture
async def engine_url(database_url: str, postgres: TestServer) -> str:
    """The same database as a role that has what docs/grants.sql gives and no more."""
    postgres.run(ROLE)
    async with connect(database_url) as db:
        for _ in range(2):  # it may be run again
            await db.execute(GRANTS.read_text())
    return _as_engine(database_url)


async def test_an_engine_runs_a_campaign_with_the_documented_grants(engine_url: str) -> None:
    async with world(engine_url, scenario(), {NUMBER: 40}) as w:
        await w.campaign(people=60)
        ended = await (await w.engine("--until-finished", "--linger", "1s")).ended()
        assert ended.code == 0, ended.err
        assert "InsufficientPrivilege" not in ended.err
        await judge(w, 60)


async def test_the_engine_s_role_keeps_house_and_may_not_change_the_schema(engine_url: str) -> None:
    async with open_pool(engine_url, size=2) as db:
        before = await db.fetchval(PARTITIONS)
        await db.execute(LATER)
        assert await db.fetchval(PARTITIONS) > before
        await ensure_partitions(db)
        await webhooks.trim(db)
        for statement in webhooks.EMPTY:
            await db.execute(statement)
        for forbidden in (
            "ALTER TABLE recipient ADD COLUMN x int",
            "DROP TABLE try",
            "TRUNCATE recipient",
            "DELETE FROM schema_migration",
            "CREATE TABLE mine (x int)",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await db.execute(forbidden)
