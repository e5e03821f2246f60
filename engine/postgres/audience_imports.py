"""What each import left to be known: its counts, and a doubt that a person has to settle before the start."""

from dataclasses import dataclass

from engine.postgres.pool import Executor

RECORD = """
INSERT INTO audience_import (campaign_id, author, file, lines, taken, aside, refused, folded, already, blank, doubt,
                             confirmed_at, confirmed_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
        CASE WHEN $12 THEN clock_timestamp() END, CASE WHEN $12 THEN $2 END)
"""

DOUBTS = """
SELECT file, doubt FROM audience_import
 WHERE campaign_id = $1 AND doubt IS NOT NULL AND confirmed_at IS NULL ORDER BY import_id
"""

CONFIRM = """
UPDATE audience_import SET confirmed_at = clock_timestamp(), confirmed_by = $2
 WHERE campaign_id = $1 AND doubt IS NOT NULL AND confirmed_at IS NULL
"""

TOTALS = """
SELECT count(*)::int AS files, coalesce(sum(lines), 0)::bigint AS lines, coalesce(sum(refused), 0)::bigint AS refused,
       coalesce(sum(folded), 0)::bigint AS folded, coalesce(sum(already), 0)::bigint AS already,
       coalesce(sum(blank), 0)::bigint AS blank
  FROM audience_import WHERE campaign_id = $1
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one import. Counts are lines of its file; `aside` of those taken wait for a person."""

    author: str
    file: str
    lines: int
    taken: int
    aside: int
    refused: int
    folded: int
    already: int
    blank: int
    doubt: str | None = None
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """`reason` is a clause: one number stands in 57 of 60 lines."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Totals:
    """All imports of a campaign together, in lines."""

    files: int
    lines: int
    refused: int
    folded: int
    already: int
    blank: int


async def record(db: Executor, campaign_id: int, facts: Facts) -> None:
    """Keep the facts of one import."""
    await db.execute(
        RECORD, campaign_id, facts.author, facts.file, facts.lines, facts.taken, facts.aside, facts.refused,
        facts.folded, facts.already, facts.blank, facts.doubt, facts.doubt is not None and facts.confirmed,
    )  # fmt: skip


async def doubts(db: Executor, campaign_id: int) -> list[Doubt]:
    """Those that nobody has confirmed, oldest first."""
    return [Doubt(*row) for row in await db.fetch(DOUBTS, campaign_id)]


async def confirm(db: Executor, campaign_id: int, author: str) -> None:
    """A person has looked at all of them."""
    await db.execute(CONFIRM, campaign_id, author)


async def totals(db: Executor, campaign_id: int) -> Totals:
    """Of all its imports."""
    return Totals(*(await db.fetchrow(TOTALS, campaign_id) or ()))
