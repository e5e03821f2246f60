"""Numbered SQL files, applied forward only, each in one transaction together with its row of bookkeeping.

The lock is a transaction's own (`pg_advisory_xact_lock`), so it also holds through pgbouncer in transaction
mode: of two processes one applies, the other waits and finds nothing to do.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import NamedTuple

import asyncpg

from engine.postgres.pool import Connection, connect

LOCK = "SELECT pg_advisory_xact_lock(7431903865)"  # any number, the same in every version

LOCK_TIMEOUT = "SET LOCAL lock_timeout = '15s'"  # a waiting ALTER TABLE stops every send that comes after it

LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migration (
  version    int PRIMARY KEY,
  name       text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  checksum   text NOT NULL
)"""

LEDGER_EXISTS = "SELECT to_regclass('schema_migration') IS NOT NULL"

APPLIED = "SELECT version, name, checksum FROM schema_migration ORDER BY version"

RECORD = "INSERT INTO schema_migration (version, name, checksum) VALUES ($1, $2, $3)"

SCRIPT_HEAD = r"""-- Tidegate's migrations, for psql. May be run again: what was applied is skipped.
\set ON_ERROR_STOP on
\set QUIET on
SET client_min_messages = warning;
"""

SCRIPT_STEP = Template(r"""
-- $file
BEGIN;
DO $$$$ BEGIN PERFORM pg_advisory_xact_lock(7431903865); END $$$$;
CREATE TABLE IF NOT EXISTS schema_migration (
  version    int PRIMARY KEY,
  name       text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  checksum   text NOT NULL
);
DO $$$$ BEGIN
  IF EXISTS (SELECT FROM schema_migration WHERE version = $version AND checksum <> '$checksum') THEN
    RAISE EXCEPTION 'migration $version was applied from another text than this script holds';
  END IF;
END $$$$;
SELECT NOT EXISTS (SELECT FROM schema_migration WHERE version = $version) AS wanted \gset
\if :wanted
\echo applying $file
$sql
;
INSERT INTO schema_migration (version, name, checksum) VALUES ($version, '$name', '$checksum');
\endif
COMMIT;
""")

FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class MigrationError(Exception):
    """The database and the program do not fit together. The message is one sentence with what to do."""


class DatabaseNewer(MigrationError):
    """A newer Tidegate has migrated this database."""


class DatabaseBehind(MigrationError):
    """Migrations are missing."""


class MigrationChanged(MigrationError):
    """An applied migration's file is no longer what was applied."""


class MigrationFailed(MigrationError):
    """A migration's SQL failed and was rolled back; those before it stay."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str
    checksum: str

    @property
    def file(self) -> str:
        return f"{self.version:04}_{self.name}.sql"


class Applied(NamedTuple):
    """A row of schema_migration."""

    version: int
    name: str
    checksum: str


def default_directory() -> Path:
    """The source tree's `migrations/`, or the copy inside an installed wheel."""
    here = Path(__file__).resolve().parent
    installed = here / "migrations"
    return installed if installed.is_dir() else here.parents[1] / "migrations"


def load(directory: Path | None = None) -> list[Migration]:
    """The migrations of `directory` by version. Raises MigrationError for a misnamed or doubled file."""
    directory = directory or default_directory()
    found: dict[int, Migration] = {}
    for path in sorted(directory.glob("*.sql")):
        match = FILE_NAME.fullmatch(path.name)
        if match is None:
            raise MigrationError(f"{path} is not named like 0001_what_it_does.sql: rename it.")
        sql = path.read_text("utf-8")  # universal newlines: a checkout with CRLF has the same checksum
        version, name = int(match[1]), match[2]
        if version in found:
            raise MigrationError(
                f"{path} has the same number as {found[version].file}: renumber one of them."
            )
        found[version] = Migration(version, name, sql, hashlib.sha256(sql.encode()).hexdigest())
    if not found:  # else every database would seem too new
        raise MigrationError(f"{directory} holds no migration: reinstall tidegate.")
    return list(found.values())


async def applied(connection: Connection) -> list[int]:
    """The versions in the database, ascending."""
    return [record.version for record in await _ledger(connection)]


async def pending(connection: Connection, directory: Path | None = None) -> list[Migration]:
    """What `migrate` would apply. Raises DatabaseNewer, MigrationChanged."""
    return _pending(load(directory), await _ledger(connection))


async def migrate(url: str, directory: Path | None = None) -> list[str]:
    """Apply what is pending and return the files' names, in order; empty when another process did it.

    Raises DatabaseUnreachable, DatabaseNewer, MigrationChanged, MigrationFailed.
    """
    known = load(directory)
    names: list[str] = []
    # Neither prepared statements nor a time limit: through pgbouncer, and over a large table.
    async with connect(url, pgbouncer=True, command_timeout=None) as connection:
        while (name := await _apply_next(connection, known)) is not None:
            names.append(name)
    return names


async def require_current(connection: Connection, directory: Path | None = None) -> None:
    """Raises DatabaseBehind, DatabaseNewer or MigrationChanged unless exactly our migrations are applied."""
    missing = await pending(connection, directory)
    if missing:
        last = missing[-1]
        raise DatabaseBehind(
            f"The database lacks {len(missing)} migration(s), up to {last.file}: run `tidegate migrate`."
        )


def sql_script(directory: Path | None = None) -> str:
    """Every migration with its bookkeeping, as one script for psql that may be run on any earlier state."""
    steps = [
        SCRIPT_STEP.substitute(
            file=m.file, version=m.version, name=m.name, checksum=m.checksum, sql=m.sql.strip()
        )
        for m in load(directory)
    ]
    return SCRIPT_HEAD + "".join(steps)


async def _ledger(connection: Connection) -> Sequence[Applied]:
    if not await connection.fetchval(LEDGER_EXISTS):
        return []
    return await _applied(connection)


async def _applied(connection: Connection) -> list[Applied]:
    return [Applied(*record) for record in await connection.fetch(APPLIED)]


def _pending(known: Sequence[Migration], ledger: Sequence[Applied]) -> list[Migration]:
    ours = {migration.version: migration for migration in known}
    done = {record.version: record for record in ledger}
    newest, ours_newest = max(done, default=0), max(ours, default=0)
    if newest > ours_newest:
        raise DatabaseNewer(
            f"The database is at version {newest} ({done[newest].name}), newer than this program, which knows "
            f"{ours_newest}: upgrade tidegate on this machine, or restore an older backup of the database."
        )
    for version, record in done.items():
        mine = ours.get(version)
        if mine is None or mine.checksum != record.checksum:
            raise MigrationChanged(
                f"Migration {version} ({record.name}) was applied from another text than ours: "
                "applied migrations never change, so install the release that applied it."
            )
    return [migration for migration in known if migration.version not in done]


async def _apply_next(connection: Connection, known: Sequence[Migration]) -> str | None:
    async with connection.transaction():
        await connection.execute(LOCK)
        await connection.execute(LEDGER)
        missing = _pending(known, await _applied(connection))
        if not missing:
            return None
        following = missing[0]
        await connection.execute(LOCK_TIMEOUT)
        try:
            await connection.execute(following.sql)
        except asyncpg.PostgresError as error:
            raise MigrationFailed(
                f"{following.file} failed and was rolled back ({error.sqlstate}: {error}): "
                "correct the cause and run `tidegate migrate` again."
            ) from error
        if not connection.is_in_transaction():
            raise MigrationFailed(f"{following.file} holds a COMMIT or ROLLBACK of its own: take it out.")
        await connection.execute(RECORD, following.version, following.name, following.checksum)
        return following.file
