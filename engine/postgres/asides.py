"""Rows that wait for a person's word: released into the lane where they belong, or cancelled."""

from collections.abc import Sequence

from engine.postgres.pool import Executor

WAITING = """
SELECT count(*) FROM lane l JOIN recipient r USING (lane_id)
 WHERE l.campaign_id = $1 AND l.aside = 'twins' AND r.next_attempt_at IS NOT NULL
"""

BY_CAMPAIGN = """
SELECT c.name, count(*) FROM campaign c JOIN lane l USING (campaign_id) JOIN recipient r USING (lane_id)
 WHERE l.aside = 'twins' AND c.state = 'running' AND r.next_attempt_at IS NOT NULL GROUP BY 1
"""

LANES = """
INSERT INTO lane (campaign_id, country, zone, deadline, hold)
SELECT l.campaign_id, l.country, l.zone, l.deadline,
       CASE WHEN c.canary IN ('sending', 'failed') THEN 'canary' WHEN c.quiet_from IS NOT NULL THEN 'quiet' END
  FROM lane l JOIN campaign c USING (campaign_id) WHERE l.campaign_id = $1 AND l.aside = 'twins' ORDER BY l.lane_id
ON CONFLICT DO NOTHING
"""

# What is aside is never claimed, so nobody else moves these rows, but a cancelling might: hence the lock.
RELEASE = """
WITH k AS MATERIALIZED (
  SELECT r.id, r.lane_id, o.lane_id AS home
    FROM recipient r JOIN lane l USING (lane_id)
    JOIN lane o ON o.campaign_id = l.campaign_id AND o.country = l.country AND o.zone = l.zone
               AND o.deadline = l.deadline AND o.aside = ''
   WHERE l.campaign_id = $1 AND l.aside = 'twins' AND r.next_attempt_at IS NOT NULL
     AND ($2::bigint[] IS NULL OR r.id = ANY($2))
   ORDER BY r.id LIMIT $3 FOR UPDATE OF r),
moved AS (
  UPDATE recipient r SET lane_id = k.home, next_attempt_at = now(), moved_at = now() FROM k WHERE r.id = k.id),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, 'p', ' ', count(*) FROM k GROUP BY lane_id
  UNION ALL SELECT home, ' ', 'p', count(*) FROM k GROUP BY home)
SELECT count(*) FROM k
"""

DISCARD = """
WITH k AS MATERIALIZED (
  SELECT r.id, r.lane_id FROM recipient r JOIN lane l USING (lane_id)
   WHERE l.campaign_id = $1 AND l.aside = 'twins' AND r.next_attempt_at IS NOT NULL
     AND ($2::bigint[] IS NULL OR r.id = ANY($2))
   ORDER BY r.id LIMIT $3 FOR UPDATE OF r),
moved AS (
  UPDATE recipient SET state = 'k', next_attempt_at = NULL, code = NULL, resend = false, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM k))),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'p', 'k', count(*) FROM k GROUP BY lane_id)
SELECT count(*) FROM k
"""

PAGE = 2_000


async def waiting(db: Executor, campaign_id: int) -> int:
    """How many rows wait."""
    return int(await db.fetchval(WAITING, campaign_id))


async def by_campaign(db: Executor) -> dict[str, int]:
    """How many rows wait in each running campaign, by its name; those without any are not there."""
    return {row["name"]: row["count"] for row in await db.fetch(BY_CAMPAIGN)}


async def release(db: Executor, campaign_id: int, ids: Sequence[int] | None = None) -> int:
    """They (or those of `ids` that wait) are sent like all others from now on; returns how many."""
    await db.execute(LANES, campaign_id)
    return await _paged(db, RELEASE, campaign_id, ids)


async def discard(db: Executor, campaign_id: int, ids: Sequence[int] | None = None) -> int:
    """They (or those of `ids` that wait) are cancelled; returns how many."""
    return await _paged(db, DISCARD, campaign_id, ids)


async def _paged(db: Executor, statement: str, campaign_id: int, ids: Sequence[int] | None) -> int:
    wanted = None if ids is None else list(ids)
    total = 0
    while moved := await db.fetchval(statement, campaign_id, wanted, PAGE):
        total += moved
    return total
