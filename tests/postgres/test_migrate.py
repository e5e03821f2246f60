"""Migrations on a real database, from directories of SQL made here."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.postgres import migrate as migrations
from engine.postgres.migrate import (
    DatabaseBehind,
    DatabaseNewer,
    MigrationChanged,
    MigrationError,
    MigrationFailed,
    applied,
    migrate,
    pending,
    require_current,
    sql_script,
)
from engine.postgres.pool import Connection, connect
from tests.support.database import TestServer

PSQL = shutil.which("psql")


@pytest.fixture
def empty_url(postgres: TestServer) -> Iterator[str]:
    with postgres.database(template="template0") as url:
        yield url


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two migrations; the second needs the first."""
    (tmp_path / "0001_initial.sql").write_text("CREATE TABLE a (n int); INSERT INTO a VALUES (1);\n")
    (tmp_path / "0002_double.sql").write_text("UPDATE a SET n = n * 2;\nSELECT $$it's; fine$$;\n")
    return tmp_path


async def value(url: str) -> int:
    async with connect(url) as connection:
        found: int = await connection.fetchval("SELECT sum(n) FROM a")
        return found


async def test_pending_migrations_are_applied_in_order_and_once(empty_url: str, directory: Path) -> None:
    assert await migrate(empty_url, directory) == ["0001_initial.sql", "0002_double.sql"]
    assert await migrate(empty_url, directory) == []
    assert await value(empty_url) == 2


async def test_each_applied_migration_leaves_its_row(empty_url: str, directory: Path) -> None:
    await migrate(empty_url, directory)
    async with connect(empty_url) as connection:
        rows = await connection.fetch("SELECT * FROM schema_migration ORDER BY version")
        assert await applied(connection) == [1, 2]
    assert [(row["version"], row["name"]) for row in rows] == [(1, "initial"), (2, "double")]
    assert all(len(row["checksum"]) == 64 and row["applied_at"] for row in rows)


async def test_of_several_at_once_one_applies_and_the_others_find_nothing(
    empty_url: str, directory: Path
) -> None:
    results = await asyncio.gather(*(migrate(empty_url, directory) for _ in range(4)))
    assert sorted(name for names in results for name in names) == ["0001_initial.sql", "0002_double.sql"]
    assert await value(empty_url) == 2


async def test_a_failing_migration_is_rolled_back_whole_and_those_before_it_stay(
    empty_url: str, directory: Path
) -> None:
    (directory / "0003_broken.sql").write_text("CREATE TABLE b (n int); SELECT nonsense;")
    with pytest.raises(MigrationFailed, match=r"0003_broken\.sql failed and was rolled back .*nonsense"):
        await migrate(empty_url, directory)
    async with connect(empty_url) as connection:
        assert await applied(connection) == [1, 2]
        assert await connection.fetchval("SELECT to_regclass('b')") is None


async def test_a_migration_that_ends_its_own_transaction_is_refused(empty_url: str, directory: Path) -> None:
    (directory / "0003_commits.sql").write_text("CREATE TABLE b (n int); COMMIT; CREATE TABLE c (n int);")
    with pytest.raises(MigrationError, match=r"0003_commits\.sql holds a COMMIT"):
        await migrate(empty_url, directory)


async def test_a_changed_file_of_an_applied_migration_is_refused(empty_url: str, directory: Path) -> None:
    await migrate(empty_url, directory)
    (directory / "0001_initial.sql").write_text("CREATE TABLE a (n bigint);")
    with pytest.raises(MigrationChanged, match=r"Migration 1 \(initial\) was applied from another text"):
        await migrate(empty_url, directory)


async def test_windows_line_ends_are_no_change(empty_url: str, directory: Path) -> None:
    await migrate(empty_url, directory)
    second = directory / "0002_double.sql"
    second.write_bytes(second.read_bytes().replace(b"\n", b"\r\n"))
    assert await migrate(empty_url, directory) == []


async def require(url: str, directory: Path) -> None:
    async with connect(url) as connection:
        await require_current(connection, directory)


async def test_a_current_database_is_accepted(empty_url: str, directory: Path) -> None:
    await migrate(empty_url, directory)
    await require(empty_url, directory)


