"""The books: how many rows of each lane stand in each state. Moves write deltas; here they are folded and read.

Folding is one statement, so every reader sees a delta either unfolded or in the book, never both or neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.author import ENGINE
from engine.domain.recipient import OPEN, State
from engine.postgres.journal import Entry, write
from engine.postgres.pool import Executor, Pool

# Two folders take different deltas (SKIP LOCKED) and lock the book's rows in the same order.
FOLD = """
WITH moved AS (
  DELETE FROM book_delta
   WHERE id = ANY(ARRAY(SELECT id FROM book_delta ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
  RETURNING lane_id, f, t, n),
booked AS (
  INSERT INTO book AS b (lane_id, state, n)
  SELECT lane_id, state, sum(n) FROM (
    SELECT lane_id, t AS state, n FROM moved WHERE t <> ' '
    UNION ALL SELECT lane_id, f, -n FROM moved WHERE f <> ' ') s
  GROUP BY lane_id, state HAVING sum(n) <> 0 ORDER BY lane_id, state
  ON CONFLICT (lane_id, state) DO UPDATE SET n = b.n + excluded.n),
counted AS (
  DELETE FROM tally_delta
   WHERE id = ANY(ARRAY(SELECT id FROM tally_delta ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
  RETURNING lane_id, what, code, n),
tallied AS (
  INSERT INTO tally AS b (lane_id, what, code, n)
  SELECT lane_id, what, code, sum(n) FROM counted
  GROUP BY lane_id, what, code HAVING sum(n) <> 0 ORDER BY lane_id, what, code
  ON CONFLICT (lane_id, what, code) DO UPDATE SET n = b.n + excluded.n)
SELECT (SELECT count(*) FROM moved) + (SELECT count(*) FROM counted)
"""

BALANCE = """
SELECT l.campaign_id, s.state, sum(s.n)::bigint AS n
  FROM (SELECT lane_id, state, n FROM book
        UNION ALL SELECT lane_id, t, n FROM book_delta WHERE t <> ' '
        UNION ALL SELECT lane_id, f, -n FROM book_delta WHERE f <> ' ') s
  JOIN lane l USING (lane_id)
 WHERE $1::int IS NULL OR l.campaign_id = $1
 GROUP BY 1, 2
"""

TALLIES = """
SELECT l.campaign_id, s.what, s.code, sum(s.n)::bigint AS n
  FROM (SELECT lane_id, what, code, n FROM tally
        UNION ALL SELECT lane_id, what, code, n FROM tally_delta) s
  JOIN lane l USING (lane_id)
 WHERE $1::int IS NULL OR l.campaign_id = $1
 GROUP BY 1, 2, 3 HAVING sum(s.n) <> 0
"""

BALANCE_BY_LANE = """
SELECT s.lane_id, s.state, sum(s.n)::bigint AS n
  FROM (SELECT lane_id, state, n FROM book
        UNION ALL SELECT lane_id, t, n FROM book_delta WHERE t <> ' '
        UNION ALL SELECT lane_id, f, -n FROM book_delta WHERE f <> ' ') s
  JOIN lane l USING (lane_id)
 WHERE $1::int IS NULL OR l.campaign_id = $1
 GROUP BY 1, 2 HAVING sum(s.n) <> 0
"""

# $1 campaign_id, or NULL for all that run or stand.
HELD_ROWS = """
SELECT l.campaign_id, CASE WHEN l.aside = 'twins' THEN l.aside ELSE l.hold END AS why, sum(s.n)::bigint AS n
  FROM (SELECT lane_id, state, n FROM book
        UNION ALL SELECT lane_id, t, n FROM book_delta
        UNION ALL SELECT lane_id, f, -n FROM book_delta) s
  JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
 WHERE s.state = 'p' AND l.hold IS NOT NULL AND c.state NOT IN ('finished', 'cancelled')
   AND ($1::int IS NULL OR l.campaign_id = $1)
 GROUP BY 1, 2 HAVING sum(s.n) > 0
"""

UNENDED = """
SELECT campaign_id FROM campaign
 WHERE state IN ('running', 'paused', 'held') OR state = 'cancelled' AND finished_at IS NULL ORDER BY 1
"""

# Imports lock the campaign too, so no row can join between the sum and the end.
LOCK = "SELECT name, state FROM campaign WHERE campaign_id = $1 FOR NO KEY UPDATE"

OPEN_ROWS = """
SELECT coalesce(sum(s.n), 0)::bigint
  FROM (SELECT lane_id, state, n FROM book
        UNION ALL SELECT lane_id, t, n FROM book_delta
        UNION ALL SELECT lane_id, f, -n FROM book_delta) s
  JOIN lane l USING (lane_id)
 WHERE l.campaign_id = $1 AND s.state IN ('p', 'c', 's', 'u', 'a')
"""

FINISH = """
UPDATE campaign SET finished_at = clock_timestamp(), reason = CASE state WHEN 'cancelled' THEN reason END,
       state = CASE state WHEN 'cancelled' THEN state ELSE 'finished' END
 WHERE campaign_id = $1 AND (state IN ('running', 'paused', 'held') OR state = 'cancelled' AND finished_at IS NULL)
RETURNING state
"""


@dataclass(frozen=True, slots=True)
class Tallies:
    """What a campaign counted besides its states. By code: all refusals, and the rows that are failed now."""

    tries: int = 0
    attempts: int = 0
    accepted: int = 0
    possible_duplicates: int = 0
    assumed_sent: int = 0
    confirmed_duplicates: int = 0
    refusals: Mapping[int, int] = field(default_factory=dict)
    errors: Mapping[int, int] = field(default_factory=dict)


_WORDS = {
    "T": "tries",
    "A": "attempts",
    "K": "accepted",
    "D": "possible_duplicates",
    "S": "assumed_sent",
    "C": "confirmed_duplicates",
}


async def fold(db: Executor, most: int = 20_000) -> int:
    """Fold at most `most` deltas of each kind into the books; returns how many. Safe on any number of nodes."""
    return int(await db.fetchval(FOLD, most))


async def balances(db: Executor, campaign_id: int | None = None) -> dict[int, dict[State, int]]:
    """Each campaign's rows by state (all twelve), as of one moment; campaigns without rows are not there."""
    found: dict[int, dict[State, int]] = {}
    for row in await db.fetch(BALANCE, campaign_id):
        counts = found.setdefault(row["campaign_id"], dict.fromkeys(State, 0))
        counts[State(_letter(row["state"]))] = row["n"]
    return found


async def held_rows(db: Executor, campaign_id: int | None = None) -> dict[int, dict[str, int]]:
    """Pending rows by what holds their lane (twins, canary, quiet, or a reason), by campaign_id; of the unended."""
    found: dict[int, dict[str, int]] = {}
    for row in await db.fetch(HELD_ROWS, campaign_id):
        found.setdefault(row["campaign_id"], {})[row["why"]] = row["n"]
    return found


async def balance_by_lane(db: Executor, campaign_id: int | None = None) -> dict[tuple[int, str], int]:
    """Rows by (lane_id, state's letter), zeros left out: what an audit compares with a recount."""
    return {
        (row["lane_id"], _letter(row["state"])): row["n"]
        for row in await db.fetch(BALANCE_BY_LANE, campaign_id)
    }


async def tallies(db: Executor, campaign_id: int | None = None) -> dict[int, Tallies]:
    """Each campaign's other counters, as of one moment."""
    plain: dict[int, dict[str, int]] = {}
    coded: dict[int, dict[str, dict[int, int]]] = {}
    for row in await db.fetch(TALLIES, campaign_id):
        campaign, what = row["campaign_id"], _letter(row["what"])
        plain.setdefault(campaign, {})
        if what in _WORDS:
            plain[campaign][_WORDS[what]] = row["n"]
        else:
            coded.setdefault(campaign, {}).setdefault(what, {})[row["code"]] = row["n"]
    return {
        campaign: Tallies(
            **counts,
            refusals=coded.get(campaign, {}).get("R", {}),
            errors=coded.get(campaign, {}).get("F", {}),
        )
        for campaign, counts in plain.items()
    }


async def complete(pool: Pool) -> list[str]:
    """End every campaign whose five open states are all zero; returns their names.

    The campaign is locked first and summed by a second statement, whose snapshot holds all that came before.
    """
    standing = await balances(pool)
    ended = []
    for row in await pool.fetch(UNENDED):
        counts = standing.get(row["campaign_id"])
        if counts and not any(counts[state] for state in OPEN):
            name = await _end(pool, row["campaign_id"])
            ended += [name] if name else []
    return ended


async def _end(pool: Pool, campaign_id: int) -> str | None:
    async with pool.acquire() as db, db.transaction():
        locked = await db.fetchrow(LOCK, campaign_id)
        if locked is None or await db.fetchval(OPEN_ROWS, campaign_id):
            return None
        after = await db.fetchval(FINISH, campaign_id)
        if after is None:
            return None
        name = str(locked["name"])
        await write(db, Entry(ENGINE, "engine", "finish campaign", name, None, locked["state"], after))
        return name


def _letter(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
