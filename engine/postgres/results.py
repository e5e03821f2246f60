"""Facts about tries that left: whoever brings them, whenever, they are recorded and applied by (row, try)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.postgres.pool import Executor

# $1 ids  $2 n  $3 numbers  $4 epochs  $5 sent_at  $6 answered_at  $7 outcomes  $8 codes  $9 wamids  $10 raw
# $11 wanted states  $12 next_attempt_at  $13 attempts spent (0/1)  $14 true when this batch may have been stored before
APPLY = """
WITH f AS MATERIALIZED (
  SELECT * FROM unnest($1::bigint[], $2::int[], $3::int[], $4::bigint[], $5::timestamptz[], $6::timestamptz[],
                       $7::text[], $8::int[], $9::text[], $10::text[], $11::"char"[], $12::timestamptz[], $13::int[])
    AS f(id, n, number_id, epoch, sent_at, answered_at, outcome, code, wamid, raw, wanted, at, spent)),
k AS MATERIALIZED (
  SELECT id, lane_id, state, tries, code FROM recipient WHERE id = ANY($1) ORDER BY id FOR UPDATE),
v AS MATERIALIZED (
  SELECT k.id, k.lane_id, k.state, k.code AS old_code, f.outcome, f.code, f.at, f.spent, f.n = k.tries AS newest,
         CASE
           WHEN f.outcome = 'accepted' THEN  -- proof: it settles the row wherever it stands before `sent`
             CASE WHEN k.state IN ('p', 'c', 's', 'u', 'x', 'z', 'k') OR k.state = 'a' AND f.wanted = 't'
                  THEN f.wanted ELSE k.state END
           WHEN f.n <> k.tries THEN k.state  -- no or not known, about an earlier try: recorded only
           WHEN f.outcome = 'unknown' THEN CASE k.state WHEN 's' THEN 'u'::"char" ELSE k.state END
           WHEN k.state NOT IN ('s', 'u') THEN k.state
           WHEN f.wanted = 'p' AND c.state = 'cancelled' THEN 'k'::"char"
           ELSE f.wanted END AS new
    FROM k JOIN f USING (id)
    JOIN lane l ON l.lane_id = k.lane_id JOIN campaign c ON c.campaign_id = l.campaign_id),
moved AS (
  UPDATE recipient r SET
         state = v.new,
         next_attempt_at = CASE WHEN v.new = 'p' THEN CASE WHEN v.state = 'p' THEN r.next_attempt_at ELSE v.at END END,
         in_flight = CASE WHEN v.new IN ('c', 's', 'u') THEN r.in_flight END,
         attempts = r.attempts + CASE WHEN v.newest THEN v.spent ELSE 0 END,
         code = CASE WHEN v.new = v.state THEN r.code WHEN v.new IN ('p', 'f') THEN v.code END,
         moved_at = CASE WHEN v.new = v.state THEN r.moved_at ELSE now() END
    FROM v
   WHERE r.id = v.id AND r.id = ANY(ARRAY(SELECT id FROM v WHERE new <> state OR newest AND spent > 0))),
recorded AS (
  INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, answered_at, outcome, code, wamid, raw)
  SELECT id, n, number_id, epoch, sent_at, answered_at, outcome, code, wamid, raw FROM f
   WHERE NOT $14 OR NOT EXISTS (SELECT FROM try t WHERE t.recipient_id = f.id AND t.n = f.n AND t.outcome = f.outcome)
  RETURNING recipient_id, n),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, state, new, count(*) FROM v WHERE new <> state GROUP BY 1, 2, 3),
tallied AS (
  INSERT INTO tally_delta (lane_id, what, code, n)
  SELECT lane_id, 'A'::"char", 0, sum(spent) FROM v WHERE newest AND spent > 0 GROUP BY 1
  UNION ALL SELECT lane_id, 'K', 0, count(*) FROM v
             WHERE outcome = 'accepted' AND state IN ('p', 'c', 's', 'u', 'x', 'z', 'k') GROUP BY 1
  UNION ALL SELECT lane_id, 'R', code, count(*) FROM v WHERE outcome = 'refused' AND code IS NOT NULL GROUP BY 1, 3
  UNION ALL SELECT lane_id, 'F', code, count(*) FROM v
             WHERE new = 'f' AND state <> 'f' AND code IS NOT NULL GROUP BY 1, 3
  UNION ALL SELECT lane_id, 'C', 0, count(*) FROM v
             WHERE outcome = 'accepted' AND NOT newest AND state IN ('t', 'a', 'd', 'r') GROUP BY 1)
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
    """Record and apply a batch in one statement; at most one fact for a row. Returns how many tries were recorded.

    `repeated`: the batch may have been stored before (its answer was lost); nothing is then recorded twice.
    """
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
