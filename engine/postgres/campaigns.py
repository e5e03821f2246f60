"""Campaigns as people keep them: created, started, paused, cancelled; and how they stand now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from engine.author import ENGINE
from engine.domain.campaign import shown
from engine.domain.canary import Canary
from engine.domain.closing import DEFAULT_MAX_FAILED
from engine.domain.content import Content
from engine.domain.control import Control, ControlStanding
from engine.domain.quiet import Quiet
from engine.domain.recipient import State
from engine.postgres import controls
from engine.postgres.books import Tallies
from engine.postgres.contents import content_text
from engine.postgres.pool import Executor, Pool
from engine.postgres.rows import Example

CREATE = """
INSERT INTO campaign (name, random_id, template, language, category, body, priority, deadline, unknown_policy,
                      unknown_after, max_attempts, try_budget, max_failed, content, start_at, quiet_from, quiet_to,
                      zone, retry_marketing_limit, canary_rows, canary_share, canary_max_failed, canary_wait,
                      control_phones, control_values, control_every, state)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
        $24, $25::text::jsonb, $26, CASE WHEN $15::timestamptz IS NULL THEN 'draft' ELSE 'scheduled' END)
ON CONFLICT (name) DO NOTHING RETURNING campaign_id
"""

LINK = """
INSERT INTO campaign_number (campaign_id, number_id)
SELECT $1, number_id FROM number WHERE id = ANY($2) ORDER BY number_id
RETURNING (SELECT id FROM number n WHERE n.number_id = campaign_number.number_id)
"""

# An import locks it too when it is kept: what stands there after the lock is all that there is.
LOCK = "SELECT FROM campaign WHERE campaign_id = $1 FOR NO KEY UPDATE"

STATE = "SELECT campaign_id, state, reason, planned, pause_all FROM campaign WHERE name = $1"

# Three for each row, unless somebody has said otherwise; by the books, as the engine counts them.
TRIES_LEFT = """
SELECT coalesce(c.try_budget, 3 * c.planned) - coalesce((
         SELECT sum(s.n) FROM lane l JOIN (SELECT lane_id, what, n FROM tally
                                           UNION ALL SELECT lane_id, what, n FROM tally_delta) s USING (lane_id)
          WHERE l.campaign_id = c.campaign_id AND s.what = 'T'), 0)
  FROM campaign c WHERE c.name = $1
"""

# Guarded by the state it leaves: of two starts one moves the row, the other finds it moved.
MOVE = """
UPDATE campaign SET state = $3, reason = $4, pause_all = false, held_by = NULL,
       started_at = CASE WHEN $3 = 'running' THEN coalesce(started_at, clock_timestamp()) ELSE started_at END
 WHERE name = $1 AND state = ANY($2) AND (planned > 0 OR $3 <> 'running')
RETURNING campaign_id
"""

LANES = "SELECT lane_id FROM lane WHERE campaign_id = $1 ORDER BY lane_id"

# Locked in id order; the page itself is taken in the index's order, without a sort of all that is pending.
CANCEL_PENDING = """
WITH k AS MATERIALIZED (
  SELECT id, lane_id FROM recipient
   WHERE id = ANY(ARRAY(SELECT id FROM recipient WHERE lane_id = $1 AND next_attempt_at IS NOT NULL
                         ORDER BY next_attempt_at, id LIMIT $2))
     AND next_attempt_at IS NOT NULL
   ORDER BY id FOR UPDATE),
moved AS (
  UPDATE recipient SET state = 'k', next_attempt_at = NULL, code = NULL, resend = false, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM k))),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'p', 'k', count(*) FROM k GROUP BY lane_id)
SELECT count(*) FROM k
"""

CANCEL_CLAIMED = """
WITH k AS MATERIALIZED (
  SELECT id, lane_id FROM recipient
   WHERE in_flight = $1 AND id > $2 AND lane_id = ANY($3) AND state = 'c'
   ORDER BY in_flight, id LIMIT $4 FOR UPDATE),
moved AS (
  UPDATE recipient SET state = 'k', in_flight = NULL, code = NULL, resend = false, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM k))),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'c', 'k', count(*) FROM k GROUP BY lane_id)
