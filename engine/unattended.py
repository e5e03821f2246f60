"""The picture while no engine lives: numbers, campaigns and their books are rows, whoever runs or does not."""

import asyncio
from dataclasses import replace

from engine.domain.snapshot import Snapshot
from engine.observe.figures import BOOKS_EVERY, DatabaseFigures
from engine.observe.metrics import NodeFigures
from engine.postgres import desired
from engine.postgres.pool import Pool
from engine.views import Viewer
from engine.watch import Watch

OF_THE_DATABASE = (
    "numbers", "campaigns", "stuck", "unknown", "webhook_lag_s", "inbox_backlog", "holds", "oldest_transaction",
    "version",
)  # fmt: skip
"""Fields of a snapshot that are true without any node."""


class Unattended:
    """Reads what the database alone knows. What only a node knows (pace, waits, forecasts) is left empty."""

    def __init__(self, db: Pool, author: str) -> None:
        self._db = db
        figures = NodeFigures()
        self._database = DatabaseFigures(db)
        self._viewer = Viewer(None, author, figures, self._database)
        self._watch = Watch(figures, self._database)
        self._beat = 0
        self._read_at = float("-inf")
        self._latest: Snapshot | None = None

    async def look(self) -> Snapshot:
        """As the rows stand, at most BOOKS_EVERY old. Raises what the database raises."""
        at = asyncio.get_running_loop().time()
        if self._latest is None or at - self._read_at >= BOOKS_EVERY:
            await self._database.read(self._beat)
            wanted = await desired.read(self._db)
            bare = self._viewer.snapshot(0, wanted, {}, {}, {}, draining=False, read_only=True)
            self._latest = _without_forecasts(self._watch.complete(bare, wanted))
            self._beat, self._read_at = self._beat + 1, at
        return self._latest


def _without_forecasts(snapshot: Snapshot) -> Snapshot:
    """Nobody sends: there is no pace to reckon by."""
    campaigns = tuple(replace(c, eta_s=None, late=None) for c in snapshot.campaigns)
    return replace(snapshot, campaigns=campaigns)
