"""Marks rows as sending before their requests leave: one group-committing marker for all numbers of a node.

A flush leaves at least FLUSH seconds after the one before, so that at 1,000 sends/s there are 80-90 commits/s and
not 1,000. The rows of a flush that fails are asked for again: the statement can be repeated.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from engine.observe.metrics import NodeFigures
from engine.postgres import claims
from engine.postgres.claims import Ask
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.sending.work import Work

FLUSH = 0.010
LARGEST = 500
RETRY = 0.25

log = structlog.get_logger()

Verdict = Callable[[Work, str], None]


@dataclass(frozen=True, slots=True)
class _Waiting:
    work: Work
    tell: Verdict


class Marker:
    """Takes rows in, tells each one's verdict to the number that sent it in. Never drops one silently."""

    def __init__(self, db: Pool, figures: NodeFigures) -> None:
        self._db = db
        self._figures = figures
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self.healthy = True

    def put(self, work: Work, tell: Verdict) -> None:
        """Mark this row soon. `tell` gets the verdict of `claims.mark`; gone when the row was not found."""
        self._waiting.append(_Waiting(work, tell))
        self._wake.set()

    async def run(self) -> None:
        """Flush for ever."""
        time = asyncio.get_running_loop().time
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch, self._waiting = self._waiting[:LARGEST], self._waiting[LARGEST:]
                started = time()
                self._figures.stalls.began("mark", started)
                verdicts = await self._mark(batch)
                self._figures.stalls.ended("mark", time())
                self._figures.marked(time(), time() - started)
                for item in batch:
                    work = item.work
                    work.marked_at = started
                    item.tell(work, verdicts.get((work.row.id, work.permission.epoch), "gone"))
                await asyncio.sleep(max(0.0, FLUSH - (time() - started)))

    async def _mark(self, batch: list[_Waiting]) -> dict[tuple[int, int], str]:
        asks = [
            Ask(w.row.id, w.permission, w.n, w.row.phone, w.template_key, w.spaced)
            for w in (item.work for item in batch)
        ]
        while True:
            try:
                verdicts = await claims.mark(self._db, asks)
            except DATABASE_FAULTS as error:
                if self.healthy:
                    log.warning("marks wait for the database", rows=len(asks), error=type(error).__name__)
                self.healthy = False
                await asyncio.sleep(RETRY)
                continue
            self.healthy = True
            return verdicts