async def test_an_empty_or_older_database_asks_for_migrate(empty_url: str, directory: Path) -> None:
    with pytest.raises(DatabaseBehind, match=r"lacks 2 migration\(s\).*0002_double.*tidegate migrate"):
        await require(empty_url, directory)
    await migrate(empty_url, directory)
    (directory / "0003_more.sql").write_text("SELECT 1")
    with pytest.raises(DatabaseBehind, match=r"lacks 1 migration\(s\)"):
        await require(empty_url, directory)


async def test_a_newer_database_is_refused_with_both_versions(empty_url: str, directory: Path) -> None:
    await migrate(empty_url, directory)
    (directory / "0002_double.sql").unlink()
    refusal = r"at version 2 \(double\), newer than this program, which knows 1: upgrade"
    with pytest.raises(DatabaseNewer, match=refusal):
        await require(empty_url, directory)
    with pytest.raises(DatabaseNewer, match=refusal):
        await migrate(empty_url, directory)


async def test_pending_lists_what_migrate_would_apply(empty_url: str, directory: Path) -> None:
    async def names(connection: Connection) -> list[str]:
        return [migration.file for migration in await pending(connection, directory)]

    async with connect(empty_url) as connection:
        assert await names(connection) == ["0001_initial.sql", "0002_double.sql"]
        await migrate(empty_url, directory)
        assert await names(connection) == []


@pytest.mark.parametrize("name", ["1_short.sql", "0003-dash.sql", "0003_Upper.sql"])
def test_a_misnamed_file_is_refused(directory: Path, name: str) -> None:
    (directory / name).write_text("SELECT 1")
    with pytest.raises(MigrationError, match=r"is not named like 0001_what_it_does\.sql"):
        migrations.load(directory)


def test_two_files_with_one_number_are_refused(directory: Path) -> None:
    (directory / "0002_again.sql").write_text("SELECT 1")
    with pytest.raises(MigrationError, match=r"has the same number as 0002_again\.sql"):
        migrations.load(directory)


def test_a_directory_without_migrations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MigrationError, match="holds no migration"):
        migrations.load(tmp_path)


def test_our_own_migrations_load_from_the_source_tree() -> None:
    versions = [migration.version for migration in migrations.load()]
    assert versions == list(range(1, len(versions) + 1))


def psql(url: str, script: str) -> "subprocess.CompletedProcess[str]":
    assert PSQL is not None
    return subprocess.run([PSQL, url, "-qX"], input=script, capture_output=True, text=True, check=False)


needs_psql = pytest.mark.skipif(PSQL is None, reason="psql is not installed")


@needs_psql
async def test_the_script_for_psql_does_what_migrate_does_and_may_be_run_again(
    empty_url: str, directory: Path
) -> None:
    script = sql_script(directory)
    for _ in range(2):
        done = psql(empty_url, script)
        assert (done.returncode, done.stderr) == (0, "")
    assert await value(empty_url) == 2
    await require(empty_url, directory)
    assert await migrate(empty_url, directory) == []


@needs_psql
async def test_the_script_finishes_what_migrate_began(empty_url: str, directory: Path) -> None:
    await migrate(empty_url, directory)
    (directory / "0003_more.sql").write_text("INSERT INTO a VALUES (5)")  # no semicolon at the end
    done = psql(empty_url, sql_script(directory))
    assert (done.returncode, done.stderr) == (0, "")
    assert await value(empty_url) == 7
    await require(empty_url, directory)


@needs_psql
async def test_the_script_stops_at_a_changed_migration(empty_url: str, directory: Path) -> None:
    await migrate(empty_url, directory)
    (directory / "0001_initial.sql").write_text("CREATE TABLE other (n int);")
    (directory / "0003_more.sql").write_text("INSERT INTO a VALUES (5);")
    done = psql(empty_url, sql_script(directory))
    assert done.returncode == 3
    assert "migration 1 was applied from another text" in done.stderr
    assert await value(empty_url) == 2


@needs_psql
async def test_the_script_of_our_own_migrations_runs(empty_url: str) -> None:
    done = psql(empty_url, sql_script())
    assert (done.returncode, done.stderr) == (0, "")
    async with connect(empty_url) as connection:
        await require_current(connection)
