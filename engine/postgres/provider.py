"""What the provider says beside statuses: remembered once, kept as events; and what a refusal by webhook reaches."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.domain.management import Event
from engine.postgres.pool import Executor

# Sorted, so that two batches with the same keys wait for each other in one order.
FIRST_TIME = """
INSERT INTO webhook_once (key) SELECT key FROM unnest($1::text[]) AS key ORDER BY key
ON CONFLICT (key) DO NOTHING RETURNING key
"""

FORGET = """
DELETE FROM webhook_once WHERE key = ANY(ARRAY(
  SELECT key FROM webhook_once WHERE at < clock_timestamp() - interval '8 days' LIMIT $1))
"""

RECORD = """
INSERT INTO provider_event (at, field, target, event, detail)
SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[])
"""

NUMBERS = """
SELECT number_id, id, account, token_ref FROM number WHERE number_id = ANY($1) OR id = ANY($2)
"""

LANES = """
SELECT l.lane_id, l.country, c.campaign_id, c.template, c.language
  FROM lane l JOIN campaign c USING (campaign_id) WHERE l.lane_id = ANY($1)
"""

# Before breakers and the journal: whoever follows stops locks in this order, too.
REOPEN = """
WITH due AS MATERIALIZED (
  SELECT campaign_id, reason FROM unnest($1::int[], $2::text[]) AS d(campaign_id, reason)),
k AS MATERIALIZED (
  SELECT campaign_id FROM campaign
   WHERE campaign_id = ANY($1) AND state = 'finished' ORDER BY campaign_id FOR UPDATE)
UPDATE campaign c SET state = 'held', reason = due.reason, held_by = $3, finished_at = NULL
  FROM due, k WHERE c.campaign_id = due.campaign_id AND k.campaign_id = c.campaign_id
RETURNING c.name, c.reason
"""

PAGE = 10_000


@dataclass(frozen=True, slots=True)
class Sender:
    """A number of ours: the keys of the breakers over it."""

    number_id: int
    id: str
    account: str
    token_ref: str


@dataclass(frozen=True, slots=True)
class Home:
    """Where a row lives: what the breakers of its template and country are keyed by."""

    lane_id: int
    country: str
    campaign_id: int
    template: str
    language: str


async def first_time(db: Executor, keys: Collection[str]) -> set[str]:
    """Which of the keys were never seen in the last eight days; they are from now on."""
    if not keys:
        return set()
    return {row["key"] for row in await db.fetch(FIRST_TIME, sorted(set(keys)))}


async def forget_old(db: Executor) -> int:
    """Forget keys older than eight days, a page a statement; how many."""
    total = 0
    while gone := int((await db.execute(FORGET, PAGE)).split()[-1]):
        total += gone
    return total


async def record(db: Executor, events: Sequence[tuple[datetime, Event]]) -> None:
    """Keep events, in their order."""
    if events:
        await db.execute(
            RECORD,
            [at for at, _ in events],
            [event.kind for _, event in events],
            [event.target for _, event in events],
            [event.event for _, event in events],
            [event.detail for _, event in events],
        )


async def senders(db: Executor, number_ids: Collection[int], ids: Collection[str] = ()) -> list[Sender]:
    """The numbers of ours by our ids or by Meta's."""
    return [Sender(*row) for row in await db.fetch(NUMBERS, list(set(number_ids)), list(set(ids)))]


async def homes(db: Executor, lanes: Collection[int]) -> dict[int, Home]:
    """Each lane's home."""
    return {row["lane_id"]: Home(*row) for row in await db.fetch(LANES, list(set(lanes)))}


async def reopen(db: Executor, reasons: dict[int, str], held_by: str) -> list[tuple[str, str]]:
    """Finished campaigns, by campaign_id, that have a pending row again become held; name and reason of each."""
    if not reasons:
        return []
    rows = await db.fetch(REOPEN, list(reasons), list(reasons.values()), held_by)
    return sorted((row["name"], row["reason"]) for row in rows)
