"""Rows whose time has passed: they expire where they stand, a page at a time, and never go out late."""

from engine.postgres.pool import Executor, Pool

LANES = """
SELECT l.lane_id FROM lane l JOIN campaign c USING (campaign_id)
 WHERE least(l.deadline, c.deadline) <= clock_timestamp() AND c.state NOT IN ('finished', 'cancelled')
   AND EXISTS (SELECT FROM recipient r WHERE r.lane_id = l.lane_id AND r.next_attempt_at IS NOT NULL)
 ORDER BY l.lane_id
"""

EXPIRE = """
WITH k AS MATERIALIZED (
  SELECT id, lane_id FROM recipient
   WHERE id = ANY(ARRAY(SELECT id FROM recipient WHERE lane_id = $1 AND next_attempt_at IS NOT NULL
                         ORDER BY next_attempt_at, id LIMIT $2))
     AND next_attempt_at IS NOT NULL
   ORDER BY id FOR UPDATE SKIP LOCKED),
moved AS (
  UPDATE recipient SET state = 'x', next_attempt_at = NULL, resend = false, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM k))),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'p', 'x', count(*) FROM k GROUP BY lane_id)
SELECT count(*) FROM k
"""


async def lanes_past_deadline(db: Executor) -> list[int]:
    """Lanes with pending rows that must not be sent any more."""
    return [row["lane_id"] for row in await db.fetch(LANES)]


async def expire(pool: Pool, page: int = 2000) -> int:
    """Expire all pending rows past their deadline; how many. Claimed ones expire at the mark."""
    total = 0
    for lane in await lanes_past_deadline(pool):
        while moved := int(await pool.fetchval(EXPIRE, lane, page)):
            total += moved
    return total
