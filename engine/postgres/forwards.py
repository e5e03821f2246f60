"""The list of bodies to be posted on: taken under a time limit, tried again later, dropped after a day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.postgres.pool import Executor

# Taken for a while, not deleted: whoever dies while posting leaves it to the next. Scalar subqueries, not joins: they
# can only be a look into one slot by primary key.
TAKE = """
WITH due AS MATERIALIZED (
  SELECT id FROM forward_work WHERE next_at <= clock_timestamp() ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
UPDATE forward_work f SET attempts = attempts + 1, next_at = clock_timestamp() + $2::interval
 WHERE f.id = ANY(ARRAY(SELECT id FROM due))
RETURNING f.id, f.signature, f.attempts,
          (SELECT body FROM inbox i WHERE i.slot = f.slot AND i.id = f.id) AS body,
          (SELECT received_at FROM inbox i WHERE i.slot = f.slot AND i.id = f.id) AS received_at
"""

DONE = "DELETE FROM forward_work WHERE id = ANY($1)"

LATER = """
UPDATE forward_work f SET next_at = clock_timestamp() + make_interval(secs => u.wait)
  FROM unnest($1::bigint[], $2::float8[]) AS u(id, wait) WHERE f.id = u.id
"""

WAITING = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM forward_work LIMIT $1) counted) AS bodies
"""

COUNTED = 100_000


@dataclass(frozen=True, slots=True)
class Forward:
    """A body to post on, as it came. `attempts` counts this one. `body` is None when it was trimmed away."""

    id: int
    signature: str
    attempts: int
    body: bytes | None
    received_at: datetime | None


async def take(db: Executor, most: int, seconds: float) -> list[Forward]:
    """What is due, nobody else's for so many seconds."""
    rows = await db.fetch(TAKE, most, timedelta(seconds=seconds))
    return [Forward(*row) for row in rows]


async def done(db: Executor, ids: Sequence[int]) -> None:
    """Posted, or given up."""
    if ids:
        await db.execute(DONE, list(ids))


async def later(db: Executor, waits: Sequence[tuple[int, float]]) -> None:
    """To be tried again, each after so many seconds."""
    if waits:
        await db.execute(LATER, [id_ for id_, _ in waits], [wait for _, wait in waits])


async def waiting(db: Executor) -> int:
    """How many are on the list, counted up to COUNTED."""
    return int(await db.fetchval(WAITING, COUNTED))
