"""Figures that only the database knows, polled by the engine for everybody who looks."""

import asyncio
from collections import deque

import structlog

from engine.domain.recipient import State
from engine.observe.metrics import Histogram
from engine.postgres import books, figures, webhooks
from engine.postgres.books import Tallies
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.figures import InFlight
from engine.postgres.pool import Pool
from engine.postgres.webhooks import Backlog

BOOKS_EVERY = 1.0
IN_FLIGHT_EVERY = 5
"""Rounds of BOOKS_EVERY."""

SLOW = 0.25
"""Seconds that the books may take before the database is called slow."""

PACE_SECONDS = 60.0

log = structlog.get_logger()


class DatabaseFigures:
    """The newest answers; what is not known yet is empty."""

    def __init__(self, db: Pool) -> None:
        self.planned: dict[int, int] = {}
        self.counts: dict[int, dict[State, int]] = {}
        self.tallies: dict[int, Tallies] = {}
        self.in_flight: dict[int, InFlight] = {}
        self.inbox = Backlog(0, 0.0)
        self.database = "ok"
        self.round_trip = Histogram()
        self._db = db
        self._settled: dict[int, deque[tuple[float, int]]] = {}

    def pace(self, campaign_id: int) -> float | None:
        """Rows a second that left the open work of a campaign during the last minute; None when not known."""
        history = self._settled.get(campaign_id)
        if not history or history[-1][0] - history[0][0] < 2.0:
            return None
        (first, before), (last, after) = history[0], history[-1]
        return (after - before) / (last - first)

    async def run(self) -> None:
        """Ask for ever."""
        time = asyncio.get_running_loop().time
        beat = 0
        while True:
            started = time()
            try:
                await self._read_books()
                self.inbox = await webhooks.backlog(self._db)
                took = time() - started
                if beat % IN_FLIGHT_EVERY == 0:
                    self.in_flight = await figures.in_flight(self._db)
                self.round_trip.add(time(), took)
                self.database = "slow" if took > SLOW else "ok"
                self._remember(started)
                beat += 1
            except DATABASE_FAULTS:
                self.database = "away"
            await asyncio.sleep(BOOKS_EVERY)

    async def _read_books(self) -> None:
        """Of one moment: what was planned and what is counted must be comparable."""
        async with self._db.acquire() as db, db.transaction(isolation="repeatable_read", readonly=True):
            self.planned = await figures.planned(db)
            self.counts = await books.balances(db)
            self.tallies = await books.tallies(db)

    def _remember(self, now: float) -> None:
        for campaign_id, counts in self.counts.items():
            waiting = sum(counts[state] for state in (State.PENDING, State.CLAIMED, State.SENDING))
            history = self._settled.setdefault(campaign_id, deque())
            history.append((now, sum(counts.values()) - waiting))
            while history and history[0][0] < now - PACE_SECONDS:
                history.popleft()
