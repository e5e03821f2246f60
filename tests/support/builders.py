"""Rows for tests, made by SQL with exact books: numbers, campaigns, recipients.

await number(pool, "1060000000001", rate=8)
made = await campaign(pool, "reminder", numbers=["1060000000001"], state="running")
ids = await recipients(pool, made, 100)
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from engine.domain.recipient import State
from engine.postgres.pool import Executor

NUMBER = """
INSERT INTO number (id, display, account, token_ref, provider_limit, rate) VALUES ($1, $2, $3, $4, $5, $6)
RETURNING number_id
"""

CAMPAIGN = """
INSERT INTO campaign (name, random_id, state, template, language, body, unknown_policy, unknown_after, started_at)
VALUES ($1, $2, $3, 'reminder_v2', 'pt_BR', $4, $5, $6, CASE WHEN $3 NOT IN ('draft', 'scheduled') THEN now() END)
RETURNING campaign_id
"""

LINK = "INSERT INTO campaign_number SELECT $1, number_id FROM number WHERE id = ANY($2)"

LANE = """
INSERT INTO lane (campaign_id, country) VALUES ($1, $2)
ON CONFLICT (campaign_id, country, zone, deadline, aside) DO UPDATE SET hold = lane.hold RETURNING lane_id
"""

RECIPIENTS = """
WITH first AS (SELECT count(*) AS n FROM recipient_data WHERE campaign_id = $1),
r AS (
  INSERT INTO recipient (lane_id, state, next_attempt_at, in_flight, number_id, epoch, tries, moved_at, code)
  SELECT $2, $4::"char", CASE WHEN $4 = 'p' THEN now() END, CASE WHEN $4 IN ('c', 's', 'u') THEN $5::int END,
         $5, $6, $7,
         now() - $8::interval, $9::int
    FROM generate_series(1, $3::int)
  RETURNING id),
numbered AS (SELECT id, row_number() OVER (ORDER BY id) + first.n AS nth FROM r, first),
d AS (
  INSERT INTO recipient_data (id, campaign_id, phone, params, line)
  SELECT id, $1, '+55119' || lpad(nth::text, 8, '0'), jsonb_build_object('name', 'Ana'), nth + 1 FROM numbered),
b AS (INSERT INTO book_delta (lane_id, f, t, n) SELECT $2, ' ', $4::"char", $3::int WHERE $3::int > 0),
t AS (INSERT INTO tally_delta (lane_id, what, code, n)
  SELECT $2, 'T'::"char", 0, $7 * $3::int WHERE $7 > 0
  UNION ALL SELECT $2, 'F', $9, $3::int WHERE $4 = 'f' AND $9::int IS NOT NULL
  UNION ALL SELECT $2, 'K', 0, $3::int WHERE $4 IN ('t', 'a', 'd', 'r')),
c AS (UPDATE campaign SET planned = planned + $3::int WHERE campaign_id = $1)
SELECT id FROM r ORDER BY id
"""

TRY = """
INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, answered_at, outcome, code, wamid)
VALUES ($1, $2, $3, 1, now(), now(), $4, $5, $6)
"""


@dataclass(frozen=True, slots=True)
class MadeCampaign:
    """What the other builders need of a campaign."""

    campaign_id: int
    name: str
    lane_id: int


async def number(
    db: Executor,
    id_: str = "106540352242922",
    *,
    rate: float = 64,
    limit: float = 80,
    token: str = "env:TOKEN",
) -> int:
    """A business number; returns number_id."""
    return int(await db.fetchval(NUMBER, id_, "+5511988880001", "WABA1", token, limit, rate))


async def campaign(
    db: Executor,
    name: str = "reminder",
    *,
    numbers: list[str] | None = None,
    state: str = "draft",
    policy: str = "hold",
    unknown_after: float = 1800,
    country: str = "",
    body: list[str] | None = None,
) -> MadeCampaign:
    """A campaign with one lane."""
    campaign_id = await db.fetchval(
        CAMPAIGN, name, secrets.token_hex(6), state, body or [], policy, timedelta(seconds=unknown_after)
    )
    await db.execute(LINK, campaign_id, numbers or [])
    return MadeCampaign(campaign_id, name, await lane(db, campaign_id, country))


async def lane(db: Executor, campaign_id: int, country: str = "") -> int:
    """The campaign's lane of a country; returns lane_id."""
    return int(await db.fetchval(LANE, campaign_id, country))


async def recipients(
    db: Executor,
    made: MadeCampaign,
    n: int,
    *,
    state: State = State.PENDING,
    lane_id: int | None = None,
    number_id: int | None = None,
    epoch: int = 1,
    tries: int | None = None,
    age: float = 0,
    code: int | None = None,
) -> list[int]:
    """`n` rows in `state` that moved there `age` seconds ago, with data, books and tallies; returns their ids.

    States in flight need a `number_id`. `tries` defaults to 0 for rows that never left, else 1.
    """
    never_left = state in (State.PENDING, State.CLAIMED, State.EXPIRED, State.SUPPRESSED, State.CANCELLED)
    rows = await db.fetch(
        RECIPIENTS,
        made.campaign_id,
        lane_id or made.lane_id,
        n,
        state.value.encode(),
        number_id,
        epoch,
        (0 if never_left else 1) if tries is None else tries,
        timedelta(seconds=age),
        code,
    )
    return [row["id"] for row in rows]


async def try_row(
    db: Executor,
    recipient_id: int,
    n: int,
    outcome: str,
    *,
    number_id: int = 1,
    code: int | None = None,
    wamid: str | None = None,
) -> None:
    """One line of evidence."""
    await db.execute(TRY, recipient_id, n, number_id, outcome, code, wamid)
