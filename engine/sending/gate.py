"""The last door of a number: the window is counted here, at the moment of leaving, after the mark.

Counting permits instead, or marking before the window, breaks the ceiling: a slow commit bunches what was spaced.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter

from engine.domain.pacing import SlidingWindow
from engine.postgres.send_log import Stamps
from engine.sending.database_clock import DatabaseClock
from engine.sending.work import Work

LONGEST_SLEEP = 0.05
"""Seconds between looks while the window is full: a pause or a new rate acts within this."""


CAMPAIGN, CONVERSATION = "c", "v"
"""The two lanes of a number, as the send log names them."""


class Gate:
    """A queue of marked rows and the windows that let them out.

    Campaigns keep within the rate; campaigns and conversations together within the provider's limit. Conversations
    go first: while one waits, its place in the limit is not given to a campaign.
    """

    def __init__(
        self,
        rate: Callable[[], float],
        limit: Callable[[], float],
        silent_for: Callable[[], float],
        start: Callable[[Work], None],
    ) -> None:
        """`silent_for`: seconds during which the provider asked for silence, 0 for none."""
        self.window = SlidingWindow()
        self.everything = SlidingWindow()
        self._limit = limit
        self._talking = 0
        self._talking_through = 0
        self._talk = asyncio.Lock()
        self._rate = rate
        self._silent_for = silent_for
        self._start = start
        self._queue: deque[Work] = deque()
        self._let_through = 0
        self._wake = asyncio.Event()
        self._stamps: list[tuple[float, float, str]] = []

    def seed(self, predecessor: list[float]) -> None:
        """Moments of a predecessor's last sends, of whichever lane: they count in both windows."""
        self.window.seed(predecessor)
        self.everything.seed(predecessor)

    def put(self, work: Work) -> None:
        """A marked row wants to leave."""
        self._queue.append(work)
        self._wake.set()

    def __len__(self) -> int:
        return len(self._queue)

    def withdraw(self) -> list[Work]:
        """Empty the queue: these rows are marked and will not leave."""
        rows = list(self._queue)
        self._queue.clear()
        return rows

    def leave(self, work: Work) -> None:
        """Stamp one send; to be called in the line before it is handed to its connection."""
        work.sent_at = asyncio.get_running_loop().time()
        self._let_through -= 1
        self.window.stamp(work.sent_at)
        self.everything.stamp(work.sent_at)
        self._stamps.append((work.sent_at, work.rate, CAMPAIGN))

    def stay(self) -> None:
        """A row that was let through does not leave after all."""
        self._let_through -= 1

    async def run(self) -> None:
        """Let rows out for ever, in order, each as soon as its window has room."""
        time = asyncio.get_running_loop().time
        while True:
            if not self._queue:
                self._wake.clear()
                await self._wake.wait()
                continue
            rate = self._rate()
            delay = max(
                self._silent_for(),
                self.window.delay(time(), rate, self._let_through),
                self._room_in_limit(time(), self._talking),
            )
            if delay > 0:
                await asyncio.sleep(min(delay, LONGEST_SLEEP))
                continue
            self._let_through += 1
            work = self._queue.popleft()
            work.rate = rate  # the rate it was let through by, should another be set before it leaves
            self._start(work)

    async def admit_conversation(self, patience: float) -> bool:
        """Wait for a place in the limit, at most `patience` seconds; whether there is one. `leave_conversation` (or
        `stay_conversation`) must follow."""
        time = asyncio.get_running_loop().time
        self._talking += 1
        try:
            async with asyncio.timeout(patience), self._talk:  # one after another, in order
                while (delay := max(self._silent_for(), self._room_in_limit(time(), 0))) > 0:
                    await asyncio.sleep(min(delay, LONGEST_SLEEP))
                self._talking_through += 1
                return True
        except TimeoutError:
            return False
        finally:
            self._talking -= 1

    def leave_conversation(self) -> None:
        """Stamp a conversational send, in the line before its hand-over."""
        now = asyncio.get_running_loop().time()
        self._talking_through -= 1
        self.everything.stamp(now)
        self._stamps.append((now, self._rate(), CONVERSATION))

    def conversations_last_second(self) -> int:
        """Conversational sends of the last second."""
        now = asyncio.get_running_loop().time()
        return self.everything.count_last_second(now) - self.window.count_last_second(now)

    def stay_conversation(self) -> None:
        """It was let through and does not leave after all."""
        self._talking_through -= 1

    def _room_in_limit(self, now: float, talking: int) -> float:
        through = self._let_through + self._talking_through + talking
        return self.everything.delay(now, self._limit(), through)

    def cut(self, number_id: int, epoch: int, limit: float, clock: DatabaseClock) -> list[Stamps]:
        """The stamps since the last cut, for the send log: one batch for each rate and lane."""
        taken, self._stamps = self._stamps, []
        batches = []
        by_lane = sorted(taken, key=itemgetter(2))  # stable: within a lane the order of time stays
        for (lane, rate), group in groupby(by_lane, key=itemgetter(2, 1)):
            times = [at for at, _, _ in group]
            base_db, err_us = clock.at(times[0])
            offsets = tuple(round((at - times[0]) * 1e6) for at in times)
            batches.append(
                Stamps(number_id, epoch, lane, rate, limit, round(times[0] * 1e6), base_db, err_us, offsets)
            )
        return batches
