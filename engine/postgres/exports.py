"""Rows of a campaign as they stand, page by page, for a file of a person's own."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from engine.domain.recipient import State
from engine.postgres.pool import Executor

PAGE = """
SELECT d.id, d.line, d.phone, r.state, n.id AS number, r.tries, r.attempts, r.code, r.next_attempt_at, r.moved_at
  FROM recipient_data d
  JOIN LATERAL (SELECT * FROM recipient WHERE id = d.id OFFSET 0) r ON true
  LEFT JOIN number n USING (number_id)
 WHERE d.id = ANY(ARRAY(
   SELECT r.id FROM lane l JOIN recipient r USING (lane_id)
    WHERE l.campaign_id = $1 AND r.id > $2 AND ($3::"char" IS NULL OR r.state = $3) ORDER BY r.id LIMIT $4))
 ORDER BY d.id
"""

ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Exported:
    """One row, with its whole phone number."""

    id: int
    line: int
    phone: str
    state: State
    number: str | None
    tries: int
    attempts: int
    code: int | None
    next_attempt_at: datetime | None
    moved_at: datetime

    def __repr__(self) -> str:
        return f"Exported({self.id}, {self.state.word})"


async def rows(
    db: Executor, campaign_id: int, state: State | None, page: int = ROWS
) -> AsyncIterator[Exported]:
    """All rows in order of id; those that move meanwhile are told as they stood when their page was read."""
    after, letter = 0, state.value.encode() if state else None
    while records := await db.fetch(PAGE, campaign_id, after, letter, page, timeout=600.0):
        for id_, line, phone, state_letter, *rest in records:
            yield Exported(id_, line, phone, State(state_letter.decode()), *rest)
        after = records[-1]["id"]
