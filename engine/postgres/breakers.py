"""Breakers: one row for each scope and key that ever stopped. Moved by evidence, by people, and by time.

Lock order, so that no two movers wait for each other: recipients by id, breakers by scope and key, and last the
control row (inside the journal's statement).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.domain import breaker
from engine.domain.breaker import Stop
from engine.domain.errors import Scope
from engine.postgres import journal
from engine.postgres.pool import Executor

# Evidence counts only when it is newer than the last reset: a redelivered old refusal must not hold a mended account.
# What is held stays as it is, but for newer news of the provider itself (without a code); what only waits may be made
# to wait longer, or to be held.
# $1 scopes  $2 keys  $3 codes  $4 reasons  $5 until  $6 probe at  $7 evidence at
TRIP = """
INSERT INTO breaker AS b (scope, key, state, code, reason, tripped_at, until)
SELECT scope, key, CASE WHEN until IS NULL THEN 'held' ELSE 'waiting' END, code, reason, at, coalesce(until, probe_at)
  FROM unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[])
    AS s(scope, key, code, reason, until, probe_at, at)
 ORDER BY scope, key
ON CONFLICT (scope, key) DO UPDATE
   SET state = excluded.state, code = excluded.code, reason = excluded.reason, tripped_at = excluded.tripped_at,
       until = excluded.until, probe_token = NULL, probe_until = NULL
 WHERE excluded.tripped_at > b.reset_at
   AND (b.state = 'closed'
        OR b.state = 'held' AND excluded.state = 'held' AND excluded.code IS NULL AND excluded.tripped_at > b.tripped_at
        OR b.state = 'waiting' AND (b.until <= clock_timestamp() OR excluded.state = 'held'
                                    OR excluded.until > b.until + interval '5 seconds'))
RETURNING breaker_id, scope, key, state, code, reason, tripped_at, until, reset_at
"""

# The row is kept, or made, so that evidence from before the good news does not trip it afterwards.
HEAL = """
INSERT INTO breaker AS b (scope, key, state, reset_at) VALUES ($1, $2, 'closed', $3)
ON CONFLICT (scope, key) DO UPDATE
   SET state = 'closed', until = NULL, probe_token = NULL, probe_until = NULL,
       reset_at = greatest(b.reset_at, excluded.reset_at)
 WHERE b.state = 'closed' OR b.tripped_at <= excluded.reset_at
"""

LOCK = """
SELECT count(*) FROM (
  SELECT 1 FROM breaker WHERE (scope, key) IN (SELECT * FROM unnest($1::text[], $2::text[]))
   ORDER BY scope, key FOR UPDATE) locked
"""

STANDING = """
SELECT breaker_id, scope, key, state, code, reason, tripped_at, until, reset_at
  FROM breaker WHERE scope = $1 AND key = $2 FOR UPDATE
"""

LIFT = """
WITH open AS MATERIALIZED (
  SELECT breaker_id, scope, key, state, code, reason, tripped_at, until, reset_at
    FROM breaker WHERE breaker_id = $1 AND state <> 'closed' FOR UPDATE),
closed AS (
  UPDATE breaker SET state = 'closed', until = NULL, probe_token = NULL, probe_until = NULL,
         reset_at = clock_timestamp()
   WHERE breaker_id = (SELECT breaker_id FROM open))
SELECT * FROM open
"""

PASS = """
WITH over AS MATERIALIZED (
  SELECT breaker_id, scope, key, state, code, reason, tripped_at, until, reset_at
    FROM breaker WHERE state = 'waiting' AND until <= clock_timestamp()
   ORDER BY scope, key FOR UPDATE SKIP LOCKED),
closed AS (
  UPDATE breaker b SET state = 'closed', reset_at = o.until, until = NULL, probe_token = NULL, probe_until = NULL
    FROM over o WHERE b.breaker_id = o.breaker_id)
SELECT * FROM over
"""

OPEN = """
SELECT breaker_id, scope, key, state, code, reason, tripped_at, until, reset_at
  FROM breaker WHERE state = 'held' OR state = 'waiting' AND until > clock_timestamp() ORDER BY breaker_id
"""

FIND = """
SELECT breaker_id, scope, key, state, code, reason, tripped_at, until, reset_at FROM breaker WHERE breaker_id = $1
"""

# One node at a time, with one request: the next may try when the last one's time is over.
PROBE = """
UPDATE breaker SET probe_token = $2, probe_until = clock_timestamp() + make_interval(secs => $3)
 WHERE breaker_id = $1 AND state = 'held' AND until <= clock_timestamp()
   AND (probe_until IS NULL OR probe_until < clock_timestamp())
