"""Rows whose answer is not known, settled by policy: judged first, without a lock, then moved if nothing changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.postgres.pool import Executor

CAMPAIGN = "SELECT campaign_id FROM campaign WHERE name = $1"

NUMBERS = "SELECT number_id, id FROM number ORDER BY number_id"

# A status may still be on its way while bodies wait to be applied, or while a number's webhooks are silent.
CALM = """
SELECT NOT EXISTS (SELECT FROM inbox_work WHERE received_at < clock_timestamp() - interval '60 seconds') AS drained,
       ARRAY(SELECT number FROM webhook_seen WHERE at > clock_timestamp() - interval '60 seconds') AS heard
"""

# In the order of the index: no page sorts all that is in flight. `resend` is once: the evidence row says that it was.
# $7: a person's word in place of the campaign's policy.
JUDGE = """
SELECT r.id, r.tries, r.moved_at, CASE
    WHEN r.moved_at + greatest(c.unknown_after, make_interval(secs => $4)) > clock_timestamp() THEN 'waiting'
    WHEN NOT $5 THEN 'waiting'
    WHEN coalesce($7, c.unknown_policy) = 'assume_sent' THEN 'sent'
    WHEN coalesce($7, c.unknown_policy) = 'resend' AND c.state <> 'cancelled' AND NOT EXISTS (
      SELECT FROM try t WHERE t.recipient_id = r.id AND t.outcome = 'resend_decided') THEN 'pending'
    ELSE 'unknown' END AS verdict,
       r.moved_at + greatest(c.unknown_after, make_interval(secs => $4)) AS until,
       coalesce($7, c.unknown_policy) AS policy
  FROM recipient r JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
 WHERE r.in_flight = $1 AND r.id > $2 AND r.state = 'u' AND ($6::int IS NULL OR l.campaign_id = $6)
 ORDER BY r.in_flight, r.id LIMIT $3
"""

# A row that evidence has moved since it was judged is left alone. A cancelled campaign sends nothing again.
SETTLE = """
WITH v AS MATERIALIZED (
  SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::"char"[]) AS v(id, moved_at, wanted)),
k AS MATERIALIZED (
  SELECT r.id, r.lane_id, r.tries, r.number_id, r.epoch, r.moved_at FROM recipient r
   WHERE r.id = ANY($1) AND r.state = 'u' ORDER BY r.id FOR UPDATE),
w AS MATERIALIZED (
  SELECT k.*, v.wanted FROM k JOIN v USING (id, moved_at)
    JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
   WHERE v.wanted = 't' OR c.state <> 'cancelled'),
resent AS (
  UPDATE recipient SET state = 'p', next_attempt_at = now(), in_flight = NULL, resend = true, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM w WHERE wanted = 'p'))),
assumed AS (
  UPDATE recipient SET state = 't', in_flight = NULL, code = NULL, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM w WHERE wanted = 't'))),
recorded AS (
  INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome, raw)
  SELECT id, tries, number_id, coalesce(epoch, 0), moved_at,
         CASE wanted WHEN 'p' THEN 'resend_decided' ELSE 'assumed_sent' END, $4
    FROM w WHERE number_id IS NOT NULL),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'u', wanted, count(*) FROM w GROUP BY lane_id, wanted),
tallied AS (
  INSERT INTO tally_delta (lane_id, what, n)
  SELECT lane_id, 'S'::"char", count(*) FROM w WHERE wanted = 't' GROUP BY 1
  UNION ALL SELECT lane_id, 'K', count(*) FROM w WHERE wanted = 't' GROUP BY 1)
SELECT count(*) FILTER (WHERE wanted = 't') AS sent, count(*) FILTER (WHERE wanted = 'p') AS pending FROM w
"""

# A number without a living owner: nobody will bring an answer for what it left in `sending`.
COUNT_STUCK = """
SELECT count(*)
  FROM recipient r JOIN lane l USING (lane_id)
 WHERE r.in_flight = $1 AND r.state = 's' AND r.moved_at < clock_timestamp() - make_interval(secs => $2)
   AND ($3::int IS NULL OR l.campaign_id = $3)
   AND NOT EXISTS (SELECT FROM lease o WHERE o.number_id = $1 AND o.released_at IS NULL
                      AND o.expires_at > clock_timestamp())
