"""Who must not be written to. A row for each phone and scope; claims and marks look here."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from engine.domain.phone import twins
from engine.postgres.pool import Executor

# Sorted, so that batches with the same people wait for each other in one order. What stands there first stays.
ADD = """
INSERT INTO suppression (phone, scope, source, detail, at)
SELECT phone, scope, source, detail, at
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[]) AS u(phone, scope, source, detail, at)
 ORDER BY phone, scope
ON CONFLICT (phone, scope) DO NOTHING RETURNING phone
"""

REMOVE = """
DELETE FROM suppression WHERE phone = ANY($1) AND ($2::text IS NULL OR scope = $2) RETURNING phone
"""

# A wish to get marketing again takes back the same person's wish not to, and no decision of ours.
RESUME = """
DELETE FROM suppression s USING unnest($1::text[], $2::timestamptz[]) AS u(phone, at)
 WHERE s.phone = u.phone AND s.scope = 'marketing' AND s.source IN ('user_preferences', '131050') AND s.at <= u.at
"""

LIST = """
SELECT phone, scope, source, detail, at FROM suppression
 WHERE ($1::text IS NULL OR scope = $1) AND (phone, scope) > ($2, $3) ORDER BY phone, scope LIMIT $4
"""

COUNT = "SELECT count(*) FROM suppression WHERE $1::text IS NULL OR scope = $1"

PHONES = "SELECT id, phone FROM recipient_data WHERE id = ANY($1)"

# The array of a subquery hides its length, so that the plan is a look into the index of wamids.
PHONES_BY_WAMID = """
SELECT DISTINCT t.wamid, d.phone
  FROM (SELECT wamid, recipient_id FROM try WHERE wamid = ANY(ARRAY(SELECT unnest($1::text[])))) t
  JOIN LATERAL (SELECT phone FROM recipient_data WHERE id = t.recipient_id OFFSET 0) d ON true
"""


@dataclass(frozen=True, slots=True)
class OptOut:
    """One person to be suppressed. `scope`: marketing or all. `at`: when they said so; the phone is E.164."""

    phone: str
    scope: str
    source: str
    detail: str | None
    at: datetime

    def __repr__(self) -> str:
        return f"OptOut({self.scope}, {self.source})"


@dataclass(frozen=True, slots=True)
class Suppressed:
    """One line of the list."""

    phone: str
    scope: str
    source: str
    detail: str | None
    at: datetime

    def __repr__(self) -> str:
        return f"Suppressed({self.scope}, {self.source})"


async def add(db: Executor, people: Iterable[OptOut]) -> int:
    """Suppress people under every spelling of their number; how many rows are new."""
    lines = {
        (phone, one.scope): (phone, one.scope, one.source, one.detail, one.at)
        for one in people
        for phone in (one.phone, *twins(one.phone))
    }
    if not lines:
        return 0
    return len(await db.fetch(ADD, *(list(column) for column in zip(*lines.values(), strict=True))))


async def remove(db: Executor, phones: Iterable[str], scope: str | None = None) -> int:
    """Lift suppressions, under every spelling; None lifts both scopes. How many rows are gone."""
    return len(await db.fetch(REMOVE, _spellings(phones), scope))


async def resume_marketing(db: Executor, wishes: Collection[tuple[str, datetime]]) -> int:
    """People who want marketing again since then; how many rows are gone. What a person or a file put stays."""
    if not wishes:
        return 0
    pairs = [(phone, at) for one, at in wishes for phone in (one, *twins(one))]
    done = await db.execute(RESUME, [phone for phone, _ in pairs], [at for _, at in pairs])
    return int(done.split()[-1])


async def listing(
    db: Executor, scope: str | None = None, after: tuple[str, str] = ("", ""), most: int = 1000
) -> list[Suppressed]:
    """A page in order of phone and scope; `after`: the last line of the page before."""
    return [Suppressed(*row) for row in await db.fetch(LIST, scope, *after, most)]


async def count(db: Executor, scope: str | None = None) -> int:
    """How many lines there are."""
    return int(await db.fetchval(COUNT, scope))


async def phones_of(db: Executor, rows: Collection[int]) -> dict[int, str]:
    """The phone that each row was sent to."""
    return {row["id"]: row["phone"] for row in await db.fetch(PHONES, list(rows))} if rows else {}


async def phones_answered(db: Executor, wamids: Collection[str]) -> dict[str, str]:
    """The phone that each message of a campaign was sent to, by its wamid."""
    if not wamids:
        return {}
    return {row["wamid"]: row["phone"] for row in await db.fetch(PHONES_BY_WAMID, list(wamids))}


def _spellings(phones: Iterable[str]) -> list[str]:
    return sorted({spelling for phone in phones for spelling in (phone, *twins(phone))})
