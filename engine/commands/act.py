"""What all acts share: one transaction, one line in the journal, one sentence back."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from engine.pause_file import PauseFiles
from engine.postgres import journal
from engine.postgres.journal import Entry
from engine.postgres.pool import Connection, Pool

KEPT_IDS = 500
"""More than a process can write between two looks at the journal."""


class Refused(Exception):
    """The act is not allowed, and nothing was changed. The message is one sentence: what and what to do."""


@dataclass(frozen=True, slots=True)
class Done:
    """An act that was carried out, or that had been already. `warnings`: sentences a person should read."""

    text: str
    already: bool = False
    before: str | None = None
    after: str | None = None
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "done": self.text,
            "already": self.already,
            "before": self.before,
            "after": self.after,
            "warnings": list(self.warnings),
        }


class Acts:
    """The common ground of the groups of commands."""

    def __init__(
        self,
        pool: Pool,
        *,
        author: str,
        origin: str,
        pauses: PauseFiles | None = None,
        unknown_floor: float = 0.0,
        request_deadline: float = 20.0,
        read_only: bool = False,
    ) -> None:
        """`pauses`: this machine's directory of kept pauses. `read_only`: every act is refused.

        The rest, in seconds: see Config.
        """
        self._pool = pool
        self._author = author
        self._origin = origin
        self._pauses = pauses
        self._unknown_floor = unknown_floor
        self._request_deadline = request_deadline
        self._read_only = read_only
        self.journalled: deque[int] = deque(maxlen=KEPT_IDS)
        """Ids of the newest entries of the journal that were written here."""

    def _must_be_allowed(self) -> None:
        """Raises Refused where only looking was asked for."""
        if self._read_only:
            raise Refused("This is read-only: open it without --read-only to act.")

    @asynccontextmanager
    async def _act(
        self, act: str, target: str, reason: str | None = None
    ) -> AsyncIterator[tuple[Connection, Entry]]:
        """A transaction that ends with its line in the journal; a refusal rolls it back and leaves a line, too."""
        self._must_be_allowed()
        entry = Entry(self._author, self._origin, act, target, reason)
        try:
            async with self._pool.acquire() as db, db.transaction():
                yield db, entry  # type: ignore[misc]  # the pool's proxy has all of a connection's methods
                self.journalled.append(await journal.write(db, entry))
        except Refused as refused:
            entry.result = f"refused: {refused}"
            self.journalled.append(await journal.note(self._pool, entry))
            raise
