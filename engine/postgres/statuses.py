"""What statuses prove, applied to rows: facts, so anyone may bring them, however often, in any order."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from engine.domain.errors import STOPS, meaning
from engine.domain.evidence import Evidence, furthest
from engine.domain.message import Token
from engine.domain.recipient import State
from engine.postgres.pool import Executor as Session

# Which try a wamid belongs to. Two fences: the array of a subquery hides its length (many wamids and no statistics
# yet: a scan of all tries), and OFFSET 0 keeps the rows out of a hash join.
FIND_BY_WAMID = """
SELECT f.wamid, f.id, f.n, c.random_id
  FROM (SELECT DISTINCT wamid, recipient_id AS id, n FROM try
         WHERE wamid = ANY(ARRAY(SELECT unnest($1::text[])))) f
  JOIN LATERAL (SELECT lane_id FROM recipient WHERE id = f.id OFFSET 0) r ON true
  JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
"""

# Before APPLY, and apart from it: a statement sees what was committed when it began, not what it waited for.
# With the rows locked first, APPLY sees every try that another batch about them has recorded.
LOCK = """
SELECT count(*) FROM (SELECT 1 FROM recipient WHERE id = ANY($1) ORDER BY id FOR UPDATE) locked
"""

# APPLY joins lists whose lengths the planner cannot know; it guesses one row, and nested loops then compare each
# row with each other (500 statuses: 190 ms against 12).
NO_NESTED_LOOPS = "SET LOCAL enable_nestloop = off"

# $1 ids  $2 n  $3 campaigns' random ids  $4 ranks (0 none, 1 sent, 3 delivered, 4 read)  $5 failed  $6 codes
# $7 wamids  $8 raw  $9 Unix seconds  $10 the refusal reaches beyond the row
APPLY = """
WITH fact AS MATERIALIZED (
  SELECT * FROM unnest($1::bigint[], $2::int[], $3::text[], $4::int[], $5::bool[], $6::int[], $7::text[], $8::text[],
                       $9::float8[], $10::bool[]) WITH ORDINALITY
    AS f(id, n, campaign, rank, failed, code, wamid, raw, at, back, place)),
k AS MATERIALIZED (
  SELECT id, lane_id, state, coalesce(number_id, 0) AS number_id, coalesce(epoch, 0) AS epoch, tries, attempts, code,
         moved_at
    FROM recipient WHERE id = ANY($1)),
home AS MATERIALIZED (
  SELECT l.lane_id, c.random_id, c.name FROM lane l JOIN campaign c USING (campaign_id)
   WHERE l.lane_id = ANY(ARRAY(SELECT DISTINCT lane_id FROM k))),
known AS MATERIALIZED (  -- what is on record about these rows' tries; the usual row (one try, accepted) needs no look
  SELECT recipient_id AS id, n, bool_or(outcome IN ('accepted', 'proven')) AS taken,
         bool_or(outcome = 'accepted') AS spent,
         bool_or(outcome = 'failed_later') AS refused,
         min(sent_at) FILTER (WHERE outcome IN ('accepted', 'unknown')) AS left_at,
         min(number_id) FILTER (WHERE outcome IN ('accepted', 'unknown')) AS left_by
    FROM try
   WHERE recipient_id = ANY(ARRAY(
           SELECT k.id FROM k JOIN fact USING (id)
            WHERE fact.failed OR k.tries > 1 OR k.state IN ('p', 'c', 's', 'u', 'x', 'z', 'k')))
   GROUP BY 1, 2),
ours AS MATERIALIZED (
  SELECT f.*, k.lane_id, k.state, k.number_id, k.epoch, k.tries, coalesce(y.taken, false) AS taken,
         coalesce(y.refused, false) AS refused, coalesce(y.spent, false) AS spent,
         coalesce(y.left_by, k.number_id) AS left_by,
         coalesce(y.left_at, CASE WHEN f.n = k.tries AND k.state = 's' THEN k.moved_at END, to_timestamp(f.at), now())
           AS left_at,
         -- `sent` about a try that failed is no news: it must not stop the retry that somebody decided on
         CASE WHEN f.rank = 1 AND (f.failed OR y.refused) THEN 0 ELSE f.rank END AS proof,
         -- a refused earlier try, or one that is to be sent again anyway, is only recorded
         f.failed AND f.n = k.tries AND k.state IN ('s', 'u', 'a', 't') AS fails
    FROM fact f JOIN k USING (id) JOIN home h ON h.lane_id = k.lane_id AND h.random_id = f.campaign
    LEFT JOIN known y ON y.id = f.id AND y.n = f.n
   WHERE f.n <= k.tries),
reached AS MATERIALIZED (
  SELECT id, max(greatest(proof, CASE WHEN fails THEN 2 ELSE 0 END)) AS rank,
         max(code) FILTER (WHERE fails) AS code, bool_or(back AND fails) AS back, bool_or(spent AND fails) AS spent
    FROM ours GROUP BY id),
