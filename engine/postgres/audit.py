"""Reads for the audit, all inside one snapshot: what the rows say, beside what the books say.

Everything that grows with the audience is counted in the database or streamed; nothing is held here.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from engine.postgres.pool import Connection, Pool

# A recount of millions of rows takes longer than any statement of the hot path may.
PATIENCE = "SET LOCAL statement_timeout = '2h'"

CAMPAIGNS = (
    "SELECT campaign_id, name, planned FROM campaign WHERE $1::text IS NULL OR name = $1 ORDER BY campaign_id"
)

RECOUNT = """
SELECT r.lane_id, r.state, count(*) AS n FROM recipient r JOIN lane l USING (lane_id)
 WHERE $1::int IS NULL OR l.campaign_id = $1 GROUP BY 1, 2
"""

LANES = "SELECT lane_id, campaign_id FROM lane WHERE $1::int IS NULL OR campaign_id = $1"

COUNTERS = """
SELECT l.campaign_id, sum(r.tries)::bigint AS tries, sum(r.attempts)::bigint AS attempts
  FROM recipient r JOIN lane l USING (lane_id) WHERE $1::int IS NULL OR l.campaign_id = $1 GROUP BY 1
"""

FAILED = """
SELECT l.campaign_id, r.code, count(*) AS n FROM recipient r JOIN lane l USING (lane_id)
 WHERE r.code IS NOT NULL AND r.state = 'f' AND ($1::int IS NULL OR l.campaign_id = $1) GROUP BY 1, 2
"""

# A try that Meta took and did not itself refuse later. Each decision to send again allows one more.
TWICE = """
SELECT t.recipient_id AS id, l.campaign_id, count(*) AS taken, count(*) - 1 - coalesce(max(d.n), 0) AS excess
  FROM (SELECT recipient_id, n FROM try WHERE outcome IN ('accepted', 'proven', 'failed_later')
         GROUP BY 1, 2
        HAVING bool_or(outcome IN ('accepted', 'proven')) AND NOT bool_or(outcome = 'failed_later')) t
  JOIN recipient r ON r.id = t.recipient_id JOIN lane l USING (lane_id)
  LEFT JOIN (SELECT recipient_id, count(*) AS n FROM try WHERE outcome = 'resend_decided' GROUP BY 1) d
         ON d.recipient_id = t.recipient_id
 WHERE $1::int IS NULL OR l.campaign_id = $1
 GROUP BY 1, 2 HAVING count(*) > 1 + coalesce(max(d.n), 0)
 ORDER BY 1 LIMIT $2
"""

WITHOUT_DATA = """
SELECT r.id FROM recipient r JOIN lane l USING (lane_id) LEFT JOIN recipient_data d USING (id)
 WHERE (d.id IS NULL OR d.campaign_id <> l.campaign_id OR d.line < 1) AND ($1::int IS NULL OR l.campaign_id = $1)
 ORDER BY 1 LIMIT $2
"""

WITHOUT_ROW = """
SELECT d.id FROM recipient_data d LEFT JOIN recipient r USING (id)
 WHERE r.id IS NULL AND ($1::int IS NULL OR d.campaign_id = $1) ORDER BY 1 LIMIT $2
"""

IMPORTED = """
SELECT target AS name, count(*) AS imports,
       sum(substring(after FROM '^planned (\\d+)$')::bigint - substring(before FROM '^planned (\\d+)$')::bigint)::bigint
         AS n
  FROM journal WHERE act = 'import' AND result NOT LIKE 'refused%' GROUP BY 1
"""

# In the order of each owner's clock: a batch stands where its first stamp lies, and batches may overlap.
SENDS = """
SELECT s.number_id, n.id, s.epoch, s.lane, s.rate, s.lim, s.base_mono_us, s.base_db, s.err_us, s.us
  FROM send_log s LEFT JOIN number n USING (number_id)
 WHERE cardinality(s.us) > 0
 ORDER BY s.number_id, s.epoch, s.base_mono_us + s.us[1], s.id
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sends of one number, epoch, lane and rate. `us`: offsets from base_mono_us, ascending."""

    number_id: int
    id: str | None
    """None: the number was removed since."""
    epoch: int
    campaign: bool
    rate: float
    limit: float
    base_mono_us: int
    base_db: datetime
    err_us: int
    us: tuple[int, ...]


@asynccontextmanager
async def snapshot(pool: Pool) -> AsyncIterator[Connection]:
    """A connection that sees one moment for as long as it is open, and changes nothing."""
    async with pool.acquire() as db, db.transaction(isolation="repeatable_read", readonly=True):
        await db.execute(PATIENCE)
        yield db  # type: ignore[misc]  # the pool's proxy has all of a connection's methods


async def campaigns(db: Connection, name: str | None) -> list[tuple[int, str, int]]:
    """(campaign_id, name, planned)."""
    return [tuple(row) for row in await db.fetch(CAMPAIGNS, name)]


async def lanes(db: Connection, campaign_id: int | None) -> dict[int, int]:
    """Each lane's campaign."""
    return {row["lane_id"]: row["campaign_id"] for row in await db.fetch(LANES, campaign_id)}


async def recount(db: Connection, campaign_id: int | None) -> dict[tuple[int, str], int]:
    """Rows by (lane_id, state's letter), counted one by one."""
    rows = await db.fetch(RECOUNT, campaign_id, timeout=None)
    return {(row["lane_id"], row["state"].decode()): row["n"] for row in rows}


async def counters(db: Connection, campaign_id: int | None) -> dict[int, tuple[int, int]]:
    """(tries, attempts) by campaign, summed over the rows."""
    rows = await db.fetch(COUNTERS, campaign_id, timeout=None)
    return {row["campaign_id"]: (row["tries"], row["attempts"]) for row in rows}


async def failed(db: Connection, campaign_id: int | None) -> dict[tuple[int, int], int]:
    """Rows that are failed now, by (campaign_id, code)."""
    rows = await db.fetch(FAILED, campaign_id, timeout=None)
    return {(row["campaign_id"], row["code"]): row["n"] for row in rows}


async def taken_twice(db: Connection, campaign_id: int | None, most: int) -> list[tuple[int, int, int]]:
    """(row, campaign_id, requests taken) where more were taken than decisions allow; at most `most`."""
    rows = await db.fetch(TWICE, campaign_id, most, timeout=None)
    return [(row["id"], row["campaign_id"], row["taken"]) for row in rows]


async def unaccounted(db: Connection, campaign_id: int | None, most: int) -> tuple[list[int], list[int]]:
    """Ids of (rows without data of their campaign and a line, data without a row); at most `most` each."""
    rows = await db.fetch(WITHOUT_DATA, campaign_id, most, timeout=None)
    data = await db.fetch(WITHOUT_ROW, campaign_id, most, timeout=None)
    return [row["id"] for row in rows], [row["id"] for row in data]


async def imported(db: Connection) -> dict[str, tuple[int, int]]:
    """By campaign's name: (imports, rows that they say to have added)."""
    return {row["name"]: (row["imports"], row["n"] or 0) for row in await db.fetch(IMPORTED, timeout=None)}


async def sends(db: Connection) -> AsyncIterator[Batch]:
    """Every kept batch, by number, epoch and time; streamed."""
    async for row in db.cursor(SENDS, prefetch=200, timeout=None):
        number_id, id_, epoch, lane, rate, limit, base, base_db, err, us = row
        yield Batch(number_id, id_, epoch, lane == b"c", rate, limit, base, base_db, err, tuple(us))
