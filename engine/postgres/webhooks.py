"""The inbox of webhook bodies: stored before they are acknowledged, applied later, trimmed by the day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from engine.postgres.pool import Executor, Pool

SLOTS = 9
LONGEST_DAYS = 6
BACKLOG_COUNTED = 100_000

# The day is the database's, so that every receiver agrees on the slot.
STORE = """
WITH stored AS (
  INSERT INTO inbox (slot, body)
  SELECT floor(extract(epoch FROM now()) / 86400)::int % 9, body FROM unnest($1::bytea[]) AS body
  RETURNING id, slot, received_at)
INSERT INTO inbox_work (id, slot, received_at) SELECT id, slot, received_at FROM stored
"""

# As STORE, and onto the list of what is posted on. Ids are drawn first: RETURNING could not tell whose signature.
STORE_AND_FORWARD = """
WITH new AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('inbox', 'id')) AS id, body, signature
    FROM unnest($1::bytea[], $2::text[]) AS b(body, signature)),
stored AS (
  INSERT INTO inbox (id, slot, body) OVERRIDING SYSTEM VALUE
  SELECT id, floor(extract(epoch FROM now()) / 86400)::int % 9, body FROM new
  RETURNING id, slot, received_at),
work AS (INSERT INTO inbox_work (id, slot, received_at) SELECT id, slot, received_at FROM stored)
INSERT INTO forward_work (id, slot, signature) SELECT id, slot, signature FROM stored JOIN new USING (id)
"""

# Scalar subqueries, not joins: they can only be a look into one slot by primary key. $2: bytes, but never none.
TAKE = """
WITH work AS MATERIALIZED (
  SELECT id, slot, received_at FROM inbox_work ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED),
mine AS MATERIALIZED (
  SELECT id, slot, received_at FROM (
    SELECT w.*, row_number() OVER (ORDER BY id) AS nth,
           sum((SELECT octet_length(body) FROM inbox i WHERE i.slot = w.slot AND i.id = w.id)) OVER (ORDER BY w.id)
             AS size
      FROM work w) sized
   WHERE nth = 1 OR size <= $2),
gone AS (DELETE FROM inbox_work WHERE id = ANY(ARRAY(SELECT id FROM mine)))
SELECT m.id, m.received_at, (SELECT body FROM inbox i WHERE i.slot = m.slot AND i.id = m.id) AS body FROM mine m
 ORDER BY m.id
"""

DROP = "DELETE FROM inbox_work WHERE id = $1"

# The count stops where it no longer matters how many there are.
BACKLOG = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM inbox_work LIMIT $1) counted) AS bodies,
       (SELECT extract(epoch FROM clock_timestamp() - received_at)::float8
          FROM inbox_work ORDER BY id LIMIT 1) AS oldest
"""

# Sorted, so that two batches cannot wait for each other; not rewritten for less than a second.
SEEN = """
INSERT INTO webhook_seen AS s (number, at)
SELECT number, at FROM unnest($1::text[], $2::timestamptz[]) AS u(number, at) ORDER BY number
ON CONFLICT (number) DO UPDATE SET at = excluded.at WHERE s.at < excluded.at - interval '1 second'
"""

# Numbers of ours, sorted, as above. What was received longer ago presses nobody now: the provider counted it then.
COUNT_INBOUND = """
INSERT INTO inbound_count AS c (number, n)
SELECT u.number, count(*) FROM unnest($1::text[], $2::timestamptz[]) AS u(number, at)
 WHERE u.at > clock_timestamp() - interval '2 seconds' AND EXISTS (SELECT FROM number WHERE id = u.number)
 GROUP BY 1 ORDER BY 1
ON CONFLICT (number) DO UPDATE SET n = c.n + excluded.n
"""

