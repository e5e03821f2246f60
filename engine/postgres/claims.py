"""Permissions on rows: claim, mark, give back, rescue. Each carries the lease's token and is refused when stale.

The mark is the real fence: it locks the lease row itself, so a take-over waits for it or it for the take-over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from engine.postgres.pool import Executor

CLAIM = """
WITH owner AS MATERIALIZED (
  SELECT 1 FROM lease WHERE number_id = $1 AND token = $2 AND released_at IS NULL AND expires_at > clock_timestamp()),
k AS MATERIALIZED (  -- a fence: without it the planner may run the LIMIT again
  -- The inner limit hides its value: one above the guess of an unanalyzed table would have it all read and sorted.
  SELECT w.nth, r.id, r.lane_id, r.next_attempt_at
    FROM unnest($4::int[], $5::timestamptz[], $6::bigint[]) WITH ORDINALITY AS w(lane_id, at, id, nth)
   CROSS JOIN LATERAL (
     SELECT id, lane_id, next_attempt_at FROM recipient
      WHERE lane_id = w.lane_id AND next_attempt_at <= now() AND (next_attempt_at, id) > (w.at, w.id)
      ORDER BY next_attempt_at, id LIMIT (SELECT $7::bigint) FOR UPDATE SKIP LOCKED) r
   WHERE EXISTS (SELECT FROM owner)
   LIMIT $7),
d AS MATERIALIZED (
  SELECT k.*, r.phone, r.params, EXISTS (
           SELECT FROM suppression s WHERE s.phone = r.phone AND (s.scope = 'all' OR $8)) AS suppressed
    FROM k CROSS JOIN LATERAL (
      SELECT phone, params FROM recipient_data WHERE id = k.id OFFSET 0) r),  -- OFFSET 0: stay nested
moved AS (
  UPDATE recipient SET state = 'c', next_attempt_at = NULL, in_flight = $1, number_id = $1, epoch = $3, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM d WHERE NOT suppressed))  -- not a join: a generic plan would hash the table
  RETURNING id, tries, attempts),
left_out AS (
  UPDATE recipient SET state = 'z', next_attempt_at = NULL, resend = false, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM d WHERE suppressed))),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, 'p', (CASE WHEN suppressed THEN 'z' ELSE 'c' END)::"char", count(*) FROM d GROUP BY 1, 3)
SELECT d.id, d.lane_id, d.next_attempt_at, m.tries, m.attempts, d.phone, d.params
  FROM d LEFT JOIN moved m USING (id)
 ORDER BY d.nth, d.next_attempt_at, d.id
"""

MARK = """
WITH ask AS MATERIALIZED (
  SELECT *, dense_rank() OVER (PARTITION BY nullif(phone, ''), CASE phone WHEN '' THEN id END ORDER BY id) AS nth
    FROM unnest($1::bigint[], $2::int[], $3::uuid[], $4::bigint[], $5::int[], $6::text[], $7::text[], $8::bool[])
      AS a(id, number_id, token, epoch, n, phone, template, spaced)),
lively AS MATERIALIZED (  -- who may have written to these people within seconds; of one campaign alone nobody is asked
  SELECT campaign_id FROM campaign
   WHERE state IN ('running', 'paused', 'held') OR state = 'cancelled' AND finished_at IS NULL
      OR finished_at > clock_timestamp() - interval '6 seconds'),
stops AS MATERIALIZED (  -- what is being probed lets the one probe through
  SELECT scope, key FROM breaker
   WHERE state = 'held' AND (probe_until IS NULL OR probe_until < clock_timestamp())
      OR state = 'waiting' AND until > clock_timestamp()),
held AS MATERIALIZED (  -- FOR SHARE: a take-over and this mark cannot both believe that they own the number
  SELECT number_id, epoch FROM lease
   WHERE token = ANY(ARRAY(SELECT DISTINCT token FROM ask)) AND released_at IS NULL AND expires_at > clock_timestamp()
   ORDER BY number_id FOR SHARE),
k AS MATERIALIZED (
  SELECT id, lane_id, state, tries, epoch, in_flight, resend FROM recipient
   WHERE id = ANY($1) ORDER BY id FOR UPDATE),
