"""Failed rows that a person sends again: counted by code, then moved a page at a time with exact books."""

from collections.abc import Sequence
from datetime import timedelta

from engine.domain.retry import MARKETING_REST, Failed
from engine.postgres.pool import Executor

FAILED = """
SELECT r.code, count(*)::bigint, count(*) FILTER (WHERE r.moved_at <= clock_timestamp() - $2::interval)::bigint
  FROM lane l JOIN recipient r USING (lane_id)
 WHERE l.campaign_id = $1 AND r.state = 'f' GROUP BY 1
"""

# The same transaction moves rows: otherwise it could be finished once more between two pages.
REOPEN = """
UPDATE campaign SET state = CASE state WHEN 'finished' THEN 'running' ELSE state END, finished_at = NULL,
       reason = CASE state WHEN 'finished' THEN NULL ELSE reason END
 WHERE campaign_id = $1 AND state IN ('running', 'paused', 'held', 'finished')
RETURNING state
"""

# A `delivered` that came meanwhile has moved its row: what is not failed any more under the lock stays out.
# Attempts begin anew, or a row that used them all would fail at once; tries go on, for they number the tokens.
RETRY = """
WITH k AS MATERIALIZED (
  SELECT r.id, r.lane_id, r.code, r.attempts FROM lane l JOIN recipient r USING (lane_id)
   WHERE l.campaign_id = $1 AND r.code = ANY($2) AND r.state = 'f'
     AND (r.code <> ALL($3) OR r.moved_at <= clock_timestamp() - $4::interval)
   ORDER BY r.id LIMIT $5 FOR UPDATE OF r),
moved AS (
  UPDATE recipient SET state = 'p', next_attempt_at = now(), attempts = 0, resend = false, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM k))),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'f', 'p', count(*) FROM k GROUP BY lane_id),
tallied AS (
  INSERT INTO tally_delta (lane_id, what, code, n)
  SELECT lane_id, 'F'::"char", code, -count(*) FROM k GROUP BY 1, 3
  UNION ALL SELECT lane_id, 'A', 0, -sum(attempts) FROM k WHERE attempts > 0 GROUP BY 1)
SELECT count(*) FROM k
"""

PAGE = 2_000


async def failed(db: Executor, campaign_id: int) -> list[Failed]:
    """The rows that are failed now, by code."""
    return [Failed(*row) for row in await db.fetch(FAILED, campaign_id, MARKETING_REST)]


async def reopen(db: Executor, campaign_id: int) -> str | None:
    """Let a finished campaign run again, and lock it; its state now, None when nothing more is sent for it."""
    state: str | None = await db.fetchval(REOPEN, campaign_id)
    return state


async def retry(
    db: Executor,
    campaign_id: int,
    codes: Sequence[int],
    rested: Sequence[int],
    page: int = PAGE,
    rest: timedelta = MARKETING_REST,
) -> int:
    """A page of failed rows with one of `codes` becomes pending; how many. Those of `rested` only after `rest`."""
    return int(await db.fetchval(RETRY, campaign_id, list(codes), list(rested), rest, page))