SELECT count(*) AS n, max(id) AS last FROM k
"""

NUMBERS_OF = "SELECT number_id FROM campaign_number WHERE campaign_id = $1 ORDER BY 1"

# By the books: looking for such rows themselves would read the dead index entries of all that was cancelled.
CANCELLED_OPEN = """
SELECT l.campaign_id
  FROM (SELECT lane_id, state, n FROM book
        UNION ALL SELECT lane_id, t, n FROM book_delta
        UNION ALL SELECT lane_id, f, -n FROM book_delta) s
  JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
 WHERE c.state = 'cancelled' AND s.state IN ('p', 'c')
 GROUP BY 1 HAVING sum(s.n) > 0
"""

VIEW = """
SELECT c.campaign_id, c.name, c.state, c.reason, c.planned, c.template, c.language, c.priority, c.deadline,
       c.unknown_policy, c.max_failed, c.started_at, c.finished_at, c.start_at, c.quiet_from, c.quiet_to, c.canary,
       c.held_by, ARRAY(SELECT n.paused_by FROM campaign_number u JOIN number n USING (number_id)
                         WHERE u.campaign_id = c.campaign_id) AS paused_by,
       CASE c.zone WHEN 'recipient' THEN ARRAY(SELECT DISTINCT zone FROM lane l WHERE l.campaign_id = c.campaign_id)
                   ELSE ARRAY[c.zone] END AS zones,
       ARRAY(SELECT n.id FROM campaign_number u JOIN number n USING (number_id)
              WHERE u.campaign_id = c.campaign_id ORDER BY n.number_id) AS numbers,
       (SELECT coalesce(sum(coalesce(n.ceiling, n.rate)), 0) FROM campaign_number u JOIN number n USING (number_id)
         WHERE u.campaign_id = c.campaign_id AND n.paused_at IS NULL) AS rate
  FROM campaign c
 WHERE CASE WHEN $1::text IS NULL THEN c.control_of IS NULL ELSE c.name = $1 END
 ORDER BY c.campaign_id
"""


@dataclass(frozen=True, slots=True)
class Draft:
    """A campaign to be. `body`: columns for its variables, in order. `max_failed` 0..1, `unknown_after` in seconds,
    `try_budget` None: three per row."""

    name: str
    numbers: tuple[str, ...]
    template: str
    language: str
    body: tuple[str, ...] = ()
    category: str = "utility"
    priority: int = 0
    deadline: datetime | None = None
    unknown_policy: str = "hold"
    unknown_after: float = 1800.0
    max_attempts: int = 8
    try_budget: int | None = None
    max_failed: float = DEFAULT_MAX_FAILED
    content: Content | None = None
    """What fills the template, when columns for its body are not all."""
    start_at: datetime | None = None
    """It is scheduled, and starts by itself then."""
    quiet: Quiet | None = None
    zone: str | None = None
    """Whose clocks tell the quiet hours: a zone's name, or `recipient`."""
    retry_marketing_limit: bool = False
    canary: Canary | None = None
    control: Control | None = None
    """Phones of the house that get it first, checked."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What an act needs to know of a campaign."""

    campaign_id: int
    state: str
    reason: str | None
    planned: int
    pause_all: bool


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """One campaign with its settings. `rate`: messages/s that its numbers may send together now."""

    campaign_id: int
    name: str
    state: str
    reason: str | None
    planned: int
    template: str
    language: str
    priority: int
    deadline: datetime | None
    unknown_policy: str
    max_failed: float
    started_at: datetime | None
    finished_at: datetime | None
    numbers: tuple[str, ...]
    rate: float
    start_at: datetime | None = None
    quiet: Quiet | None = None
    zones: tuple[str, ...] = ()
    """Whose clocks tell the quiet hours; each entry may be several zones, with blanks between."""
    canary: str | None = None
    """sending, passed, failed; None without one, or before the start."""
    held_by: str | None = None
    paused_by: tuple[str | None, ...] = ()
    """Of each of its numbers, who paused it."""

    @property
    def word(self) -> str:
        """Its state in the word that people read."""
        return shown(self.state, self.held_by, (by not in (None, ENGINE) for by in self.paused_by))


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """A campaign and its books, all of one moment."""

    campaign: CampaignRow
    counts: dict[State, int]
    tallies: Tallies
    examples: Mapping[int, Example] = field(default_factory=dict)
    """By code a row that stands with it; only where one campaign is asked about."""
    late: int | None = None
    """Rows that cannot be met before its deadline as things stand; None without a deadline."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Pending rows by what holds their lane."""
    controls: ControlStanding | None = None
    """Its control phones; only where one campaign is asked about."""


