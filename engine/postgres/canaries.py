"""The first rows of an audience in lanes of their own, all others held until these have been judged."""

from dataclasses import dataclass

from engine.domain.canary import BLOCKS, Canary, Sent
from engine.postgres import journal
from engine.postgres.pool import Executor

CAMPAIGN = """
SELECT canary, canary_rows, canary_share, planned FROM campaign WHERE campaign_id = $1
"""

HELD = "canary"
"""hold of the lanes that wait."""

LANES = """
INSERT INTO lane (campaign_id, country, zone, deadline, aside, hold)
SELECT campaign_id, country, zone, deadline, 'canary', hold FROM lane
 WHERE campaign_id = $1 AND aside = '' ORDER BY lane_id
ON CONFLICT DO NOTHING
"""

# The first of the audience in its own order. Nothing of it runs yet, so nobody else moves these rows.
TAKE = """
WITH k AS MATERIALIZED (
  SELECT r.id, r.lane_id, o.lane_id AS canary
    FROM recipient r JOIN lane l USING (lane_id)
    JOIN lane o ON o.campaign_id = l.campaign_id AND o.country = l.country AND o.zone = l.zone
               AND o.deadline = l.deadline AND o.aside = 'canary'
   WHERE l.campaign_id = $1 AND l.aside = '' AND r.next_attempt_at IS NOT NULL
   ORDER BY r.id LIMIT $2 FOR UPDATE OF r),
moved AS (
  UPDATE recipient r SET lane_id = k.canary, moved_at = now() FROM k WHERE r.id = k.id),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, 'p', ' ', count(*) FROM k GROUP BY lane_id
  UNION ALL SELECT canary, ' ', 'p', count(*) FROM k GROUP BY canary)
SELECT count(*) FROM k
"""

HOLD_REST = "UPDATE lane SET hold = 'canary' WHERE campaign_id = $1 AND aside = '' AND (hold IS NULL OR hold = 'quiet')"

BEGIN = "UPDATE campaign SET canary = 'sending' WHERE campaign_id = $1"

WATCHED = """
SELECT campaign_id, name, state, canary, canary_max_failed, extract(epoch FROM canary_wait)::float8 AS wait
  FROM campaign WHERE canary IN ('sending', 'failed') AND state = 'running' ORDER BY campaign_id
"""

# `open`: not settled, or settled so lately that statuses may still come.
STANDS = """
SELECT count(*)::int AS rows,
       count(*) FILTER (WHERE r.state IN ('p', 'c', 's', 'u', 'a')
                           OR r.state IN ('t', 'd', 'r', 'f')
                              AND r.moved_at > clock_timestamp() - make_interval(secs => $2))::int AS open,
       count(*) FILTER (WHERE r.state = 'f')::int AS failed,
       count(*) FILTER (WHERE r.state <> 'f' AND EXISTS (
         SELECT FROM suppression s JOIN recipient_data d ON d.phone = s.phone
          WHERE d.id = r.id AND s.source IN ('stop', 'user_preferences', '131050')
            AND s.at >= c.started_at))::int AS stops
  FROM campaign c JOIN lane l USING (campaign_id) JOIN recipient r USING (lane_id)
 WHERE c.campaign_id = $1 AND l.aside = 'canary' AND r.state NOT IN ('x', 'z', 'k')
"""

BLOCKED = """
SELECT count(*)::int FROM lane l JOIN recipient r USING (lane_id)
 WHERE l.campaign_id = $1 AND l.aside = 'canary' AND r.state = 'f' AND r.code = ANY($2)
"""

RESOLVE = """
UPDATE campaign SET canary = $2, state = CASE $2 WHEN 'failed' THEN 'held' ELSE state END,
       reason = CASE $2 WHEN 'failed' THEN $3 ELSE reason END,
       held_by = CASE $2 WHEN 'failed' THEN 'canary' ELSE held_by END
 WHERE campaign_id = $1 AND state = 'running' AND canary = $4 RETURNING name
"""

# To the clocks of its zone, where there are quiet hours: a standing job opens it when it may.
OPEN_REST = """
UPDATE lane l SET hold = CASE WHEN c.quiet_from IS NOT NULL THEN 'quiet' END
  FROM campaign c WHERE c.campaign_id = l.campaign_id AND c.campaign_id = $1 AND l.aside = '' AND l.hold = 'canary'
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """A campaign whose canary is out, or has failed and was overruled by a person. Shares 0..1, seconds."""

    campaign_id: int
    name: str
    state: str
    canary: str
    max_failed: float
    wait_s: float


async def prepare(db: Executor, campaign_id: int) -> int:
    """Set the first rows apart before a start, inside its transaction, and hold the others; how many go first.

    0 for a campaign without a canary, or with one that is out already.
    """
    row = await db.fetchrow(CAMPAIGN, campaign_id)
    if row is None or row["canary"] is not None or (row["canary_rows"] or row["canary_share"]) is None:
        return 0
    canary = Canary(rows=row["canary_rows"], share=row["canary_share"])
    await db.execute(LANES, campaign_id)
    taken = int(await db.fetchval(TAKE, campaign_id, canary.size(row["planned"])))
    await db.execute(HOLD_REST, campaign_id)
    await db.execute(BEGIN, campaign_id)
    return taken


async def watched(db: Executor) -> list[Watched]:
    """Running campaigns whose rest still waits."""
    return [Watched(*row) for row in await db.fetch(WATCHED)]


async def stands(db: Executor, one: Watched) -> Sent:
    """How its first rows stand; what was suppressed, expired or cancelled among them tells nothing."""
    rows, open_, failed, stops = await db.fetchrow(STANDS, one.campaign_id, one.wait_s) or (0, 0, 0, 0)
    blocked = int(await db.fetchval(BLOCKED, one.campaign_id, sorted(BLOCKS)))
    return Sent(rows, open_, failed - blocked, stops + blocked)


async def resolve(db: Executor, one: Watched, why_not: str | None) -> bool:
    """Open the rest, or hold the campaign for `why_not`, in the caller's transaction; False when it has moved on."""
    after = "failed" if why_not else "passed"
    if not await db.fetchval(RESOLVE, one.campaign_id, after, why_not, one.canary):
        return False
    if why_not is None:
        await db.execute(OPEN_REST, one.campaign_id)
    reason = why_not or ("a person let it go on" if one.canary == "failed" else "its canary passed")
    entry = journal.Entry("auto", "engine", "judge canary", one.name, reason, one.canary, after)
    await journal.write(db, entry)
    return True