TODAY = "SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int"
FILLED = "SELECT EXISTS (SELECT FROM inbox WHERE slot = $1)"
WAITING = "SELECT EXISTS (SELECT FROM inbox_work WHERE slot = $1)"
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '200ms'"
EMPTY = (
    "TRUNCATE inbox_0",
    "TRUNCATE inbox_1",
    "TRUNCATE inbox_2",
    "TRUNCATE inbox_3",
    "TRUNCATE inbox_4",
    "TRUNCATE inbox_5",
    "TRUNCATE inbox_6",
    "TRUNCATE inbox_7",
    "TRUNCATE inbox_8",
)

# Safe: what a crash takes back is the deletion of work together with what it did.
LAZY_COMMIT = "SET LOCAL synchronous_commit = off"


@dataclass(frozen=True, slots=True)
class Stored:
    """A body taken from the work list. `body` is None when its slot was trimmed away."""

    id: int
    received_at: datetime
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Bodies that are stored and not applied yet (counted up to BACKLOG_COUNTED), and the oldest one's age in s."""

    bodies: int
    oldest: float


async def store(
    db: Executor, bodies: Sequence[bytes], signatures: Sequence[str] = (), *, forward: bool = False
) -> None:
    """Store bodies durably, all or none, in one statement; with `forward` to be posted on under their signatures."""
    if forward:
        await db.execute(STORE_AND_FORWARD, list(bodies), list(signatures))
    else:
        await db.execute(STORE, list(bodies))


async def take(db: Executor, most: int, most_bytes: int) -> list[Stored]:
    """The oldest bodies that nobody else has in hand, off the work list when the caller's transaction commits.

    At most `most`, and at most `most_bytes` unless the first alone is larger.
    """
    await db.execute(LAZY_COMMIT)
    return [Stored(*row) for row in await db.fetch(TAKE, most, most_bytes)]


async def drop(db: Executor, body: int) -> None:
    """Take a body off the work list without applying it. It stays in the inbox as it came."""
    await db.execute(DROP, body)


async def backlog(db: Executor) -> Backlog:
    """How far applying is behind."""
    row = await db.fetchrow(BACKLOG, BACKLOG_COUNTED)
    assert row is not None  # it has no FROM
    return Backlog(row["bodies"], row["oldest"] or 0.0)


async def seen(db: Executor, numbers: Mapping[str, datetime]) -> None:
    """Note when the latest status of each number (Meta's phone number id) was received."""
    if numbers:
        await db.execute(SEEN, list(numbers), list(numbers.values()))


async def count_inbound(db: Executor, written: Sequence[tuple[str, datetime]]) -> None:
    """Count what people have just written, by Meta's phone number id and moment of receipt, for the numbers' owners."""
    if written:
        await db.execute(COUNT_INBOUND, [number for number, _ in written], [at for _, at in written])


async def trim(pool: Pool, keep_days: int = LONGEST_DAYS) -> list[int]:
    """Empty the slots of which nothing was received in the last `keep_days` (1 to 6) times 24 h; which ones.

    A slot with work left is kept, and one that is in use right now is left for the next time. Today's slot is
    never touched, nor tomorrow's (it was last used eight days ago, so it grows by one day at most): midnight
    may pass while we wait for its lock.
    """
    if not 1 <= keep_days <= LONGEST_DAYS:
        raise ValueError(f"The inbox keeps 1 to {LONGEST_DAYS} days, not {keep_days}.")
    today = int(await pool.fetchval(TODAY))
    ages = range(keep_days + 1, SLOTS - 1)
    return [slot for slot in ((today - age) % SLOTS for age in ages) if await _empty(pool, slot)]


async def _empty(pool: Pool, slot: int) -> bool:
    """Whether the slot was emptied. The truncation comes first, so that nothing can arrive after the check."""
    if not await pool.fetchval(FILLED, slot):
        return False
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute(LOCK_TIMEOUT)
            await connection.execute(EMPTY[slot])
            today = int(await connection.fetchval(TODAY))
            kept = slot in (today % SLOTS, (today + 1) % SLOTS) or await connection.fetchval(WAITING, slot)
        except asyncpg.LockNotAvailableError:
            await transaction.rollback()
            return False
        except BaseException:
            await transaction.rollback()
            raise
        if kept:
            await transaction.rollback()
        else:
            await transaction.commit()
        return not kept