v AS MATERIALIZED (
  SELECT k.id, k.lane_id, k.state, k.resend, a.epoch, CASE
      WHEN h.number_id IS NULL OR h.epoch <> a.epoch THEN
        -- marked all the same, by a commit whose answer was lost; the asker alone knows that nothing left
        CASE WHEN k.state IN ('s', 'u') AND k.tries = a.n AND k.epoch = a.epoch AND k.in_flight = a.number_id
             THEN 'late' ELSE 'lost' END
      WHEN k.in_flight IS DISTINCT FROM a.number_id OR k.epoch IS DISTINCT FROM a.epoch THEN 'gone'
      WHEN k.state = 's' AND k.tries = a.n THEN 'again'  -- the answer to an earlier commit was lost
      WHEN k.state <> 'c' OR k.tries <> a.n - 1 THEN 'gone'
      WHEN c.state = 'cancelled' THEN 'cancelled'
      WHEN l.deadline <= clock_timestamp() OR c.deadline <= clock_timestamp() THEN 'expired'
      WHEN n.paused_at IS NOT NULL OR n.rate = 0 THEN 'paused'
      WHEN c.state <> 'running' AND c.held_by IS DISTINCT FROM 'stops' OR l.hold IS NOT NULL
        OR l.closes_at <= clock_timestamp() THEN 'held'  -- quiet hours have begun
      WHEN c.control_of IS NOT NULL AND NOT EXISTS (
             SELECT FROM campaign o WHERE o.campaign_id = c.control_of AND (o.state = 'running' OR o.held_by = 'stops'))
        THEN 'held'  -- a round of control phones goes only while its campaign goes
      WHEN EXISTS (SELECT FROM stops s WHERE s.key = CASE s.scope
             WHEN 'number' THEN n.id WHEN 'account' THEN n.account WHEN 'credential' THEN n.token_ref
             WHEN 'template' THEN a.template ELSE n.account || '/' || l.country END) THEN 'held'
      WHEN EXISTS (SELECT FROM suppression s WHERE s.phone = a.phone AND (s.scope = 'all' OR c.category = 'marketing'))
        THEN 'suppressed'
      WHEN a.nth > 1 OR a.spaced OR EXISTS (  -- two to a person within 6 s, from an account: the provider refuses that
        SELECT FROM lively o
         CROSS JOIN LATERAL (SELECT id FROM recipient_data
                              WHERE campaign_id = o.campaign_id AND phone = a.phone OFFSET 0) d
         CROSS JOIN LATERAL (SELECT id, state, moved_at, number_id FROM recipient WHERE id = d.id OFFSET 0) r
          JOIN number m ON m.number_id = r.number_id AND m.account = n.account
         WHERE o.campaign_id <> c.campaign_id
           AND CASE WHEN r.state = 's' THEN true
                    WHEN r.state NOT IN ('u', 'a', 't', 'd', 'r')
                      OR r.moved_at < clock_timestamp() - interval '6 seconds' THEN false
                    ELSE EXISTS (SELECT FROM try WHERE recipient_id = r.id  -- it moved, perhaps by a late status
                                    AND sent_at > clock_timestamp() - interval '6 seconds') END) THEN 'spaced'
      ELSE 'ok' END AS verdict, n.account, a.phone
    FROM k JOIN ask a USING (id)
    JOIN lane l ON l.lane_id = k.lane_id JOIN campaign c ON c.campaign_id = l.campaign_id
    JOIN number n ON n.number_id = a.number_id
    LEFT JOIN held h ON h.number_id = a.number_id),
marked AS (
  UPDATE recipient SET state = 's', tries = tries + 1, resend = false, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM v WHERE verdict = 'ok'))),
returned AS (
  UPDATE recipient SET state = 'p', in_flight = NULL, moved_at = now(), next_attempt_at = now()
         + CASE WHEN id = ANY(ARRAY(SELECT id FROM v WHERE verdict = 'spaced')) THEN interval '6.5 seconds'
                ELSE interval '0' END
   WHERE id = ANY(ARRAY(SELECT id FROM v WHERE verdict IN ('paused', 'held', 'spaced')))),
reached AS (  -- people count where somebody has said how many an account may reach in a day
  INSERT INTO contact (account, phone, at)
  SELECT account, phone, clock_timestamp() FROM v
   WHERE verdict = 'ok' AND phone <> '' AND EXISTS (SELECT FROM account a WHERE a.account = v.account)
   ORDER BY 1, 2
  ON CONFLICT (account, phone) DO UPDATE SET at = excluded.at),
