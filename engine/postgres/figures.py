"""Figures of rows in flight, for screens and alerts. Asked every few seconds by the engine, never by a screen."""

from dataclasses import dataclass
from datetime import datetime

from engine.domain.snapshot import OldTransaction
from engine.postgres.pool import Executor

# Number by number: of a table without statistics the planner believes that all of it is in flight.
IN_FLIGHT = """
SELECT n.number_id,
       count(*) FILTER (WHERE state = 'u') AS unknown,
       count(*) FILTER (WHERE state = 's' AND age >= 120 AND age < 300) AS to_5m,
       count(*) FILTER (WHERE state = 's' AND age >= 300 AND age < 1800) AS to_30m,
       count(*) FILTER (WHERE state = 's' AND age >= 1800) AS over_30m,
       coalesce(max(age) FILTER (WHERE state = 's'), 0) AS oldest,
       count(*) FILTER (WHERE state = 's' AND age < 120) AS fresh,
       count(*) FILTER (WHERE state = 'c') AS claimed
  FROM number n CROSS JOIN LATERAL (
       SELECT state, extract(epoch FROM clock_timestamp() - moved_at)::double precision AS age
         FROM recipient WHERE in_flight = n.number_id OFFSET 0) r
 GROUP BY 1
"""

# Two probes of an index for each lane, whatever the size of the audience.
DUE = """
SELECT l.lane_id, l.campaign_id
  FROM campaign c JOIN lane l USING (campaign_id)
 WHERE c.state = 'running' AND l.hold IS NULL AND EXISTS (
       SELECT FROM recipient r WHERE r.lane_id = l.lane_id AND r.next_attempt_at <= now())
"""

LAST_STATUSES = "SELECT number, at FROM webhook_seen"

# An unprivileged role sees its own sessions only, which are the ones that it can do something about.
OLDEST_TRANSACTION = """
SELECT pid, extract(epoch FROM clock_timestamp() - xact_start)::float8 AS age,
       coalesce(application_name, '') AS application
  FROM pg_stat_activity
 WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
   AND backend_xmin IS NOT NULL AND xact_start IS NOT NULL
 ORDER BY xact_start LIMIT 1
"""

# Asked only while our commits wait: it stops the server's lock table for a moment. A chain is followed to its head.
BLOCKER = """
WITH RECURSIVE waiting (pid) AS (
  SELECT pid FROM pg_stat_activity
   WHERE datname = current_database() AND wait_event_type = 'Lock'
   UNION
  SELECT unnest(pg_blocking_pids(w.pid)) FROM waiting w)
SELECT a.pid, extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, a.state_change))::float8 AS age,
       coalesce(a.application_name, '') AS application
  FROM waiting w JOIN pg_stat_activity a USING (pid)
 WHERE cardinality(pg_blocking_pids(a.pid)) = 0
 ORDER BY age DESC NULLS LAST LIMIT 1
"""

# By key, not by a join: the planner would rather read the whole table. A row that was sent twice counts once.
DELIVERED = """
WITH sample AS MATERIALIZED (
  SELECT recipient_id FROM try
   WHERE recorded_at <= now() - make_interval(secs => $1)
     AND recorded_at > now() - make_interval(secs => $1) - interval '5 minutes'
     AND outcome = 'accepted' LIMIT 2000)
SELECT l.campaign_id, count(*) AS sends, count(*) FILTER (WHERE r.state IN ('d', 'r')) AS delivered
  FROM recipient r JOIN lane l USING (lane_id)
 WHERE r.id = ANY(ARRAY(SELECT recipient_id FROM sample))
 GROUP BY 1
"""

PLANNED = "SELECT campaign_id, planned FROM campaign"


@dataclass(frozen=True, slots=True)
class InFlight:
    """One number's rows that are neither pending nor settled. Ages of `sending` rows: counts by band, oldest in s."""

    unknown: int
    to_5m: int
    to_30m: int
    over_30m: int
    oldest: float
    fresh: int = 0
    """`sending` for less than two minutes."""
    claimed: int = 0

    @property
    def stuck(self) -> int:
        """Sending for more than two minutes."""
        return self.to_5m + self.to_30m + self.over_30m


async def planned(db: Executor) -> dict[int, int]:
    """Rows that each campaign was given, by campaign_id."""
    return {row["campaign_id"]: row["planned"] for row in await db.fetch(PLANNED)}


async def in_flight(db: Executor) -> dict[int, InFlight]:
    """By number_id."""
    rows = await db.fetch(IN_FLIGHT)
    return {
        r["number_id"]: InFlight(
            r["unknown"], r["to_5m"], r["to_30m"], r["over_30m"], r["oldest"], r["fresh"], r["claimed"]
        )
        for r in rows
    }


async def due(db: Executor) -> dict[int, int]:
    """The lanes of running campaigns with a row that could be sent now, and their campaigns."""
    return {row["lane_id"]: row["campaign_id"] for row in await db.fetch(DUE)}


async def last_statuses(db: Executor) -> dict[str, datetime]:
    """When the latest status of each number was received, by Meta's number id."""
    return {row["number"]: row["at"] for row in await db.fetch(LAST_STATUSES)}


async def oldest_transaction(db: Executor) -> OldTransaction | None:
    """Whoever else holds a snapshot of this database open for longest."""
    row = await db.fetchrow(OLDEST_TRANSACTION)
    return OldTransaction(row["pid"], row["age"], row["application"]) if row else None


async def blocker(db: Executor) -> OldTransaction | None:
    """Whoever holds the lock that sessions of ours wait for just now."""
    row = await db.fetchrow(BLOCKER)
    return OldTransaction(row["pid"], row["age"] or 0.0, row["application"]) if row else None


async def delivered(db: Executor, older_than_s: float) -> dict[int, tuple[int, int]]:
    """Of a sample of accepted tries that are older, and not by more than five minutes: (sends, delivered or read)
    by campaign_id."""
    rows = await db.fetch(DELIVERED, older_than_s)
    return {row["campaign_id"]: (row["sends"], row["delivered"]) for row in rows}
