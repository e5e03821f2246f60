"""The loop that gives one number its pace: take a ready row, wait for a slot, for room at the gate, for a permit."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from engine.domain.pacing import in_flight_bound, lead_room
from engine.observe.metrics import NumberFigures
from engine.sending.claimer import Claimer
from engine.sending.limiter import Limiter
from engine.sending.work import Work

PROVIDER_LATENCY = 1.0
"""Seconds assumed for the bound on open requests until answers have been measured."""


class Door(Protocol):
    """What the pacer needs to know of its number."""

    @property
    def rate(self) -> float:
        """messages/s, above 0 while open."""

    @property
    def in_flight(self) -> int:
        """Requests that have left and are not answered."""

    @property
    def leading(self) -> int:
        """Rows that have a permit and have not left."""

    def closed(self) -> str | None:
        """Why no work may be taken now (hold, provider, database), or None."""

    async def warmed(self) -> None:
        """Returns when connections stand ready: at once, but before the first row and after a long rest."""


class Pacer:
    """Takes rows from the claimer and hands them on, one permit each."""

    def __init__(
        self,
        door: Door,
        claimer: Claimer,
        limiter: Limiter,
        figures: NumberFigures,
        hand_on: Callable[[Work], None],
    ) -> None:
        self._door = door
        self._claimer = claimer
        self._limiter = limiter
        self._figures = figures
        self._hand_on = hand_on
        self._moved = asyncio.Event()
        self._p95 = (0.0, PROVIDER_LATENCY)
        self.holding: Work | None = None
        """The row between the shelf and the marker."""

    def nudge(self) -> None:
        """Something that the pacer may wait for has changed: a slot, the gate, a pause."""
        self._moved.set()

    async def run(self) -> None:
        """Pace for ever."""
        time = asyncio.get_running_loop().time
        while True:
            if (reason := self._in_the_way()) is not None:
                await self._wait(reason)
                continue
            started = time()
            self.holding = work = await self._claimer.take()
            taken = time()
            self._figures.waited("rows", taken - started)
            await self._door.warmed()
            await self._limiter.permit()
            permitted = time()
            self._figures.waited("bucket", permitted - taken)
            self.holding = None
            if self._door.closed() is not None:
                self._claimer.put_back(work)
                continue
            self._figures.token_wait.add(permitted, permitted - work.ready_at)
            self._hand_on(work)

    def _in_the_way(self) -> str | None:
        door = self._door
        if (closed := door.closed()) is not None:
            return closed
        if door.in_flight + door.leading >= self.slots():
            return "slots"
        return "database" if door.leading >= lead_room(door.rate) else None

    def slots(self) -> int:
        """How many requests may be open at once."""
        now = asyncio.get_running_loop().time()
        at, p95 = self._p95
        if now - at > 1.0:  # percentiles are not free: once a second is enough
            latency = self._figures.latency.percentiles(now)
            p95 = max(latency.p95, 0.05) if latency else PROVIDER_LATENCY
            self._p95 = (now, p95)
        return in_flight_bound(self._door.rate, p95)

    async def _wait(self, reason: str) -> None:
        time = asyncio.get_running_loop().time
        started = time()
        self._moved.clear()
        try:
            async with asyncio.timeout(0.25):
                await self._moved.wait()
        except TimeoutError:
            pass
        self._figures.waited(reason, time() - started)
