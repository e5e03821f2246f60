"""Keeps about a quarter of a second of work ready for one number. Nothing is pushed: rows are claimed when there
is room for them, late, so that priority, pause and any other number can still have them."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime

import structlog

from engine.clock import now
from engine.domain.pacing import claim_ahead
from engine.domain.sharing import Candidate, Turns
from engine.observe.metrics import NodeFigures
from engine.postgres import claims
from engine.postgres.claims import LaneMark, Permission
from engine.postgres.desired import Campaign
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.sending.work import Work

IDLE_POLL = 0.25
"""Seconds before a campaign that had nothing ready is asked again."""

RESCAN = 30.0
"""Seconds after which a lane is read from its head again: rows of a slow import may have appeared behind us."""

_HEAD = datetime(1970, 1, 1, tzinfo=UTC)

log = structlog.get_logger()


class Claimer:
    """The ready rows of one number, and the loop that fills them up."""

    def __init__(
        self,
        db: Pool,
        permission: Permission,
        figures: NodeFigures,
        rate: Callable[[], float],
        campaigns: Callable[[], Collection[Campaign]],
        may_claim: Callable[[], bool],
    ) -> None:
        self._db = db
        self._permission = permission
        self._figures = figures
        self._rate = rate
        self._campaigns = campaigns
        self._may_claim = may_claim
        self.found_none = 0
        """Claims that the database answered with no row."""
        self._ready: deque[Work] = deque()
        self._turns = Turns()
        self._heads: dict[int, tuple[float, dict[int, LaneMark]]] = {}
        self._idle_until: dict[int, float] = {}
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._news = asyncio.Event()

    async def take(self) -> Work:
        """The next ready row; waits for one."""
        while not self._ready:
            self._arrived.clear()
            await self._arrived.wait()
        work = self._ready.popleft()
        self._room.set()
        return work

    def put_back(self, work: Work) -> None:
        """A row that was taken and not used."""
        self._ready.appendleft(work)

    def rows(self) -> list[Work]:
        """What lies ready."""
        return list(self._ready)

    def drop(self, unwanted: Callable[[Work], bool]) -> list[Work]:
        """Remove and return the ready rows that are no longer wanted; the caller gives them back."""
        dropped = [work for work in self._ready if unwanted(work)]
        self._ready = deque(work for work in self._ready if not unwanted(work))
        return dropped

    def nudge(self) -> None:
        """Something changed (a campaign started, a lane opened): look at once."""
        self._idle_until.clear()
        self._room.set()
        self._news.set()

    async def run(self) -> None:
        """Fill up for ever."""
        while True:
            ahead = claim_ahead(self._rate())
            if not self._may_claim() or len(self._ready) > ahead // 2:
                await _set_within(IDLE_POLL, self._room)
            elif not await self._claim_some(ahead - len(self._ready)):
                await _set_within(IDLE_POLL, self._news)

    async def _claim_some(self, room: int) -> bool:
        try:
            return await self._claim_most_urgent(room)
        except DATABASE_FAULTS as error:
            log.warning("claim failed", number=self._permission.number_id, error=type(error).__name__)
            return False

    async def _claim_most_urgent(self, room: int) -> bool:
        by_id = {c.campaign_id: c for c in self._campaigns() if c.lanes and not self._idle(c.campaign_id)}
        candidates = [Candidate(c.campaign_id, c.priority, c.deadline) for c in by_id.values()]
        for candidate in self._turns.order(candidates, now()):
            count = await self._claim(by_id[candidate.campaign_id], room)
            if count < room:
                self._idle_until[candidate.campaign_id] = self._time() + IDLE_POLL
            if count:
                return True
        return False

    async def _claim(self, campaign: Campaign, room: int) -> int:
        started = self._time()
        heads = self._lane_heads(campaign, started)
        lanes = [heads.get(lane, LaneMark(lane, _HEAD, 0)) for lane in campaign.lanes]
        rows, moved = await claims.claim(
            self._db, self._permission, lanes, room, marketing=campaign.category == "marketing"
        )
        at = self._time()
        self._figures.claim_time.add(at, at - started)
        heads.update({mark.lane_id: mark for mark in moved})
        if not rows and heads:
            self._heads.pop(
                campaign.campaign_id
            )  # drained to here: what came in behind us is found next time
        self._turns.serve(campaign.campaign_id, len(rows))
        self._ready.extend(Work(row, campaign, self._permission, at) for row in rows)
        if rows:
            self._arrived.set()
        else:
            self.found_none += 1
        return len(rows)

    def _lane_heads(self, campaign: Campaign, at: float) -> dict[int, LaneMark]:
        since, heads = self._heads.get(campaign.campaign_id, (at, {}))
        if at - since > RESCAN:
            since, heads = at, {}
        self._heads[campaign.campaign_id] = (since, heads)
        return heads

    def _idle(self, campaign_id: int) -> bool:
        return self._idle_until.get(campaign_id, 0.0) > self._time()

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()


async def _set_within(seconds: float, event: asyncio.Event) -> None:
    """Wait for the event, at most so long, and clear it."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
    event.clear()
