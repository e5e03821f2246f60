"""Why nothing may leave a number now: the stops of an owner, of people, of the provider and of the database.

drain, lease, a hold that needs a person   both lanes, at once and for long
a pause by a person, rate 0                campaigns
silence that the provider asked for        both lanes, for a while: marked rows wait it out when it is short
results or marks that cannot be written    campaigns take no new work
"""

import asyncio
from abc import ABC, abstractmethod

from engine.clock import boottime
from engine.observe.metrics import NumberFigures
from engine.postgres.desired import Number
from engine.sending.provider import Provider
from engine.sending.shared import Shared
from engine.sending.work import Work

PATIENCE_AT_GATE = 2.0
"""Seconds of silence that marked rows wait out; for longer ones they go back to pending."""

UNTIL_WRITTEN = 2.0
"""Seconds for which a stop from here holds although the database does not tell of it: its row is being written."""


class Stops(ABC):
    """The state of one owned number's stops; a pipeline is built on it."""

    def __init__(self, shared: Shared, number: Number, lease_until: float, figures: NumberFigures) -> None:
        self.number = number
        self.lease_until = lease_until
        """On the boottime clock: nothing may leave from then on."""
        self.paused_here = False
        """Set by an act in this process before the database knows."""
        self.held: str | None = None
        """Why a person must look before this number sends again."""
        self._held_here_until = 0.0
        self.provider = Provider(number.ceiling, figures)
        self._shared = shared
        self._time = asyncio.get_running_loop().time
        self._probe: int | None = None
        self._probe_left = False
        self._opens_at = 0.0
        self._stopping = False

    @abstractmethod
    def nudge(self) -> None:
        """Look again at once."""

    @abstractmethod
    def _withdraw(self, reason: str) -> None:
        """Marked rows that have not left go back."""

    def stopped(self) -> str | None:
        """Why no request may leave now, or None: the last check before a hand-over."""
        if self._probe is None and (why := self.unfit()) is not None:
            return why
        if self.paused_here or self.number.paused or self.number.rate <= 0:
            return "the number is paused"
        return self._gone()

    def unfit(self) -> str | None:
        """Why nothing may leave, be it for a campaign or for a conversation: drain, lease, a hold of the number."""
        return self._gone() or self.held

    def _gone(self) -> str | None:
        if self._stopping:
            return "the node drains"
        return "the lease ran out" if boottime() >= self.lease_until else None

    def closed(self) -> str | None:
        """Why no row may be taken now: hold, provider, database; None while it may."""
        if self.stopped() is not None or self._probe_left:
            return "hold"
        if self._silent_for() > 0:
            return "provider"
        shared = self._shared
        reachable = shared.connected() and shared.writer.healthy and shared.marker.healthy
        return None if reachable else "database"

    def _silent_for(self) -> float:
        return max(0.0, max(self.provider.silent_until, self._opens_at) - self._time())

    def _closed_for_long(self) -> bool:
        """Whether work that is ready, or marked already, should go back to pending."""
        return self.stopped() is not None or self._silent_for() > PATIENCE_AT_GATE

    @property
    def silent_for(self) -> float:
        """Seconds that the provider's silence goes on."""
        return max(0.0, self.provider.silent_until - self._time())

    def pause_here(self) -> None:
        """Stop at once, before the database knows: nothing leaves after this line."""
        self.paused_here = True
        self._withdraw("the number is paused")

    def stop_here(self, reason: str) -> None:
        """Stop at once for what must be lifted, before its row is written."""
        self.held = reason
        self._held_here_until = self._time() + UNTIL_WRITTEN
        self._withdraw(reason)

    def probe(self, breaker_id: int) -> bool:
        """Let one row through, to see whether what stopped this number is mended; False when it cannot."""
        if self._probe is not None or self.held is None:
            return False
        self._probe, self._probe_left = breaker_id, False
        if self.stopped() is not None:  # paused, or draining: no probe either
            self._probe = None
            return False
        self.nudge()
        return True

    def silence(self, seconds: float, reason: str) -> None:
        """Nothing leaves for so long: the provider said so."""
        self.provider.silent_until = max(self.provider.silent_until, self._time() + seconds)
        if seconds > PATIENCE_AT_GATE:
            self._withdraw(reason)

    def _probe_with(self, work: Work) -> None:
        if self._probe is not None:
            work.probe, self._probe_left = self._probe, True

    def _probe_over(self, work: Work, *, accepted: bool) -> None:
        if work.probe is not None:
            self._probe, self._probe_left = None, False
            self._shared.probed(work.probe, accepted)
