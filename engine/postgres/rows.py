"""Single rows, for people: listed by state and code, and one row's timeline."""

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from engine.domain.errors import describe
from engine.domain.message import masked
from engine.domain.recipient import State
from engine.postgres import row_story
from engine.postgres.journal import Kept
from engine.postgres.pool import Executor
from engine.postgres.row_story import Heard

# One row for each code, by the index on codes. $1 campaign_id  $2 codes
EXAMPLES = """
SELECT q.code, e.id, e.phone
  FROM unnest($2::int[]) AS q(code)
  CROSS JOIN LATERAL (
    SELECT r.id, (SELECT phone FROM recipient_data d WHERE d.id = r.id) AS phone FROM recipient r
     WHERE r.lane_id = ANY(ARRAY(SELECT lane_id FROM lane WHERE campaign_id = $1)) AND r.code = q.code LIMIT 1) e
"""

LISTING = """
SELECT r.id, c.name, d.phone, r.state, n.id AS number, r.tries, r.attempts, r.code, r.next_attempt_at, r.moved_at,
       l.aside, CASE WHEN r.state = 'u' THEN (
         SELECT raw FROM try t WHERE t.recipient_id = r.id AND t.n = r.tries AND t.outcome = 'unknown'
          ORDER BY recorded_at DESC LIMIT 1) END AS doubt
  FROM campaign c JOIN lane l USING (campaign_id) JOIN recipient r USING (lane_id)
  LEFT JOIN recipient_data d ON d.id = r.id
  LEFT JOIN number n ON n.number_id = r.number_id
 WHERE c.name = $1 AND ($2::"char" IS NULL OR r.state = $2) AND ($3::int IS NULL OR r.code = $3) AND r.id > $4
   AND ($6::text IS NULL OR l.aside = $6 AND r.state = 'p')
 ORDER BY r.id LIMIT $5
"""

ONE = """
SELECT r.id, c.name, d.phone, r.state, n.id AS number, r.tries, r.attempts, r.code, r.next_attempt_at, r.moved_at,
       l.aside, CASE WHEN r.state = 'u' THEN (
         SELECT raw FROM try t WHERE t.recipient_id = r.id AND t.n = r.tries AND t.outcome = 'unknown'
          ORDER BY recorded_at DESC LIMIT 1) END AS doubt
  FROM recipient r JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
  LEFT JOIN recipient_data d ON d.id = r.id
  LEFT JOIN number n ON n.number_id = r.number_id
 WHERE r.id = $1
"""

TRIES = """
SELECT t.n, t.outcome, t.sent_at, t.answered_at, t.recorded_at, n.id AS number, t.epoch, t.code, t.wamid, t.raw
  FROM try t LEFT JOIN number n USING (number_id)
 WHERE t.recipient_id = $1 ORDER BY t.n, t.recorded_at, t.answered_at
"""

DOUBT_CHARS = 120

ASIDE = {"twins": "kept aside: likely a duplicate, another spelling of a number that is in the campaign"}


@dataclass(frozen=True, slots=True)
class Example:
    """A row to look at; the phone number is masked."""

    row: int
    phone: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row as people see it; the phone number is masked already."""

    id: int
    campaign: str
    phone: str
    state: State
    number: str | None
    tries: int
    attempts: int
    code: int | None
    next_attempt_at: datetime | None
    moved_at: datetime
    aside: str = ""
    doubt: str | None = None
    """Of an unknown row: why nobody knows, as its try was recorded."""

    @property
    def reason(self) -> str | None:
        """Why it stands where it stands, as far as that is the row's own."""
        if self.aside in ASIDE and self.state is State.PENDING:
            return ASIDE[self.aside]
        if self.state is State.UNKNOWN:
            why = (self.doubt or "no answer was recorded")[:DOUBT_CHARS]
            return f"{why}; unknown since {self.moved_at:%Y-%m-%d %H:%M:%S}Z"
        return describe(self.code).title if self.code is not None else None

    def as_json(self) -> dict[str, object]:
        """The public shape of `rows list --json`."""
        return {
            "id": self.id,
            "campaign": self.campaign,
            "phone": self.phone,
            "state": self.state.word,
            "number": self.number,
            "tries": self.tries,
            "attempts": self.attempts,
            "code": self.code,
            "reason": self.reason,
            "next_attempt_at": self.next_attempt_at.isoformat() if self.next_attempt_at else None,
            "moved_at": self.moved_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of a row's timeline: a try, or something that became known about it later."""

    n: int
    outcome: str
    sent_at: datetime
    answered_at: datetime | None
    recorded_at: datetime
    number: str | None
    epoch: int
    code: int | None
    wamid: str | None
    raw: str | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A row and all that is known about it."""

    row: Row
    tries: tuple[Evidence, ...]
    statuses: tuple[Heard, ...] = ()
    acts: tuple[Kept, ...] = ()

    def tries_json(self) -> list[dict[str, object]]:
        """Each line with its times as text."""
        return [
            {
                "n": t.n,
                "outcome": t.outcome,
                "sent_at": t.sent_at.isoformat(),
                "answered_at": t.answered_at.isoformat() if t.answered_at else None,
                "recorded_at": t.recorded_at.isoformat(),
                "number": t.number,
                "epoch": t.epoch,
                "code": t.code,
                "wamid": t.wamid,
                "raw": t.raw,
            }
            for t in self.tries
        ]

    def statuses_json(self) -> list[dict[str, object]]:
        """Each status with the provider's clock and ours."""
        return [
            {
                "n": s.n,
                "status": s.word,
                "said_at": s.said_at.isoformat() if s.said_at else None,
                "received_at": s.received_at.isoformat(),
                "code": s.code,
            }
            for s in self.statuses
        ]

    def acts_json(self) -> list[dict[str, object]]:
        """Who did what around the row."""
        return [{**asdict(act), "at": act.at.isoformat()} for act in self.acts]

    def as_json(self) -> dict[str, object]:
        """The row's shape, and its timeline."""
        return {
            **self.row.as_json(),
            "timeline": self.tries_json(),
            "statuses": self.statuses_json(),
            "acts": self.acts_json(),
        }


async def listing(
    db: Executor,
    campaign: str,
    state: State | None,
    code: int | None,
    after: int,
    most: int,
    aside: str | None = None,
) -> list[Row]:
    """At most `most` rows after id `after`, in order of id. `aside`: only those kept aside for it, such as twins."""
    letter = state.value.encode() if state else None
    return [_row(record) for record in await db.fetch(LISTING, campaign, letter, code, after, most, aside)]


async def examples(db: Executor, campaign_id: int, codes: Collection[int]) -> dict[int, Example]:
    """For each code a row that stands with it now, if there is one."""
    rows = await db.fetch(EXAMPLES, campaign_id, list(codes)) if codes else ()
    return {row["code"]: Example(row["id"], masked(row["phone"] or "")) for row in rows}


async def timeline(db: Executor, id_: int) -> Timeline | None:
    """One row with its tries, its statuses and what was done around it, oldest first; None: there is no such row."""
    record = await db.fetchrow(ONE, id_)
    if record is None:
        return None
    tries = tuple(Evidence(*line) for line in await db.fetch(TRIES, id_))
    return Timeline(
        _row(record), tries, tuple(await row_story.heard(db, id_)), tuple(await row_story.acts(db, id_))
    )


def _row(record: Iterable[Any]) -> Row:
    id_, campaign, phone, state, *rest = record
    return Row(id_, campaign, masked(phone or ""), State(state.decode()), *rest)
