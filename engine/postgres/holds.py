"""Campaigns that the engine holds by itself, with the word for what held them, so that its end can resume them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from engine.postgres import journal
from engine.postgres.pool import Executor, Pool

HOLD = """
UPDATE campaign SET state = 'held', reason = $2, held_by = $3
 WHERE campaign_id = $1 AND (state = 'running' OR state = 'held' AND held_by = $3 AND reason IS DISTINCT FROM $2)
RETURNING name
"""

RESUME = """
UPDATE campaign SET state = 'running', reason = NULL, held_by = NULL
 WHERE campaign_id = $1 AND state = 'held' AND held_by = $2
RETURNING name
"""

# Rarely asked about more than a campaign or two, and acts are few: the journal needs no index for it.
STANDINGS = """
SELECT l.lane_id, c.campaign_id, c.state,
       (SELECT max(j.at) FROM journal j WHERE j.target = c.name AND j.act = 'resume campaign') AS resumed_at
  FROM lane l JOIN campaign c USING (campaign_id) WHERE l.lane_id = ANY($1)
"""

FAILURES = "failures"
BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a lane's campaign stands, and when it was last let go on."""

    lane_id: int
    campaign_id: int
    state: str
    resumed_at: datetime | None


async def standings(db: Executor, lanes: Collection[int]) -> dict[int, Standing]:
    """By lane."""
    return {row["lane_id"]: Standing(*row) for row in await db.fetch(STANDINGS, list(lanes))}


async def hold(pool: Pool, campaign_id: int, reason: str, held_by: str) -> str | None:
    """Hold a running campaign; its name, or None when it was not running. Its rows stay pending."""
    async with pool.acquire() as db, db.transaction():
        name: str | None = await db.fetchval(HOLD, campaign_id, reason, held_by)
        if name is not None:
            entry = journal.Entry("auto", "engine", "hold campaign", name, reason, "running", "held")
            await journal.write(db, entry)
    return name


async def resume(pool: Pool, campaign_id: int, held_by: str, reason: str) -> str | None:
    """Let a campaign go on that was held by exactly this; its name, or None."""
    async with pool.acquire() as db, db.transaction():
        name: str | None = await db.fetchval(RESUME, campaign_id, held_by)
        if name is not None:
            entry = journal.Entry("auto", "engine", "resume campaign", name, reason, "held", "running")
            await journal.write(db, entry)
    return name
