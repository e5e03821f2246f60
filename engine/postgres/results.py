"""Facts about tries that left: whoever brings them, whenever, they are recorded and applied by (row, try)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.postgres.pool import Executor

# Before APPLY, and apart from it: a statement sees what was committed when it began, not what it waited for.
# With the rows locked first, APPLY sees every try that another batch or a status has recorded about them.
LOCK = """
SELECT count(*) FROM (SELECT 1 FROM recipient WHERE id = ANY($1) ORDER BY id FOR UPDATE) locked
"""

# $1 ids  $2 n  $3 numbers  $4 epochs  $5 sent_at  $6 answered_at  $7 outcomes  $8 codes  $9 wamids  $10 raw
# $11 wanted states  $12 next_attempt_at  $13 attempts spent (0/1)  $14 true when this batch may have been stored before
APPLY = """
WITH f AS MATERIALIZED (  -- one record for each try: no fact twice, and `unknown` only while nothing better is known
  SELECT f.* FROM unnest($1::bigint[], $2::int[], $3::int[], $4::bigint[], $5::timestamptz[], $6::timestamptz[],
                         $7::text[], $8::int[], $9::text[], $10::text[], $11::"char"[], $12::timestamptz[], $13::int[])
    AS f(id, n, number_id, epoch, sent_at, answered_at, outcome, code, wamid, raw, wanted, at, spent)
   WHERE NOT (($14 OR f.outcome = 'unknown')
              AND EXISTS (SELECT FROM try t WHERE t.recipient_id = f.id AND t.n = f.n AND t.outcome = f.outcome))),
k AS MATERIALIZED (SELECT id, lane_id, state, tries FROM recipient WHERE id = ANY($1)),
v AS MATERIALIZED (
  SELECT k.id, k.lane_id, k.state, k.tries, f.n, f.outcome, f.code, f.at,
         -- what was sent back for a reason wider than its row spends nothing
         CASE WHEN f.outcome = 'accepted' AND b.was AND k.state <> 'f' THEN 0 ELSE f.spent END AS spent,
         f.n = k.tries AS newest,
         f.outcome = 'accepted' AND b.was AS refused,
         CASE
           WHEN f.outcome = 'accepted' AND b.was THEN k.state  -- its `failed` was quicker: it sent the row on already
           WHEN f.outcome = 'accepted' THEN  -- proof: it settles the row wherever it stands before `sent`
             CASE WHEN k.state IN ('p', 'c', 's', 'u', 'x', 'z', 'k') OR k.state = 'a' AND f.wanted = 't'
                  THEN f.wanted ELSE k.state END
           WHEN f.n <> k.tries THEN k.state  -- no or not known, about an earlier try: recorded only
           WHEN f.outcome = 'unknown' THEN CASE k.state WHEN 's' THEN 'u'::"char" ELSE k.state END
           WHEN k.state NOT IN ('s', 'u') THEN k.state
           WHEN f.wanted = 'p' AND c.state = 'cancelled' THEN 'k'::"char"
           ELSE f.wanted END AS new
    FROM k JOIN f USING (id)
    CROSS JOIN LATERAL (  -- not asked about the usual row, whose first news this is
      SELECT NOT (k.state IN ('s', 'u') AND f.n = k.tries)
             AND EXISTS (SELECT FROM try t WHERE t.recipient_id = f.id AND t.n = f.n AND t.outcome = 'failed_later')
             AS was) b
    JOIN lane l ON l.lane_id = k.lane_id JOIN campaign c ON c.campaign_id = l.campaign_id),
moved AS (
  UPDATE recipient r SET
         state = v.new,
         next_attempt_at = CASE WHEN v.new = 'p' THEN CASE WHEN v.state = 'p' THEN r.next_attempt_at ELSE v.at END END,
         in_flight = CASE WHEN v.new IN ('c', 's', 'u') THEN r.in_flight END,
         attempts = r.attempts + CASE WHEN v.newest THEN v.spent ELSE 0 END,
         code = CASE WHEN v.new = v.state THEN r.code WHEN v.new IN ('p', 'f') THEN v.code END,
         resend = r.resend AND v.new = v.state,  -- news settles what somebody wanted to risk
         moved_at = CASE WHEN v.new = v.state THEN r.moved_at ELSE now() END
    FROM v
   WHERE r.id = v.id AND r.id = ANY(ARRAY(SELECT id FROM v WHERE new <> state OR newest AND spent > 0))),
taken AS MATERIALIZED (  -- tries that Meta took, of the few rows that have had more than one
  SELECT recipient_id AS id, n FROM try
   WHERE recipient_id = ANY(ARRAY(SELECT id FROM v WHERE outcome = 'accepted' AND tries > 1))
   GROUP BY 1, 2
  HAVING bool_or(outcome IN ('accepted', 'proven')) AND NOT bool_or(outcome = 'failed_later')),
doubled AS (
  SELECT lane_id FROM v
   WHERE outcome = 'accepted' AND EXISTS (SELECT FROM taken t WHERE t.id = v.id AND t.n <> v.n)
     AND NOT EXISTS (SELECT FROM taken t WHERE t.id = v.id AND t.n = v.n)),  -- a status was quicker, and counted it
recorded AS (
  INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, answered_at, outcome, code, wamid, raw)
  SELECT id, n, number_id, epoch, sent_at, answered_at, outcome, code, wamid, raw FROM f
  RETURNING 1),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, state, new, count(*) FROM v WHERE new <> state GROUP BY 1, 2, 3),
tallied AS (
  INSERT INTO tally_delta (lane_id, what, code, n)
  SELECT lane_id, 'A'::"char", 0, sum(spent) FROM v WHERE newest AND spent > 0 GROUP BY 1
  UNION ALL SELECT lane_id, 'K', 0, count(*) FROM v
             WHERE outcome = 'accepted' AND NOT refused AND state IN ('p', 'c', 's', 'u', 'x', 'z', 'k') GROUP BY 1
  UNION ALL SELECT lane_id, 'R', code, count(*) FROM v WHERE outcome = 'refused' AND code IS NOT NULL GROUP BY 1, 3
  UNION ALL SELECT lane_id, 'F', code, count(*) FROM v
             WHERE new = 'f' AND state <> 'f' AND code IS NOT NULL GROUP BY 1, 3
  UNION ALL SELECT lane_id, 'C', 0, count(*) FROM doubled GROUP BY 1)
SELECT count(*) FROM recorded
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known about one try. `wanted`: the letter of the state that its row should take."""

    id: int
    n: int
    number_id: int
    epoch: int
    sent_at: datetime
    answered_at: datetime | None
    outcome: str
    code: int | None
    wamid: str | None
    raw: str | None
    wanted: str
    at: datetime | None
    spent: int


async def apply(db: Executor, facts: Sequence[Fact], *, repeated: bool = False) -> int:
    """Record and apply a batch inside the caller's transaction; at most one fact for a row. Returns how many were
    recorded.

    `repeated`: the batch may have been stored before (its answer was lost); nothing is then done twice.
    """
    await db.execute(LOCK, [f.id for f in facts])
    columns = list(
        zip(
            *(
                (f.id, f.n, f.number_id, f.epoch, f.sent_at, f.answered_at, f.outcome, f.code, f.wamid, f.raw,
                 f.wanted.encode(), f.at, f.spent)
                for f in facts
            ),
            strict=True,
        )
    )  # fmt: skip
    return int(await db.fetchval(APPLY, *columns, repeated))
