"""Campaigns that start by themselves at a time, and lanes that open and close with the clocks of a zone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.domain.quiet import Quiet
from engine.postgres import audience_imports, canaries, controls, journal
from engine.postgres.journal import Entry
from engine.postgres.pool import Executor, Pool

OVERDUE = "overdue"
"""held_by of a campaign that did not start by itself at its time: a person confirms that it still should."""

CONFIRM_AFTER_S = 900.0
"""Seconds after which a start is overdue: what was to go out at noon may be wrong at night."""

DUE = """
SELECT campaign_id FROM campaign
 WHERE state = 'scheduled' AND start_at <= clock_timestamp() ORDER BY start_at, campaign_id
"""

LOCKED = """
SELECT name, planned, start_at, extract(epoch FROM clock_timestamp() - start_at)::float8 AS late
  FROM campaign WHERE campaign_id = $1 AND state = 'scheduled' FOR NO KEY UPDATE
"""

START = "UPDATE campaign SET state = 'running', started_at = clock_timestamp(), reason = NULL WHERE campaign_id = $1"

HOLD = "UPDATE campaign SET state = 'held', reason = $2, held_by = $3 WHERE campaign_id = $1"

STANDING = "SELECT held_by, start_at, started_at FROM campaign WHERE campaign_id = $1"

UNHOLD = "UPDATE campaign SET state = 'scheduled', reason = NULL, held_by = NULL WHERE campaign_id = $1"

CLOCKED = """
SELECT l.lane_id, l.hold IS NOT NULL AS closed, c.quiet_from, c.quiet_to,
       CASE c.zone WHEN 'recipient' THEN l.zone ELSE c.zone END AS zone, clock_timestamp() AS now
  FROM lane l JOIN campaign c USING (campaign_id)
 WHERE c.quiet_from IS NOT NULL AND c.state NOT IN ('finished', 'cancelled')
   AND l.aside IN ('', 'canary') AND (l.hold IS NULL OR l.hold = 'quiet')
 ORDER BY l.lane_id
"""

# What another reason holds by now is left alone.
SET_CLOCKS = """
UPDATE lane l SET hold = CASE WHEN s.quiet THEN 'quiet' END, closes_at = coalesce(s.closes_at, 'infinity')
  FROM unnest($1::int[], $2::bool[], $3::timestamptz[]) AS s(lane_id, quiet, closes_at)
 WHERE l.lane_id = s.lane_id AND (l.hold IS NULL OR l.hold = 'quiet')
   AND (l.hold IS DISTINCT FROM CASE WHEN s.quiet THEN 'quiet' END
        OR l.closes_at IS DISTINCT FROM coalesce(s.closes_at, 'infinity'))
"""


@dataclass(frozen=True, slots=True)
class Started:
    """What became of a campaign at its time. `why_held`: None when it runs."""

    name: str
    why_held: str | None


@dataclass(frozen=True, slots=True)
class Schedule:
    """`held_by`: what the engine held it for; `started_at`: None as long as it has never run."""

    held_by: str | None
    start_at: datetime | None
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class ClockedLane:
    """A lane with quiet hours, as it stands at `now` by the database's clock."""

    lane_id: int
    closed: bool
    quiet: Quiet
    zones: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Clock:
    """How a lane should stand: quiet now, or open until `closes_at` (None: for ever)."""

    lane_id: int
    quiet: bool
    closes_at: datetime | None


async def start_due(pool: Pool) -> list[Started]:
    """Start every campaign whose time has come; hold those that a person has to look at first."""
    done = []
    for row in await pool.fetch(DUE):
        async with pool.acquire() as db, db.transaction():
            started = await _start(db, row["campaign_id"])
        if started is not None:
            done.append(started)
    return done


async def _start(db: Executor, campaign_id: int) -> Started | None:
    row = await db.fetchrow(LOCKED, campaign_id)
    if row is None:  # a person was quicker
        return None
    name = str(row["name"])
    why = await _why_not(db, campaign_id, row["planned"], row["start_at"], row["late"])
    entry = Entry("auto", "engine", "start campaign", name, why, "scheduled", "held" if why else "running")
    if why is None:
        await canaries.prepare(db, campaign_id)
        await controls.prepare(db, campaign_id)
        await db.execute(START, campaign_id)
    else:
        await db.execute(HOLD, campaign_id, f"{why}: `tidegate campaign start {name} --confirm`", OVERDUE)
    await journal.write(db, entry)
    return Started(name, why)


async def _why_not(
    db: Executor, campaign_id: int, planned: int, start_at: datetime, late: float
) -> str | None:
    at = start_at.isoformat(timespec="minutes")
    if late > CONFIRM_AFTER_S:
        return f"its start at {at} is overdue by {late / 60:.0f} min"
    if planned == 0:
        return f"it had no recipients at its start, {at}"
    if doubts := await audience_imports.doubts(db, campaign_id):
        return f"at its start, {at}, nobody had confirmed that in {doubts[0].file} {doubts[0].reason}"
    return None


async def schedule(db: Executor, campaign_id: int) -> Schedule:
    """Of a campaign that exists."""
    return Schedule(*(await db.fetchrow(STANDING, campaign_id) or ()))


async def unhold(db: Executor, campaign_id: int) -> None:
    """A person has confirmed an overdue start: it stands as if it were scheduled."""
    await db.execute(UNHOLD, campaign_id)


async def clocked_lanes(db: Executor) -> list[ClockedLane]:
    """All lanes with quiet hours that nothing else holds."""
    return [
        ClockedLane(lane_id, closed, Quiet(begins, ends), zone, now)
        for lane_id, closed, begins, ends, zone, now in await db.fetch(CLOCKED)
    ]


async def set_clocks(db: Executor, clocks: Sequence[Clock]) -> int:
    """Let lanes stand as told; how many changed. Engines are told."""
    changed = int(
        (
            await db.execute(
                SET_CLOCKS,
                [c.lane_id for c in clocks],
                [c.quiet for c in clocks],
                [c.closes_at for c in clocks],
            )
        ).split()[-1]
    )
    if changed:
        await journal.tell(db)
    return changed
