"""The proof of the ceiling: how many sends lay in each window (t - 1 s, t], from the stamps that were kept.

Within an epoch all stamps are of one monotonic clock and the count is exact. Across epochs only the database's
clock joins them, each stamp within its own error; there a window counts as broken when it is even with every
error in favour of the engine.
"""

import math
from collections import deque
from dataclasses import dataclass

SECOND = 1_000_000
"""Microseconds, the unit of all times here."""


@dataclass(frozen=True, slots=True)
class Send:
    """One send. `mono` on its owner's clock, `db` on the database's, give or take `error`; rates per second."""

    epoch: int
    mono: int
    db: int
    error: int
    campaign: bool
    rate: float
    limit: float


@dataclass(frozen=True, slots=True)
class Breach:
    """A window that held more than it may; `at` is the last send's time on the database's clock."""

    at: int
    count: int
    allowed: int
    kind: str
    """rate, limit, or seam (the second in which a number changed hands)."""


def allowed(per_second: float) -> int:
    """Whole sends that one second may hold; one at least, or a slow number could never send."""
    return max(1, math.floor(per_second + 1e-9))


class Windows:
    """Checks one number's sends, fed in order of (epoch, mono). Memory: two windows."""

    def __init__(self) -> None:
        self.sends = 0
        self.breaches = 0
        self.first: Breach | None = None
        self.worst = 0
        """The most campaign sends of any window, and what that window allowed."""
        self.worst_allowed = 1
        self.worst_at: int | None = None
        self.busiest = 0
        """The most campaign sends of any window in plain number, whatever its share: the rate may have changed."""
        self.busiest_allowed = 1
        self.busiest_at: int | None = None
        self._window: deque[Send] = deque()
        self._campaign = 0
        self._tail: list[Send] = []
        self._epoch: int | None = None

    @property
    def share(self) -> float:
        """How much of its allowance the fullest window used: above 1 is a breach."""
        return self.worst / self.worst_allowed

    def add(self, send: Send) -> None:
        """The next send. Raises ValueError when it is out of order."""
        if self._epoch is not None and send.epoch < self._epoch:
            raise ValueError("sends must come in order of epoch")
        if send.epoch != self._epoch:
            self._turn(send)
        if self._window and send.mono < self._window[-1].mono:
            raise ValueError("sends of one epoch must come in order of time")
        self.sends += 1
        self._window.append(send)
        self._campaign += send.campaign
        while self._window[0].mono <= send.mono - SECOND:
            self._campaign -= self._window.popleft().campaign
        self._judge(send)
        if self._tail:
            self._judge_seam(send)

    def _turn(self, send: Send) -> None:
        """A new epoch: what the last one sent in its last window is kept, to be counted in with the first of this."""
        self._tail = [*self._tail, *self._window]
        self._window.clear()
        self._campaign = 0
        self._epoch = send.epoch

    def _judge(self, send: Send) -> None:
        if send.campaign:
            most = allowed(send.rate)
            if self._campaign * self.worst_allowed > self.worst * most:
                self.worst, self.worst_allowed, self.worst_at = self._campaign, most, send.db
            if self._campaign > self.busiest:
                self.busiest, self.busiest_allowed, self.busiest_at = self._campaign, most, send.db
            if self._campaign > most:
                self._breach(Breach(send.db, self._campaign, most, "rate"))
        if len(self._window) > allowed(send.limit):
            self._breach(Breach(send.db, len(self._window), allowed(send.limit), "limit"))

    def _judge_seam(self, send: Send) -> None:
        """Sends that certainly lie within one second of each other lie in one window, whoever sent them."""
        self._tail = [old for old in self._tail if old.db + old.error > send.db - send.error - SECOND]
        if not self._tail or not send.campaign:
            return
        latest = max(send.db, *(old.db + old.error for old in self._tail)) + send.error
        near = [s for s in (*self._tail, *self._window) if s.campaign and s.db - s.error > latest - SECOND]
        most = allowed(max((s.rate for s in near), default=send.rate))
        if len(near) > most and any(s.epoch != send.epoch for s in near):
            self._breach(Breach(send.db, len(near), most, "seam"))

    def _breach(self, breach: Breach) -> None:
        self.breaches += 1
        self.first = self.first or breach
