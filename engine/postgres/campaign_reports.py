"""What a campaign came to, beyond its books: when its tries left and from where, and why rows ended as they did.

Reads each row and each try of one campaign once; minutes for tens of millions, no lock.
"""

from dataclasses import dataclass
from datetime import datetime

from engine.domain.closing import PaceChange
from engine.postgres.pool import Executor

STATEMENT_SECONDS = 1_800.0

# A try that left has one such record by its sender, and perhaps an `unknown` before the answer was found after all.
TIMES = """
SELECT date_trunc('minute', t.sent_at) AS minute, coalesce(n.id, '') AS number, count(*)::bigint AS tries,
       (count(*) FILTER (WHERE t.outcome = 'accepted'))::bigint AS accepted,
       (count(*) FILTER (WHERE t.outcome = 'refused'))::bigint AS refused,
       (count(*) FILTER (WHERE t.outcome = 'refused' AND t.code = ANY($3)))::bigint AS throttled,
       min(t.sent_at) AS first, max(t.sent_at) AS last
  FROM lane l JOIN recipient r USING (lane_id) JOIN try t ON t.recipient_id = r.id LEFT JOIN number n
    ON n.number_id = t.number_id
 WHERE l.campaign_id = $1 AND t.recorded_at >= $2 AND t.outcome IN ('accepted', 'refused', 'unknown')
 GROUP BY 1, 2 ORDER BY 1, 2
"""

GRANTS = """
SELECT n.id, n.display, n.rate, n.provider_limit
  FROM number n WHERE n.number_id IN (
       SELECT number_id FROM campaign_number WHERE campaign_id = $1
       UNION SELECT DISTINCT r.number_id FROM lane l JOIN recipient r USING (lane_id) WHERE l.campaign_id = $1)
 ORDER BY n.number_id
"""

# By what stands on the list now: one line for each person, the wider scope first.
SUPPRESSED = """
SELECT coalesce(s.source, 'taken off the list since'), count(*)::bigint
  FROM lane l JOIN recipient r USING (lane_id) JOIN recipient_data d USING (id)
  LEFT JOIN LATERAL (SELECT source FROM suppression WHERE phone = d.phone ORDER BY scope LIMIT 1) s ON true
 WHERE l.campaign_id = $1 AND r.state = 'z' GROUP BY 1 ORDER BY 2 DESC, 1
"""

EXPIRED = """
SELECT r.code, r.tries > 0 AS tried, count(*)::bigint
  FROM lane l JOIN recipient r USING (lane_id) WHERE l.campaign_id = $1 AND r.state = 'x'
 GROUP BY 1, 2 ORDER BY 3 DESC, 1 NULLS FIRST, 2
"""

PACE_CHANGES = """
SELECT at, target, act, before, after, author FROM journal
 WHERE target = ANY($1) AND act IN ('rate', 'limit') AND before IS DISTINCT FROM after
   AND before IS NOT NULL AND after IS NOT NULL AND at >= $2 AND ($3::timestamptz IS NULL OR at <= $3)
 ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class Minute:
    """What left from one number within one minute, by the answers. `number`: Meta's id; '' when it was removed."""

    minute: datetime
    number: str
    tries: int
    accepted: int
    refused: int
    throttled: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Grant:
    """What a number may send, in messages/s, as it stands now."""

    id: str
    display: str
    rate: float
    limit: float


@dataclass(frozen=True, slots=True)
class Expired:
    """Rows that expired with this last refusal (None: none), tried or not."""

    code: int | None
    tried: bool
    rows: int


async def minutes(db: Executor, campaign_id: int, since: datetime, throttles: list[int]) -> list[Minute]:
    """The time line, oldest first. `since`: when the campaign was made; `throttles`: codes that only say slower."""
    rows = await db.fetch(TIMES, campaign_id, since, throttles, timeout=STATEMENT_SECONDS)
    return [Minute(*row) for row in rows]


async def grants(db: Executor, campaign_id: int) -> list[Grant]:
    """Of all numbers that have sent for it, or may."""
    return [Grant(*row) for row in await db.fetch(GRANTS, campaign_id, timeout=STATEMENT_SECONDS)]


async def pace_changes(
    db: Executor, numbers: list[str], since: datetime | None, until: datetime | None
) -> list[PaceChange]:
    """What was set of these numbers' rates and limits, oldest first. `since` None: the campaign has not begun."""
    if since is None:
        return []
    return [PaceChange(*row) for row in await db.fetch(PACE_CHANGES, numbers, since, until)]


async def suppressed(db: Executor, campaign_id: int) -> dict[str, int]:
    """Suppressed rows by the source of their suppression."""
    rows = await db.fetch(SUPPRESSED, campaign_id, timeout=STATEMENT_SECONDS)
    return {row[0]: row[1] for row in rows}


async def expired(db: Executor, campaign_id: int) -> list[Expired]:
    """Expired rows by what was last heard of them."""
    return [Expired(*row) for row in await db.fetch(EXPIRED, campaign_id, timeout=STATEMENT_SECONDS)]


async def created_at(db: Executor, campaign_id: int) -> datetime:
    """When the campaign was made."""
    at: datetime = await db.fetchval("SELECT created_at FROM campaign WHERE campaign_id = $1", campaign_id)
    return at