moved AS MATERIALIZED (
  SELECT id, k.lane_id, k.state, k.code AS old_code, r.code AS new_code, k.moved_at,
         -- an account's fault, say, is not the row's: it goes back, behind the hold that the caller sets, and keeps
         -- the attempt that its acceptance spent
         r.rank = 2 AND r.back AND r.spent AND k.attempts > 0 AS refunded,
         CASE WHEN r.rank = 2 AND r.back THEN 'p' ELSE (ARRAY['t', 'f', 'd', 'r'])[r.rank] END::"char" AS new
    FROM reached r JOIN k USING (id)
   WHERE r.rank > CASE k.state WHEN 't' THEN 1 WHEN 'f' THEN 2 WHEN 'd' THEN 3 WHEN 'r' THEN 4 ELSE 0 END),
updated AS (
  UPDATE recipient r SET state = m.new, in_flight = NULL, moved_at = now(), resend = false,
         next_attempt_at = CASE WHEN m.new = 'p' THEN now() END,
         attempts = r.attempts - CASE WHEN m.refunded THEN 1 ELSE 0 END,
         code = CASE WHEN m.new IN ('f', 'p') THEN m.new_code END
    FROM moved m
   WHERE r.id = m.id AND r.id = ANY(ARRAY(SELECT id FROM moved))),  -- the array keeps it to the primary key
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, state, new, count(*) FROM moved GROUP BY 1, 2, 3),
proven AS MATERIALIZED (
  SELECT * FROM ours
   WHERE proof > 0 AND NOT taken AND (tries > 1 OR state IN ('p', 'c', 's', 'u', 'x', 'z', 'k'))),
recorded AS (
  INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome, code, wamid, raw)
  SELECT id, n, number_id, epoch, coalesce(to_timestamp(at), now()), 'failed_later', code, wamid, raw
    FROM ours WHERE failed AND NOT refused
  UNION ALL
  SELECT id, n, number_id, epoch, coalesce(to_timestamp(at), now()), 'proven', NULL, wamid, NULL FROM proven),
doubled AS MATERIALIZED (  -- each try beyond a row's first that Meta took and did not refuse
  SELECT p.lane_id, count(*) - CASE WHEN coalesce(y.live, 0) = 0 THEN 1 ELSE 0 END AS n
    FROM proven p
    LEFT JOIN (SELECT id, count(*) AS live FROM known WHERE taken AND NOT refused GROUP BY id) y USING (id)
   GROUP BY p.id, p.lane_id, y.live),
tallied AS (
  INSERT INTO tally_delta (lane_id, what, code, n)
  SELECT lane_id, 'K'::"char", 0, count(*) FROM moved m
   WHERE state IN ('p', 'c', 's', 'u', 'x', 'z', 'k')  -- but an earlier try was counted when it was taken, or refused
     AND EXISTS (SELECT FROM ours o WHERE o.id = m.id AND NOT o.taken AND NOT o.refused AND (o.proof > 0 OR o.fails))
   GROUP BY 1
  UNION ALL SELECT lane_id, 'A', 0, -count(*) FROM moved WHERE refunded GROUP BY 1
  UNION ALL SELECT lane_id, 'F', new_code, count(*) FROM moved
             WHERE new = 'f' AND new_code IS NOT NULL GROUP BY 1, 3
  UNION ALL SELECT lane_id, 'F', old_code, -count(*) FROM moved
             WHERE state = 'f' AND old_code IS NOT NULL GROUP BY 1, 3
  UNION ALL SELECT lane_id, 'R', code, count(*) FROM ours
             WHERE failed AND NOT refused AND code IS NOT NULL GROUP BY 1, 3
  UNION ALL SELECT lane_id, 'C', 0, sum(n) FROM doubled WHERE n > 0 GROUP BY 1)
SELECT f.place, o.id IS NOT NULL AS ours, m.lane_id, m.state, m.new, m.moved_at,
       o.failed AND NOT o.refused AS newly_refused, o.lane_id AS lane, o.left_by, o.left_at,
       o.proof >= 3 OR o.state IN ('d', 'r') AS arrived,
       o.id IS NULL AND (k.id IS NOT NULL AND h.random_id IS DISTINCT FROM f.campaign
                         OR NOT EXISTS (SELECT FROM campaign c WHERE c.random_id = f.campaign)) AS foreign_
  FROM fact f LEFT JOIN k USING (id) LEFT JOIN home h USING (lane_id) LEFT JOIN ours o USING (place)
  LEFT JOIN moved m ON m.id = o.id
 ORDER BY f.place
