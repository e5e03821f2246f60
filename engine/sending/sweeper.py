"""Puts a number's rows in order while it is worked: claimed rows that are not wanted now go back, and rows that
nobody has in hand (an answer of the database was lost, say) are settled."""

import asyncio
from collections.abc import Callable, Collection

import structlog

from engine.postgres import claims
from engine.postgres.claims import Permission
from engine.postgres.desired import Campaign, Number
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.sending.claimer import Claimer
from engine.sending.pacer import Pacer
from engine.sending.work import Work

BEAT = 1.0
SWEEP_EVERY = 5
"""Beats."""

GRACE = 10.0
"""Seconds beyond the request's deadline after which a row in `sending` that nobody has in hand is unknown."""

log = structlog.get_logger()


class Sweeper:
    """One owned number's. `closed_for_long`: nothing will be taken for a while, so nothing is kept either."""

    def __init__(
        self,
        db: Pool,
        permission: Permission,
        number: Number,
        claimer: Claimer,
        pacer: Pacer,
        campaigns: Callable[[], Collection[Campaign]],
        closed_for_long: Callable[[], bool],
        in_hand: Callable[[], Collection[int]],
        request_deadline: float,
    ) -> None:
        self._db = db
        self._permission = permission
        self._number = number
        self._claimer = claimer
        self._pacer = pacer
        self._campaigns = campaigns
        self._closed_for_long = closed_for_long
        self._in_hand = in_hand
        self._older_than = request_deadline + GRACE

    async def run(self) -> None:
        """Once a second: no claimed row lies on the shelf of a number or campaign that is stopped.
        Every five: rows of ours that nobody has in hand are settled."""
        beat = 0
        while True:
            await asyncio.sleep(BEAT)
            beat += 1
            await self._give_back(self._claimer.drop(self._is_unwanted))
            if beat % SWEEP_EVERY == 0:
                await self._sweep()

    async def empty(self) -> None:
        """Give back all that lies ready, the row that the pacer held, and what a claim brought that was cut off before
        its answer came. The loops of pacer and claimer have ended."""
        rows = self._claimer.drop(lambda _: True)
        if self._pacer.holding is not None:
            rows.append(self._pacer.holding)
            self._pacer.holding = None
        await self._give_back(rows)
        await self._settle(self._in_hand(), claimed_for=0.0)

    def _is_unwanted(self, work: Work) -> bool:
        if self._closed_for_long():
            return True
        return all(work.campaign.campaign_id != campaign.campaign_id for campaign in self._campaigns())

    async def _give_back(self, rows: list[Work]) -> None:
        if not rows:
            return
        try:
            await claims.give_back(self._db, self._permission, [work.row.id for work in rows])
        except DATABASE_FAULTS as error:  # the sweep, or the next owner's rescue, finds them
            log.warning("claimed rows not given back", rows=len(rows), error=type(error).__name__)

    async def _sweep(self) -> None:
        held = [work.row.id for work in self._claimer.rows()]
        if self._pacer.holding is not None:
            held.append(self._pacer.holding.row.id)
        await self._settle([*held, *self._in_hand()])

    async def _settle(self, held: Collection[int], *, claimed_for: float = claims.CLAIM_ANSWERED) -> None:
        try:
            freed, doubted = await claims.sweep(
                self._db, self._permission, list(held), self._older_than, claimed_for=claimed_for
            )
        except DATABASE_FAULTS:  # looked for again, here or by the next owner
            return
        if freed or doubted:
            log.warning("rows without a hand", number=self._number.id, freed=freed, doubted=doubted)
