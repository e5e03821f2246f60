"""Figures of rows in flight, for screens and alerts. Asked every few seconds by the engine, never by a screen."""

from dataclasses import dataclass

from engine.postgres.pool import Executor

IN_FLIGHT = """
SELECT in_flight AS number_id,
       count(*) FILTER (WHERE state = 'u') AS unknown,
       count(*) FILTER (WHERE state = 's' AND age >= 120 AND age < 300) AS to_5m,
       count(*) FILTER (WHERE state = 's' AND age >= 300 AND age < 1800) AS to_30m,
       count(*) FILTER (WHERE state = 's' AND age >= 1800) AS over_30m,
       coalesce(max(age) FILTER (WHERE state = 's'), 0) AS oldest
  FROM (SELECT in_flight, state, extract(epoch FROM clock_timestamp() - moved_at)::double precision AS age
          FROM recipient WHERE in_flight IS NOT NULL) r
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
        r["number_id"]: InFlight(r["unknown"], r["to_5m"], r["to_30m"], r["over_30m"], r["oldest"])
        for r in rows
    }