"""

_ARRIVED = {State.DELIVERED, State.READ}
_WORDS = {1: State.SENT, 3: State.DELIVERED, 4: State.READ}


@dataclass(frozen=True, slots=True)
class Move:
    """How many rows of a lane went from one state to another."""

    lane_id: int
    before: State
    after: State
    count: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A try that Meta refused after it had taken it, told once. `left`: when it left, by its record or its mark.

    `sent_back`: its row is pending again, because the refusal reaches beyond it.
    """

    row: int
    lane_id: int
    number_id: int
    code: int
    raw: str
    left: datetime
    sent_back: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a message, told once: it arrived (`code` None), or it was refused with `code`.

    `left`: when the refused try left.
    """

    lane_id: int
    code: int | None = None
    raw: str = ""
    left: datetime | None = None


@dataclass(slots=True)
class Applied:
    """What a batch of statements came to. `kinds` counts statements about rows of ours, repeated ones included."""

    moves: list[Move] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    refusals: list[Refusal] = field(default_factory=list)
    """New ones of messages that nobody got; the caller stops what they reach, in the same transaction."""
    verdicts: list[Verdict] = field(default_factory=list)
    """In the order of rows, which is about the order in which they left."""
    foreign: int = 0
    delays: list[float] = field(default_factory=list)
    """Seconds from sent to delivered, for rows that became delivered now."""


async def apply(db: Session, statements: Sequence[Evidence]) -> tuple[Applied, list[Evidence]]:
    """Apply a folded batch inside the caller's transaction. Idempotent, and independent of order.

    Returned beside: the statements about a row or a wamid that is not there (yet). Rows are locked in the order
    of their ids, campaigns are only read.
    """
    applied = Applied()
    named, rest = await _named(db, statements)
    if not named:
        return applied, rest
    named.sort(key=lambda pair: (pair[1].row, pair[1].n))
    ids = [token.row for _, token in named]
    await db.execute(LOCK, ids)
    await db.execute(NO_NESTED_LOOPS)
    rows = await db.fetch(
        APPLY,
        ids,
        [token.n for _, token in named],
        [token.campaign for _, token in named],
        [e.rank for e, _ in named],
        [e.failed for e, _ in named],
        [e.code for e, _ in named],
        [e.wamid for e, _ in named],
        [e.raw for e, _ in named],
        [e.at for e, _ in named],
        [_reaches_further(e) for e, _ in named],
    )
    moves: dict[int, tuple[int, State, State]] = {}
    for (evidence, token), row in zip(named, rows, strict=True):
        if row["foreign_"]:
            applied.foreign += 1
        elif not row["ours"]:
            rest.append(evidence)
        else:
            applied.kinds.update(words(evidence))
            if row["new"] is not None:
                before, after = State(row["state"].decode()), State(row["new"].decode())
                moves[token.row] = row["lane_id"], before, after
                applied.delays.extend(_delay(evidence, before, after, row["moved_at"].timestamp()))
                if after in _ARRIVED and before not in _ARRIVED:
                    applied.verdicts.append(Verdict(row["lane"]))
            if row["newly_refused"] and not row["arrived"] and evidence.code is not None:
                refusal = _refusal(row, token, evidence)
                applied.refusals.append(refusal)
                applied.verdicts.append(Verdict(refusal.lane_id, refusal.code, refusal.raw, refusal.left))
    applied.moves = [Move(*move, count) for move, count in Counter(moves.values()).items()]
    return applied, rest


async def _named(
    db: Session, statements: Sequence[Evidence]
) -> tuple[list[tuple[Evidence, Token]], list[Evidence]]:
    """Each statement with its token, looked up by wamid where it carries none; and those that nobody knows."""
    bare = [e.wamid for e in statements if e.token is None and e.wamid]
    found = {
        row["wamid"]: Token(row["random_id"], row["id"], row["n"])
        for row in (await db.fetch(FIND_BY_WAMID, bare) if bare else ())
    }
    looked_up = furthest(
        e if e.token or e.wamid not in found else replace(e, token=found[e.wamid]) for e in statements
    )
    named = [(e, e.token) for e in looked_up if e.token]
    return named, [e for e in looked_up if not e.token]


def _refusal(row: Any, token: Token, evidence: Evidence) -> Refusal:
    sent_back = row["new"] is not None and row["new"].decode() == State.PENDING
    return Refusal(
        token.row,
        row["lane"],
        row["left_by"],
        evidence.code or 0,
        evidence.raw or "",
        row["left_at"],
        sent_back,
    )


def _reaches_further(evidence: Evidence) -> bool:
    code = evidence.code
    return evidence.failed and code is not None and meaning(code, details=evidence.raw or "").scope in STOPS


def words(evidence: Evidence) -> list[str]:
    """The statuses that a statement stands for, as words."""
    refusal = [State.FAILED.word] if evidence.failed else []
    return [*refusal, _WORDS[evidence.rank].word] if evidence.rank else refusal


def _delay(evidence: Evidence, before: State, after: State, since: float) -> list[float]:
    """Sent to delivered: by Meta's stamps when the batch holds both, else from when we learnt of `sent`."""
    if evidence.delivered_at is None or after not in (State.DELIVERED, State.READ):
        return []
    if evidence.sent_at is not None:
        return [max(0.0, evidence.delivered_at - evidence.sent_at)]
    return [max(0.0, evidence.delivered_at - since)] if before is State.SENT else []
