"""The journal: who did what, when, and what came of it. Writing it tells the engines to look again."""

from dataclasses import dataclass
from datetime import datetime

from engine.postgres.pool import Executor

# One statement, so that no act can be kept without the engines hearing of it.
WRITE = """
WITH told AS (UPDATE control SET version = version + 1)
INSERT INTO journal (author, origin, act, target, before, after, reason, result)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id
"""

NOTE = """
INSERT INTO journal (author, origin, act, target, before, after, reason, result)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id
"""

TELL = "UPDATE control SET version = version + 1"

RECENT = """
SELECT at, author, origin, act, target, before, after, reason, result, id FROM journal
 WHERE $1::text IS NULL OR target = $1 ORDER BY id DESC LIMIT $2
"""

SINCE = """
SELECT at, author, origin, act, target, before, after, reason, result, id FROM journal
 WHERE id > $1 ORDER BY id LIMIT $2
"""

NEWEST = "SELECT coalesce(max(id), 0) FROM journal"


@dataclass(slots=True)
class Entry:
    """One act. `before`, `after` and `result` are filled in while it is carried out."""

    author: str
    origin: str
    act: str
    target: str
    reason: str | None = None
    before: str | None = None
    after: str | None = None
    result: str = "done"

    def values(self) -> tuple[str | None, ...]:
        """In the order of the table's columns."""
        return (
            self.author, self.origin, self.act, self.target, self.before, self.after, self.reason, self.result
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kept:
    """A line of the journal as it was kept."""

    at: datetime
    author: str
    origin: str
    act: str
    target: str
    before: str | None
    after: str | None
    reason: str | None
    result: str
    id: int = 0


async def write(db: Executor, entry: Entry) -> int:
    """Keep the entry and raise control.version; belongs in the act's own transaction, as its last statement:
    the control row is shared by all, and must not be held for long. Returns its id."""
    return int(await db.fetchval(WRITE, *entry.values()))


async def note(db: Executor, entry: Entry) -> int:
    """Keep an entry that changed nothing: a refusal. Returns its id."""
    return int(await db.fetchval(NOTE, *entry.values()))


async def tell(db: Executor) -> None:
    """Raise control.version alone."""
    await db.execute(TELL)


async def recent(db: Executor, limit: int = 50, target: str | None = None) -> list[Kept]:
    """The newest entries first, of one target or all."""
    return [Kept(*row) for row in await db.fetch(RECENT, target, limit)]


async def since(db: Executor, after: int, limit: int) -> list[Kept]:
    """Entries with higher ids than `after`, oldest first."""
    return [Kept(*row) for row in await db.fetch(SINCE, after, limit)]


async def end(db: Executor) -> int:
    """The id of the newest entry; 0 without any."""
    return int(await db.fetchval(NEWEST))
