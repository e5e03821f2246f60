"""An audience into a campaign: COPY into a staging table, fold, insert, book; all of it one transaction.

The campaign's own row is locked only by the last statements: an import of millions takes minutes, and a person
who pauses that campaign meanwhile must not wait for it. Imports of one campaign follow each other by an advisory
lock of the transaction, which is safe behind pgbouncer.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import asyncpg
import msgspec

from engine.domain.content import Content
from engine.domain.phone import twins
from engine.domain.zone import zones_of
from engine.postgres import audience_imports, journal
from engine.postgres.audience_imports import Facts
from engine.postgres.contents import stored_content
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Connection, Executor

STATEMENT_SECONDS = 3_600.0  # for millions of rows; the pool's own limit is for statements of milliseconds
ENDED = frozenset({"finished", "cancelled"})

TARGET = """
SELECT campaign_id, state, body, content, category, zone IS NOT DISTINCT FROM 'recipient' AS by_zone
  FROM campaign WHERE name = $1
"""

STAGE = """
CREATE TEMP TABLE audience_staged (
  line int NOT NULL, phone text COLLATE "C" NOT NULL, country text NOT NULL, params jsonb NOT NULL,
  twin text COLLATE "C", zone text NOT NULL) ON COMMIT DROP;
CREATE TEMP TABLE audience_folded (line int PRIMARY KEY, into_line int NOT NULL) ON COMMIT DROP;
CREATE TEMP TABLE audience_new (
  id bigint NOT NULL, line int NOT NULL, phone text NOT NULL, country text NOT NULL, params jsonb NOT NULL,
  twin text, zone text NOT NULL, aside text NOT NULL DEFAULT '') ON COMMIT DROP;
CREATE TEMP TABLE audience_twin (line int PRIMARY KEY, of_line int) ON COMMIT DROP;
SET LOCAL work_mem = '64MB'
"""

# One import of a campaign at a time: two that meet the same people in another order would deadlock.
TAKE_TURNS = "SELECT pg_advisory_xact_lock(1413826373, $1)"  # 'TGIE': only imports use this class

FOLD = """
WITH folded AS (
  INSERT INTO audience_folded
  SELECT line, into_line FROM (
    SELECT line, min(line) OVER (PARTITION BY phone) AS into_line FROM audience_staged) s
   WHERE line <> into_line
  RETURNING 1)
SELECT count(*) FROM folded
"""

# How many lines the number has that stands most often.
MOST_EQUAL = "SELECT 1 + max(n) FROM (SELECT count(*) AS n FROM audience_folded GROUP BY into_line) f"

FOLDS = "SELECT line, into_line FROM audience_folded ORDER BY line LIMIT $1"

# Ids ascend in the file's order, which is therefore the order of sending. They come from the column's own
# sequence, drawn over a sorted subquery; a RETURNING could not say which line got which id.
NEW = """
WITH new AS (
  INSERT INTO audience_new
  SELECT nextval(pg_get_serial_sequence('recipient', 'id')), f.* FROM (
    SELECT s.line, s.phone, s.country, s.params, s.twin, s.zone FROM audience_staged s
     WHERE NOT EXISTS (SELECT FROM audience_folded d WHERE d.line = s.line)
       AND NOT EXISTS (SELECT FROM recipient_data r WHERE r.campaign_id = $1 AND r.phone = s.phone)
     ORDER BY s.line) f
  RETURNING 1)
SELECT count(*) FROM new
"""

# The other spelling of a number that is new further up, or is in the campaign already: likely the same person.
TWINS = """
WITH twin AS (
  INSERT INTO audience_twin
  SELECT n.line, e.line FROM audience_new n JOIN audience_new e ON e.phone = n.twin AND e.line < n.line
  UNION ALL
  SELECT n.line, NULL FROM audience_new n JOIN recipient_data r ON r.campaign_id = $1 AND r.phone = n.twin
  RETURNING line),
marked AS (UPDATE audience_new SET aside = 'twins' WHERE line IN (SELECT line FROM twin))
SELECT count(*) FROM twin
"""

TWINS_OF = "SELECT line, of_line FROM audience_twin ORDER BY line LIMIT $1"

LANES = """
INSERT INTO lane (campaign_id, country, zone, aside, hold)
SELECT DISTINCT c.campaign_id, n.country, n.zone, n.aside,
       CASE WHEN n.aside <> '' THEN n.aside
            WHEN c.canary IN ('sending', 'failed') THEN 'canary'  -- whoever comes now waits for its judgement, too
            WHEN c.quiet_from IS NOT NULL THEN 'quiet' END  -- until a standing job has looked at the clocks
  FROM audience_new n JOIN campaign c ON c.campaign_id = $1 ORDER BY n.aside, n.country, n.zone