"""

DOUBT_STUCK = """
WITH k AS MATERIALIZED (
  SELECT id, lane_id, tries, number_id, epoch, moved_at FROM recipient
   WHERE in_flight = $1 AND state = 's' AND moved_at < clock_timestamp() - make_interval(secs => $2)
     AND ($3::int IS NULL OR lane_id = ANY(ARRAY(SELECT lane_id FROM lane WHERE campaign_id = $3)))
     AND NOT EXISTS (SELECT FROM lease o WHERE o.number_id = $1 AND o.released_at IS NULL
                        AND o.expires_at > clock_timestamp())
   ORDER BY in_flight, id LIMIT $4 FOR UPDATE SKIP LOCKED),
moved AS (
  UPDATE recipient SET state = 'u', moved_at = now() WHERE id = ANY(ARRAY(SELECT id FROM k))),
recorded AS (
  INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome, raw)
  SELECT id, tries, $1, coalesce(epoch, 0), moved_at, 'unknown', 'its owner is gone and no answer was recorded' FROM k),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 's', 'u', count(*) FROM k GROUP BY lane_id)
SELECT count(*) FROM k
"""


@dataclass(frozen=True, slots=True)
class Calm:
    """Whether a missing status means anything: the inbox is drained, and which numbers' statuses are arriving."""

    drained: bool
    heard: frozenset[str]


@dataclass(frozen=True, slots=True)
class Judged:
    """A row in unknown. `verdict`: waiting, unknown (it stays), pending (sent once more), sent (assumed). `until`: when
    its window ends, or has ended. `policy`: hold, resend or assume_sent."""

    id: int
    tries: int
    moved_at: datetime
    verdict: str
    until: datetime
    policy: str


async def campaign_id(db: Executor, name: str) -> int | None:
    """None when there is no such campaign."""
    found: int | None = await db.fetchval(CAMPAIGN, name)
    return found


async def all_numbers(db: Executor) -> list[tuple[int, str]]:
    """(number_id, id) of every number: a number with rows in flight cannot be removed."""
    return [(row["number_id"], row["id"]) for row in await db.fetch(NUMBERS)]


async def calm(db: Executor) -> Calm:
    """As of now, by the database's clock."""
    row = await db.fetchrow(CALM)
    assert row is not None
    return Calm(row["drained"], frozenset(row["heard"]))


async def judge(
    db: Executor,
    number_id: int,
    after: int,
    page: int,
    floor: float,
    heard: bool,
    campaign: int | None,
    policy: str | None = None,
) -> list[Judged]:
    """The next unknown rows of a number, in order of id. `heard`: silence about a row may be taken for an answer.
    `policy`: a person's word, in place of the campaign's."""
    rows = await db.fetch(JUDGE, number_id, after, page, floor, heard, campaign, policy)
    return [Judged(*row) for row in rows]


async def settle(db: Executor, rows: Sequence[Judged], why: str) -> tuple[int, int]:
    """Move judged rows that are as they were judged: (assumed sent, put back to be sent once more)."""
    letters = {"sent": b"t", "pending": b"p"}
    row = await db.fetchrow(
        SETTLE, [r.id for r in rows], [r.moved_at for r in rows], [letters[r.verdict] for r in rows], why
    )
    assert row is not None
    return row["sent"], row["pending"]


async def count_stuck(db: Executor, number_id: int, older_than: float, campaign: int | None) -> int:
    """Rows in `sending` for longer than that, in seconds, of a number that nobody owns."""
    return int(await db.fetchval(COUNT_STUCK, number_id, older_than, campaign))


async def doubt_stuck(
    db: Executor, number_id: int, older_than: float, campaign: int | None, page: int
) -> int:
    """A page of those rows becomes unknown; returns how many."""
    return int(await db.fetchval(DOUBT_STUCK, number_id, older_than, campaign, page))