"""

EXPECT_PROBE = """
UPDATE breaker SET until = clock_timestamp() WHERE breaker_id = $1 AND state = 'held' AND probe_until IS NULL
"""

PROBE_FAILED = """
UPDATE breaker SET until = $2, probe_token = NULL, probe_until = NULL WHERE breaker_id = $1 AND state = 'held'
"""


@dataclass(frozen=True, slots=True)
class Breaker:
    """A breaker as it stands. `until`: of one that waits, its end; of a held one, from when on it may be probed."""

    breaker_id: int
    scope: Scope
    key: str
    state: str
    code: int | None
    reason: str | None
    tripped_at: datetime | None
    until: datetime | None
    reset_at: datetime


async def trip(db: Executor, stop: Stop, evidence_at: datetime) -> bool:
    """Stop a scope, as the last act of the caller's transaction; whether anything changed by it.

    `evidence_at`: when the try left that was refused, or when the provider says that it happened. Evidence from
    before the last reset changes nothing, and neither does a stop of what is held already.
    """
    return bool(await trip_all(db, [(stop, evidence_at)]))


async def trip_all(db: Executor, stops: Iterable[tuple[Stop, datetime]]) -> list[Breaker]:
    """As `trip`, for several at once in an order that cannot deadlock; those that changed."""
    folded = breaker.latest(stops)
    if not folded:
        return []
    rows = await db.fetch(
        TRIP,
        [stop.scope.value for stop, _ in folded],
        [stop.key for stop, _ in folded],
        [stop.code for stop, _ in folded],
        [stop.reason for stop, _ in folded],
        [stop.until for stop, _ in folded],
        [stop.probe_at for stop, _ in folded],
        [at for _, at in folded],
    )
    tripped = [_breaker(row) for row in rows]
    for one in tripped:
        await journal.write(db, _entry("hold", one, "auto", "engine", one.reason, one.state))
    return tripped


async def lock(db: Executor, places: Iterable[tuple[Scope, str]]) -> None:
    """Lock what a transaction is about to trip and to heal, in the one order."""
    pairs = sorted(set(places))
    if pairs:
        await db.execute(LOCK, [scope.value for scope, _ in pairs], [key for _, key in pairs])


async def heal(
    db: Executor,
    scope: Scope,
    key: str,
    at: datetime,
    reason: str,
    *,
    author: str = "auto",
    origin: str = "engine",
) -> Breaker | None:
    """Close what good news of the time `at` mends, in the caller's transaction; the breaker as it stood, or None.

    News from before the trip closes nothing. Evidence from before the news trips nothing any more, also where
    nothing had tripped yet: bodies arrive in any order.
    """
    standing = await db.fetchrow(STANDING, scope.value, key)
    closed = (await db.execute(HEAL, scope.value, key, at)).endswith(" 1")
    if standing is None or standing["state"] == "closed" or not closed:
        return None
    before = _breaker(standing)
    await journal.write(db, _entry("lift", before, author, origin, reason, "closed"))
    return before


async def lift(
    db: Executor,
    breaker_id: int,
    author: str,
    reason: str | None,
    *,
    origin: str = "cli",
    journalled: Callable[[int], object] | None = None,
) -> Breaker | None:
    """Close a breaker now, in the caller's transaction: only tries that leave from now on trip it again.

    The breaker as it stood, or None when it is closed already or there is none (`find` tells which). `journalled` is
    told the id of the act's entry.
    """
    row = await db.fetchrow(LIFT, breaker_id)
    if row is None:
        return None
    before = _breaker(row)
    id_ = await journal.write(db, _entry("lift", before, author, origin, reason, "closed"))
    if journalled is not None:
        journalled(id_)
    return before


async def close_passed(db: Executor) -> list[Breaker]:
    """Close those whose waiting is over, in the caller's transaction; as they stood."""
    passed = [_breaker(row) for row in await db.fetch(PASS)]
    for one in passed:
        await journal.write(db, _entry("lift", one, "auto", "engine", "its time is over", "closed"))
    return passed


async def open_breakers(db: Executor) -> list[Breaker]:
    """All that stops something right now."""
    return [_breaker(row) for row in await db.fetch(OPEN)]


async def find(db: Executor, breaker_id: int) -> Breaker | None:
    """One breaker, closed or not."""
    row = await db.fetchrow(FIND, breaker_id)
    return _breaker(row) if row is not None else None


async def take_probe(db: Executor, breaker_id: int, token: UUID, seconds: float) -> bool:
    """Whether the caller, and nobody else for `seconds`, may send one request to see if it is mended.

    Only of what is held and is to be probed (`probe_at` of its stop has come).
    """
    return (await db.execute(PROBE, breaker_id, token, seconds)).endswith(" 1")


async def expect_probe(db: Executor, breaker_id: int) -> None:
    """What is held may be mended (there is another token): it may be probed from now on."""
    await db.execute(EXPECT_PROBE, breaker_id)


async def probe_failed(db: Executor, breaker_id: int, again: datetime | None) -> None:
    """The probe was refused: the hold stays, to be probed again at `again`, or not at all."""
    await db.execute(PROBE_FAILED, breaker_id, again)


def _breaker(row: Any) -> Breaker:
    breaker_id, scope, *rest = row
    return Breaker(breaker_id, Scope(scope), *rest)  # in the order of the columns


def _entry(act: str, one: Breaker, author: str, origin: str, reason: str | None, after: str) -> journal.Entry:
    before = one.state if after == "closed" else None
    return journal.Entry(author, origin, f"{act} {one.scope.value}", one.key, reason, before, after)