ended AS (
  UPDATE recipient SET in_flight = NULL, moved_at = now(),
         state = (CASE WHEN id = ANY(ARRAY(SELECT id FROM v WHERE verdict = 'expired')) THEN 'x'
                       WHEN id = ANY(ARRAY(SELECT id FROM v WHERE verdict = 'suppressed')) THEN 'z'
                       ELSE 'k' END)::"char"
   WHERE id = ANY(ARRAY(SELECT id FROM v WHERE verdict IN ('expired', 'suppressed', 'cancelled')))),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, 'c', (CASE verdict WHEN 'ok' THEN 's' WHEN 'expired' THEN 'x' WHEN 'cancelled' THEN 'k'
                                     WHEN 'suppressed' THEN 'z' ELSE 'p' END)::"char", count(*)
    FROM v WHERE verdict IN ('ok', 'paused', 'held', 'spaced', 'expired', 'suppressed', 'cancelled') GROUP BY 1, 3),
tallied AS (
  INSERT INTO tally_delta (lane_id, what, n)
  SELECT lane_id, 'T', count(*) FROM v WHERE verdict = 'ok' GROUP BY 1
  UNION ALL SELECT lane_id, 'D', count(*) FROM v WHERE verdict = 'ok' AND resend GROUP BY 1)
SELECT id, epoch, verdict FROM v
"""

GIVE_BACK = """
WITH k AS MATERIALIZED (
  SELECT id, lane_id FROM recipient
   WHERE id = ANY($1) AND state = 'c' AND in_flight = $2 AND epoch = $3 ORDER BY id FOR UPDATE),
moved AS (
  UPDATE recipient SET state = 'p', next_attempt_at = now(), in_flight = NULL, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM k)))
INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'c', 'p', count(*) FROM k GROUP BY lane_id
"""

# What a dead owner left: nothing had left for its claimed rows; nobody knows about its sending ones.
RESCUE = """
WITH owner AS MATERIALIZED (
  SELECT 1 FROM lease WHERE number_id = $1 AND token = $2 AND released_at IS NULL AND expires_at > clock_timestamp()
     FOR SHARE),
k AS MATERIALIZED (
  SELECT id, lane_id, state, tries, epoch, moved_at FROM recipient
   WHERE in_flight = $1 AND id > $4 AND epoch < $3 AND state IN ('c', 's') AND EXISTS (SELECT FROM owner)
   ORDER BY in_flight, id LIMIT $5 FOR UPDATE),
freed AS (
  UPDATE recipient SET state = 'p', next_attempt_at = now(), in_flight = NULL, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM k WHERE state = 'c'))),
doubted AS (
  UPDATE recipient SET state = 'u', moved_at = now() WHERE id = ANY(ARRAY(SELECT id FROM k WHERE state = 's'))),
recorded AS (
  INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome, raw)
  SELECT id, tries, $1, epoch, moved_at, 'unknown', 'its owner died before an answer was recorded'
    FROM k WHERE state = 's'),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, state, (CASE state WHEN 'c' THEN 'p' ELSE 'u' END)::"char", count(*) FROM k GROUP BY 1, 2)
SELECT max(id) AS last, count(*) FILTER (WHERE state = 'c') AS freed, count(*) FILTER (WHERE state = 's') AS doubted
  FROM k
"""

# The same for a live owner: a claim whose answer was lost, a result that was lost. `$3` are the rows in its hands.
SWEEP = """
WITH k AS MATERIALIZED (
  SELECT id, lane_id, state, tries, moved_at FROM recipient
   WHERE in_flight = $1 AND epoch = $2 AND NOT id = ANY($3)
     AND (state = 'c' AND moved_at < clock_timestamp() - make_interval(secs => $5)
          OR state = 's' AND moved_at < clock_timestamp() - make_interval(secs => $4))
   ORDER BY in_flight, id LIMIT 1000 FOR UPDATE SKIP LOCKED),
freed AS (
  UPDATE recipient SET state = 'p', next_attempt_at = now(), in_flight = NULL, moved_at = now()
   WHERE id = ANY(ARRAY(SELECT id FROM k WHERE state = 'c'))),
doubted AS (
  UPDATE recipient SET state = 'u', moved_at = now() WHERE id = ANY(ARRAY(SELECT id FROM k WHERE state = 's'))),
recorded AS (
  INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome, raw)
  SELECT id, tries, $1, $2, moved_at, 'unknown', 'no answer was recorded in time' FROM k WHERE state = 's'),
booked AS (
  INSERT INTO book_delta (lane_id, f, t, n)
  SELECT lane_id, state, (CASE state WHEN 'c' THEN 'p' ELSE 'u' END)::"char", count(*) FROM k GROUP BY 1, 2)
