"""The journal: who did what, when, and what came of it. Writing it tells the engines to look again."""

from dataclasses import dataclass
from datetime import datetime

from engine.postgres.pool import Executor

# One statement, so that no act can be kept without the engines hearing of it.
WRITE = """
WITH told AS (UPDATE control SET version = version + 1)
INSERT INTO journal (author, origin, act, target, before, after, reason, result)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""

NOTE = """
INSERT INTO journal (author, origin, act, target, before, after, reason, result)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""

TELL = "UPDATE control SET version = version + 1"

RECENT = """
SELECT at, author, origin, act, target, before, after, reason, result FROM journal
 WHERE $1::text IS NULL OR target = $1 ORDER BY id DESC LIMIT $2
"""


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


async def write(db: Executor, entry: Entry) -> None:
    """Keep the entry and raise control.version; belongs in the act's own transaction, as its last statement:
    the control row is shared by all, and must not be held for long."""
    await db.execute(WRITE, *entry.values())


async def note(db: Executor, entry: Entry) -> None:
    """Keep an entry that changed nothing: a refusal."""
    await db.execute(NOTE, *entry.values())


async def tell(db: Executor) -> None:
    """Raise control.version alone."""
    await db.execute(TELL)


async def recent(db: Executor, limit: int = 50, target: str | None = None) -> list[Kept]:
    """The newest entries first, of one target or all."""
    return [Kept(*row) for row in await db.fetch(RECENT, target, limit)]