async def create(db: Executor, draft: Draft, random_id: str) -> int | None:
    """The new campaign_id, or None when the name is taken."""
    canary, control = draft.canary or Canary(), draft.control or Control(())
    campaign_id: int | None = await db.fetchval(
        CREATE, draft.name, random_id, draft.template, draft.language, draft.category, list(draft.body),
        draft.priority, draft.deadline, draft.unknown_policy, timedelta(seconds=draft.unknown_after),
        draft.max_attempts, draft.try_budget, draft.max_failed, content_text(draft.content), draft.start_at,
        draft.quiet.begins if draft.quiet else None, draft.quiet.ends if draft.quiet else None,
        draft.zone if draft.quiet else None, draft.retry_marketing_limit, canary.rows, canary.share,
        canary.max_failed, timedelta(seconds=canary.wait_s), list(control.phones),
        controls.values_text(control.values),
        timedelta(seconds=control.every_s) if control.every_s else None,
    )  # fmt: skip
    return campaign_id


async def link(db: Executor, campaign_id: int, numbers: Sequence[str]) -> set[str]:
    """Which of the numbers exist and are linked now."""
    return {row["id"] for row in await db.fetch(LINK, campaign_id, list(numbers))}


async def lock(db: Executor, campaign_id: int) -> None:
    """Nobody moves it, nor keeps an import into it, before the transaction ends."""
    await db.execute(LOCK, campaign_id)


async def standing(db: Executor, name: str) -> Standing | None:
    """The campaign as it stands, unlocked."""
    row = await db.fetchrow(STATE, name)
    return Standing(*row) if row else None


async def deadline(db: Executor, campaign_id: int) -> datetime | None:
    """When its rows expire."""
    at: datetime | None = await db.fetchval(
        "SELECT deadline FROM campaign WHERE campaign_id = $1", campaign_id
    )
    return at


async def retries_marketing_limit(db: Executor, campaign_id: int) -> bool:
    """Whether it was created with --retry-marketing-limit."""
    return bool(
        await db.fetchval("SELECT retry_marketing_limit FROM campaign WHERE campaign_id = $1", campaign_id)
    )


async def tries_left(db: Executor, name: str) -> int | None:
    """What its try budget still holds; negative when more were made."""
    left = await db.fetchval(TRIES_LEFT, name)
    return None if left is None else int(left)


async def move(db: Executor, name: str, leaves: Sequence[str], state: str, reason: str | None) -> int | None:
    """Set the state if it is one of `leaves`; the campaign_id, or None when nothing moved.

    An empty campaign never becomes running.
    """
    moved: int | None = await db.fetchval(MOVE, name, list(leaves), state, reason)
    return moved


async def cancel_rows(pool: Pool, campaign_id: int, page: int = 2000) -> int:
    """Pending and claimed rows become cancelled, a page a transaction; returns how many. Safe to repeat.

    Every locked row is pending or claimed when it moves. Rows that return from their owner while this runs
    are caught by another pass, here or in the standing job.
    """
    lanes = [row["lane_id"] for row in await pool.fetch(LANES, campaign_id)]
    numbers = [row["number_id"] for row in await pool.fetch(NUMBERS_OF, campaign_id)]
    total = 0
    while True:
        moved = 0
        for lane in lanes:
            while taken := await pool.fetchval(CANCEL_PENDING, lane, page):
                moved += taken
        for number_id in numbers:
            last = 0
            while (row := await pool.fetchrow(CANCEL_CLAIMED, number_id, last, lanes, page)) and row["n"]:
                moved, last = moved + row["n"], row["last"]
        total += moved
        if not moved:
            return total


async def sweep_cancelled(pool: Pool) -> int:
    """A standing job: rows that came back to pending after their campaign was cancelled."""
    rows = await pool.fetch(CANCELLED_OPEN)
    return sum([await cancel_rows(pool, row["campaign_id"]) for row in rows])


async def view(db: Executor, name: str | None = None) -> list[CampaignRow]:
    """All campaigns but the rounds of control phones, or one by its name, whichever it is."""
    found = []
    for row in await db.fetch(VIEW, name):
        values = dict(row.items())
        values["numbers"], values["paused_by"] = tuple(values["numbers"]), tuple(values["paused_by"])
        begins, ends, zones = values.pop("quiet_from"), values.pop("quiet_to"), values.pop("zones")
        values["quiet"] = Quiet(begins, ends) if begins is not None else None
        values["zones"] = tuple(zones) if begins is not None else ()
        found.append(CampaignRow(**values))
    return found