SELECT count(*) FILTER (WHERE state = 'c') AS freed, count(*) FILTER (WHERE state = 's') AS doubted FROM k
"""

RESCUE_PAGE = 1000

CLAIM_ANSWERED = 10.0
"""Seconds after which the answer to a claim is not under way any more: its rows are in hand, or it was lost."""


@dataclass(frozen=True, slots=True)
class Permission:
    """The lease under which a number is worked: what every claim, mark and release must show."""

    number_id: int
    token: UUID
    epoch: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row in the owner's hands. `tries` and `attempts` as before the request."""

    id: int
    lane_id: int
    tries: int
    attempts: int
    phone: str
    params: dict[str, str]


@dataclass(frozen=True, slots=True)
class LaneMark:
    """How far a lane has been claimed: rows at or before (at, id) were seen; older ones come with a full rescan."""

    lane_id: int
    at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Ask:
    """One row to be marked as sending with its next try. `template`: the key of its template's breaker."""

    id: int
    permission: Permission
    n: int
    phone: str = ""
    template: str = ""
    spaced: bool = False
    """The owner knows that this person has just got another message, of a conversation."""


async def claim(
    db: Executor, permission: Permission, lanes: Sequence[LaneMark], room: int, *, marketing: bool = False
) -> tuple[list[Claimed], list[LaneMark]]:
    """Reserve at most `room` ready rows of the lanes, in the order given; and how far each lane has come.

    Suppressed people are set aside instead (with `marketing`, also those who only want no marketing).
    Nothing is claimed when the lease is no longer held.
    """
    rows = await db.fetch(
        CLAIM,
        permission.number_id,
        permission.token,
        permission.epoch,
        [lane.lane_id for lane in lanes],
        [lane.at for lane in lanes],
        [lane.id for lane in lanes],
        room,
        marketing,
    )
    marks: dict[int, LaneMark] = {}
    claimed = []
    for id_, lane_id, at, tries, attempts, phone, params in rows:
        mark = marks.get(lane_id)
        if mark is None or (at, id_) > (mark.at, mark.id):
            marks[lane_id] = LaneMark(lane_id, at, id_)
        if tries is not None:  # else suppressed, and out of the way
            claimed.append(Claimed(id_, lane_id, tries, attempts, phone, msgspec.json.decode(params)))
    return claimed, list(marks.values())


async def mark(db: Executor, asks: Sequence[Ask]) -> dict[tuple[int, int], str]:
    """A verdict by (row, epoch) for each row that is still there: ok, again (marked before), paused, held, spaced (the
    person has just got another message), expired, suppressed, cancelled, gone (no longer ours), lost (the lease is
    gone), late (it is, and the row was marked before: its try is on the record and must be taken back). Only ok and
    again may leave.

    By epoch too: a row may be asked for under a lease that was lost and under the one that followed it.
    """
    rows = await db.fetch(
        MARK,
        [a.id for a in asks],
        [a.permission.number_id for a in asks],
        [a.permission.token for a in asks],
        [a.permission.epoch for a in asks],
        [a.n for a in asks],
        [a.phone for a in asks],
        [a.template for a in asks],
        [a.spaced for a in asks],
    )
    return {(row["id"], row["epoch"]): row["verdict"] for row in rows}


async def give_back(db: Executor, permission: Permission, ids: Sequence[int]) -> None:
    """Claimed rows that were not begun become pending again."""
    await db.execute(GIVE_BACK, list(ids), permission.number_id, permission.epoch)


async def rescue(db: Executor, permission: Permission) -> tuple[int, int]:
    """Settle what earlier owners left in flight, a page at a time: (freed to pending, doubted to unknown)."""
    freed = doubted = last = 0
    while True:
        row: asyncpg.Record | Any = await db.fetchrow(
            RESCUE, permission.number_id, permission.token, permission.epoch, last, RESCUE_PAGE
        )
        if row["last"] is None:
            return freed, doubted
        last, freed, doubted = row["last"], freed + row["freed"], doubted + row["doubted"]


async def sweep(
    db: Executor,
    permission: Permission,
    in_hand: Sequence[int],
    older_than: float,
    *,
    claimed_for: float = CLAIM_ANSWERED,
) -> tuple[int, int]:
    """Under a live owner: rows that it does not know of any more. How many claimed ones went back to pending, and how
    many in `sending` are unknown now. They were moved at least `claimed_for` and `older_than` seconds ago."""
    row: asyncpg.Record | Any = await db.fetchrow(
        SWEEP, permission.number_id, permission.epoch, list(in_hand), older_than, claimed_for
    )
    return row["freed"], row["doubted"]