ON CONFLICT DO NOTHING
"""

KEEP_DATA = """
INSERT INTO recipient_data (id, campaign_id, phone, params, line)
SELECT id, $1, phone, params, line FROM audience_new ORDER BY id
"""

KEEP_AND_BOOK = """
WITH kept AS (
  INSERT INTO recipient (id, lane_id, next_attempt_at, moved_at)
  SELECT n.id, l.lane_id, statement_timestamp(), statement_timestamp()
    FROM audience_new n
    JOIN lane l ON l.campaign_id = $1 AND l.country = n.country AND l.zone = n.zone AND l.deadline = 'infinity'
     AND l.aside = n.aside
   ORDER BY n.id
  RETURNING lane_id),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, ' ', 'p', count(*) FROM kept GROUP BY lane_id ORDER BY lane_id)
SELECT count(*) FROM kept
"""

PLAN = """
UPDATE campaign SET planned = planned + $2
 WHERE campaign_id = $1 AND body = $3 AND state NOT IN ('finished', 'cancelled')
RETURNING planned, state
"""


class ImportRefused(Exception):
    """The import cannot be carried out, and nothing of it was kept. The message is one sentence for a person."""


@dataclass(frozen=True, slots=True)
class Target:
    """The campaign that an import is for, with what fills its template."""

    campaign_id: int
    name: str
    body: tuple[str, ...]
    content: Content
    category: str = "utility"
    by_zone: bool = False
    """Whether the quiet hours are each person's own, so that lanes are by zone."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of the staged rows. Of those taken, `aside` wait for a person: they are likely somebody who is there.

    Lists hold the first ones up to the asked limit: `folds` are (line, into_line), `twins` (line, line of the other
    spelling, None when that is in the campaign already). `most`: lines of the number that stands most often.
    """

    taken: int
    folded: int
    already: int
    folds: list[tuple[int, int]]
    most: int = 1
    aside: int = 0
    twins: list[tuple[int, int | None]] = field(default_factory=list)


class Import:
    """One import under way. Nothing is kept unless `keep` returns."""

    def __init__(
        self, connection: Connection, transaction: asyncpg.transaction.Transaction, target: Target
    ) -> None:
        self.target = target
        self._connection = connection
        self._transaction = transaction
        self._kept = False

    async def stage(self, chunks: AsyncIterable[bytes]) -> None:
        """Copy in rows made by `staged_row`. What `chunks` raises passes through."""
        await self._connection.copy_to_table(
            "audience_staged",
            source=chunks,
            columns=["line", "phone", "country", "params", "twin", "zone"],
            timeout=STATEMENT_SECONDS,
        )

    async def merge(self, listed: int) -> Merged:
        """Fold the staged rows, insert those that are new, and book them. Lists hold at most `listed`."""
        campaign = self.target.campaign_id
        await self._connection.execute("ANALYZE audience_staged")  # nobody else analyses a temporary table
        await self._value(TAKE_TURNS, campaign)
        staged = await self._value("SELECT count(*) FROM audience_staged")
        folded = await self._value(FOLD)
        folds = await self._connection.fetch(FOLDS, listed) if folded else []
        most = await self._value(MOST_EQUAL) if folded else 1
        await self._connection.execute("ANALYZE audience_folded")
        taken = await self._value(NEW, campaign)
        aside = await self._insert(campaign, taken) if taken else 0
        twins = await self._connection.fetch(TWINS_OF, listed) if aside else []
        return Merged(
            taken,
            folded,
            staged - folded - taken,
            [tuple(row) for row in folds],
            most,
            aside,
            [tuple(row) for row in twins],
        )

    async def keep(self, taken: int, entry: journal.Entry, facts: Facts | None = None) -> None:
        """Add to what is planned, journal, commit. Raises ImportRefused when the campaign has ended meanwhile, or when
        it was started and `facts` hold a doubt: nothing would stand between that and people.

        A commit that has begun is waited for even when the task is cancelled: it is too late to stop, and the
        caller must learn what became of it.
        """
        target = self.target
        row = await self._connection.fetchrow(PLAN, target.campaign_id, taken, list(target.body))
        if row is None:
            raise ImportRefused(
                f"Campaign {target.name} ended or was changed during the import; nothing was kept."
            )
        planned, state = row
        if facts is not None:
            if facts.doubt and not facts.confirmed and state != "draft":
                raise ImportRefused(
                    f"{facts.file}: {facts.doubt}, and campaign {target.name} is {state}, past its start: "
                    "look at the file, then import it again with --confirm; nothing was kept."
                )
            await audience_imports.record(self._connection, target.campaign_id, facts)
        entry.before, entry.after = f"planned {planned - taken}", f"planned {planned}"
        await journal.write(self._connection, entry)
        self._kept = True
        try:
            await _to_its_end(self._transaction.commit())
        except DATABASE_FAULTS as error:
            raise ImportRefused(
                "The database was lost at the very end, and whether the import was kept is not known: "
                "import the file again, people who are there already are not doubled."
            ) from error

    async def drop(self) -> None:
        """Undo everything, unless it was kept."""
        if not self._kept:
            with suppress(*DATABASE_FAULTS):  # a connection that is gone has undone it already
                await self._transaction.rollback()

    async def _insert(self, campaign: int, taken: int) -> int:
        """How many of the new rows were set aside."""
        await self._connection.execute("ANALYZE audience_new")
        aside = await self._value(TWINS, campaign)
        await self._connection.execute(LANES, campaign)
        await self._connection.execute(KEEP_DATA, campaign, timeout=STATEMENT_SECONDS)
        kept = await self._value(KEEP_AND_BOOK, campaign)
        if kept != taken:
            raise AssertionError(f"{taken} rows were new, but {kept} found their lane")
        return aside

    async def _value(self, statement: str, *values: int) -> int:
        return cast(int, await self._connection.fetchval(statement, *values, timeout=STATEMENT_SECONDS))


@asynccontextmanager
async def open_import(db: Executor, campaign: str) -> AsyncIterator[Import]:
    """A transaction for one import into `campaign`, undone on leaving unless it was kept.

    Raises ImportRefused: no such campaign, it has ended, or the database failed.
    """
    try:
        if isinstance(db, asyncpg.Pool):
            async with db.acquire() as connection, _opened(cast(Connection, connection), campaign) as opened:
                yield opened
        else:
            async with _opened(cast(Connection, db), campaign) as opened:
                yield opened
    except DATABASE_FAULTS as error:
        raise ImportRefused(
            "The database failed during the import; nothing was kept. Import the file again."
        ) from error


def staged_row(
    line: int, phone: str, country: str, params: dict[str, str], *, by_zone: bool = False
) -> bytes:
    """One row in COPY's text format. `phone` and `country` must be plain ASCII without backslashes.

    `by_zone`: its lane depends on the zone in which the person lives.
    """
    twin = next(iter(twins(phone)), None)
    # JSON holds no raw control characters, so the backslash is all that COPY would read otherwise.
    return b"%d\t%b\t%b\t%b\t%b\t%b\n" % (
        line,
        phone.encode("ascii"),
        country.encode("ascii"),
        _JSON.encode(params).replace(b"\\", b"\\\\"),
        twin.encode("ascii") if twin else b"\\N",
        zones_of(phone).encode("ascii") if by_zone else b"",
    )


@asynccontextmanager
async def _opened(connection: Connection, name: str) -> AsyncIterator[Import]:
    target = await _target(connection, name)
    transaction = connection.transaction()
    await transaction.start()
    act = Import(connection, transaction, target)
    try:
        await connection.execute(STAGE)
        yield act
    finally:
        await act.drop()


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


async def _target(connection: Connection, name: str) -> Target:
    row = await connection.fetchrow(TARGET, name)
    if row is None:
        raise ImportRefused(
            f"There is no campaign called {name}: create it first with `tidegate campaign create`."
        )
    if row["state"] in ENDED:
        raise ImportRefused(
            f"Campaign {name} is {row['state']} and takes no more recipients: create another one."
        )
    body: Sequence[str] = row["body"]
    content = stored_content(row["content"]) or Content.of_columns(body)
    return Target(row["campaign_id"], name, tuple(body), content, row["category"], row["by_zone"])


_JSON = msgspec.json.Encoder()
