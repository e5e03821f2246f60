"""Figures that only the database knows, polled by the engine for everybody who looks."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import structlog

from engine.domain.control import ControlSend
from engine.domain.recipient import State
from engine.domain.snapshot import OldTransaction
from engine.domain.thresholds import DEFAULTS, Thresholds
from engine.observe.metrics import Histogram
from engine.observe.outcomes import Delivered, Growth, Progress
from engine.observe.stalls import Stalls
from engine.postgres import books, controls, figures, webhooks
from engine.postgres.books import Tallies
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.figures import InFlight
from engine.postgres.pool import Pool
from engine.postgres.webhooks import Backlog

BOOKS_EVERY = 1.0
IN_FLIGHT_EVERY = 5
DELIVERED_EVERY = 10
"""Rounds of BOOKS_EVERY."""

DUE_FOR = 20.0
"""Seconds that an answer about due rows is true; a new one comes every IN_FLIGHT_EVERY rounds."""

SLOW = 0.25
"""Seconds that the books may take before the database is called slow."""

WARM_AFTER = 5
"""Rounds before which nothing is said of the database: the first fill its caches, and its plans."""

log = structlog.get_logger()


class DatabaseFigures:
    """The newest answers; what is not known yet is empty."""

    def __init__(self, db: Pool, thresholds: Thresholds = DEFAULTS, commits: Stalls | None = None) -> None:
        self.planned: dict[int, int] = {}
        self.counts: dict[int, dict[State, int]] = {}
        self.tallies: dict[int, Tallies] = {}
        self.in_flight: dict[int, InFlight] = {}
        self.inbox = Backlog(0, 0.0)
        self.database = "ok"
        self.round_trip = Histogram()
        self.last_statuses: dict[str, datetime] = {}
        """By Meta's number id."""
        self.oldest_transaction: OldTransaction | None = None
        self.blocker: OldTransaction | None = None
        """Whoever held, while our commits waited, the lock that they waited for."""
        self.progress = Progress()
        self.unknown_growth = Growth()
        self.delivered = Delivered(thresholds.delivered_norm_share)
        self.held: dict[int, dict[str, int]] = {}
        """Pending rows by what holds their lane, by campaign_id."""
        self.controls: Mapping[int, Sequence[ControlSend]] = {}
        """What control phones were sent, by campaign_id."""
        self._db = db
        self._commits = commits or Stalls()
        self._delivered_after = thresholds.delivered_after_s
        self._due: dict[int, int] = {}
        self._due_at = float("-inf")

    @property
    def pool(self) -> tuple[int, int, int]:
        """Connections to the database: in use, idle, at most."""
        size, idle = self._db.get_size(), self._db.get_idle_size()
        return size - idle, idle, self._db.get_max_size()

    def pace(self, campaign_id: int) -> float | None:
        """Rows a second that left the open work of a campaign during the last minute; None when not known."""
        return self.progress.pace(campaign_id)

    def lanes_due(self, now: float) -> Collection[int]:
        """Lanes with rows that could be sent; none while the database does not say."""
        return self._due if self.database != "away" and now - self._due_at < DUE_FOR else ()

    async def run(self) -> None:
        """Ask for ever."""
        beat = 0
        while True:
            try:
                await self.read(beat)
                beat += 1
            except DATABASE_FAULTS:
                self.database = "away"
            await asyncio.sleep(BOOKS_EVERY)

    async def read(self, beat: int) -> None:
        """One round, the `beat`-th: the dearer questions are asked in few of them. Raises what the database raises."""
        time = asyncio.get_running_loop().time
        started = time()
        await self._read_books()
        self.inbox = await webhooks.backlog(self._db)
        took = time() - started
        self.last_statuses = await figures.last_statuses(self._db)
        if beat % IN_FLIGHT_EVERY == 0:
            await self._read_rows(time())
        if beat % DELIVERED_EVERY == 0:
            self.delivered.see(await figures.delivered(self._db, self._delivered_after))
        self.round_trip.add(time(), took)
        waiting = self._commits.wait(time())
        self.blocker = (await figures.blocker(self._db) or self.blocker) if waiting else None
        self.database = "slow" if (took > SLOW or waiting) and beat >= WARM_AFTER else "ok"
        self.progress.see(started, self.counts, set(self._due.values()))

    async def _read_books(self) -> None:
        """Of one moment: what was planned and what is counted must be comparable."""
        async with self._db.acquire() as db, db.transaction(isolation="repeatable_read", readonly=True):
            self.planned = await figures.planned(db)
            self.counts = await books.balances(db)
            self.tallies = await books.tallies(db)
            self.held = await books.held_rows(db)

    async def _read_rows(self, now: float) -> None:
        self.in_flight = await figures.in_flight(self._db)
        self.unknown_growth.see(now, {number: rows.unknown for number, rows in self.in_flight.items()})
        self._due, self._due_at = await figures.due(self._db), now
        self.controls = await controls.sends(self._db)
        self.oldest_transaction = await figures.oldest_transaction(self._db)
