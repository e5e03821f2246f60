"""Answers the questions of a screen. None may hold the database up: each statement has five seconds."""

from dataclasses import replace
from typing import Any

from engine.domain.errors import describe
from engine.domain.inspection import (
    MOST,
    Answer,
    CodeCount,
    Codes,
    CodesOf,
    Journal,
    JournalLine,
    JournalOf,
    NoAnswer,
    Query,
    RowOf,
    Rows,
    RowsOf,
    RowView,
    Story,
    TryView,
)
from engine.domain.message import masked
from engine.domain.recipient import State
from engine.postgres import journal
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.postgres.rows import TRIES

PATIENCE = 5.0
"""Seconds for a statement."""

# recipient_code holds every row with a code, by lane.
CODES = """
SELECT r.code, c.name, r.state, count(*)::bigint AS n
  FROM campaign c JOIN lane l USING (campaign_id) JOIN recipient r USING (lane_id)
  LEFT JOIN number n ON n.number_id = r.number_id
 WHERE r.code IS NOT NULL AND ($1::text IS NULL OR c.name = $1) AND ($2::text IS NULL OR n.id = $2)
 GROUP BY 1, 2, 3 ORDER BY n DESC, 1, 2, 3 LIMIT 200
"""

ROWS = """
SELECT r.id, c.name, d.phone, r.state, n.id AS number, r.tries, r.attempts, r.code, r.next_attempt_at, r.moved_at
  FROM campaign c JOIN lane l USING (campaign_id) JOIN recipient r USING (lane_id)
  LEFT JOIN recipient_data d ON d.id = r.id
  LEFT JOIN number n ON n.number_id = r.number_id
 WHERE ($1::text IS NULL OR c.name = $1) AND ($2::text IS NULL OR n.id = $2)
   AND ($3::int IS NULL OR r.code = $3) AND ($4::"char" IS NULL OR r.state = $4)
 ORDER BY r.id LIMIT $5
"""

# recipient_in_flight holds every claimed, sending and unknown row, by number.
UNSETTLED = """
SELECT r.id, c.name, d.phone, r.state, n.id AS number, r.tries, r.attempts, r.code, r.next_attempt_at, r.moved_at
  FROM number n JOIN recipient r ON r.in_flight = n.number_id
  JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
  LEFT JOIN recipient_data d ON d.id = r.id
 WHERE ($1::text IS NULL OR c.name = $1) AND ($2::text IS NULL OR n.id = $2)
   AND (r.state = 'u' OR (r.state = 's' AND r.moved_at < clock_timestamp() - interval '2 minutes'))
 ORDER BY r.moved_at, r.id LIMIT $3
"""

ROW = """
SELECT r.id, c.name, d.phone, r.state, n.id AS number, r.tries, r.attempts, r.code, r.next_attempt_at, r.moved_at
  FROM recipient r JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
  LEFT JOIN recipient_data d ON d.id = r.id
  LEFT JOIN number n ON n.number_id = r.number_id
 WHERE r.id = $1
"""


async def answer(db: Pool, query: Query, author: str) -> Answer:
    """What is known now; NoAnswer when the database is away or too slow. Raises nothing that a screen must handle."""
    try:
        match query:
            case CodesOf(campaign, number):
                found = await db.fetch(CODES, campaign, number, timeout=PATIENCE)
                return Codes(tuple(_count(*row) for row in found))
            case RowsOf():
                return await _rows(db, query)
            case RowOf():
                return await _story(db, query, author)
            case JournalOf(most):
                kept = await journal.recent(db, most)
                return Journal(
                    tuple(
                        JournalLine(
                            k.at, k.author, k.origin, k.act, k.target, k.before, k.after, k.reason, k.result
                        )
                        for k in kept
                    )
                )
    except TimeoutError:
        return NoAnswer(f"the database took longer than {PATIENCE:.0f} s: ask for less")
    except DATABASE_FAULTS as error:
        return NoAnswer(f"the database is away ({type(error).__name__})")


async def _rows(db: Pool, query: RowsOf) -> Rows:
    letter = next((s.value.encode() for s in State if s.word == query.state), None)
    if query.unsettled:
        found = await db.fetch(UNSETTLED, query.campaign, query.number, MOST + 1, timeout=PATIENCE)
        return Rows(tuple(_row(row) for row in found[:MOST]), len(found) > MOST)
    found = await db.fetch(ROWS, query.campaign, query.number, query.code, letter, MOST + 1, timeout=PATIENCE)
    return Rows(tuple(_row(row) for row in found[:MOST]), len(found) > MOST)


async def _story(db: Pool, query: RowOf, author: str) -> Story:
    row = await db.fetchrow(ROW, query.id, timeout=PATIENCE)
    if row is None:
        return Story(None)
    if query.reveal:
        await journal.note(db, journal.Entry(author, "console", "show phone number", f"row {query.id}"))
    tries = [TryView(*line) for line in await db.fetch(TRIES, query.id, timeout=PATIENCE)]
    digits = (row["phone"] or "").removeprefix("+")
    if digits and not query.reveal:  # answers quote the recipient
        tries = [replace(t, raw=t.raw.replace(digits, masked(digits))) if t.raw else t for t in tries]
    return Story(_row(row, reveal=query.reveal), tuple(tries))


def _count(code: int, campaign: str, state: bytes, rows: int) -> CodeCount:
    return CodeCount(code, describe(code).title, campaign, State(state.decode()).word, rows)


def _row(record: Any, *, reveal: bool = False) -> RowView:
    id_, campaign, phone, state, number, tries, attempts, code, next_at, moved_at = record
    shown = (phone or "") if reveal else masked(phone or "")
    reason = describe(code).title if code is not None else None
    word = State(state.decode()).word
    return RowView(id_, campaign, shown, word, number, tries, attempts, code, reason, next_at, moved_at)
