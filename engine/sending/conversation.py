"""Conversations first: one message of a client's own, through the same windows, ahead of every campaign."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from engine.clients.whatsapp import Passed, WhatsApp
from engine.domain.gateway import Reply, recipient_of, refusal
from engine.domain.outcome import Ambiguous, NotSent
from engine.sending.gate import Gate

PAIR_SPACING = 6.0
"""Seconds between two messages from a number to one person: more often the provider refuses (131056)."""


class Conversations:
    """Of one owned number. `unfit` says why nothing may leave now for either lane, or None."""

    def __init__(
        self,
        whatsapp: WhatsApp,
        gate: Gate,
        number: str,
        unfit: Callable[[], str | None],
        silent_for: Callable[[], float],
        answered: Callable[[Passed], None],
    ) -> None:
        self._whatsapp = whatsapp
        self._gate = gate
        self._number = number
        self._unfit = unfit
        self._silent_for = silent_for
        self._answered = answered
        self.open = 0
        """Requests that have left and are not answered."""
        self._written: OrderedDict[str, float] = OrderedDict()

    def wrote_lately(self, phone: str) -> bool:
        """Whether a message to this person left within the time in which the provider takes no second one."""
        return self._time() - self._written.get(phone, float("-inf")) < PAIR_SPACING

    def _note(self, phone: str | None) -> None:
        now = self._time()
        if phone is not None:
            self._written.pop(phone, None)  # to the end: the oldest stands first
            self._written[phone] = now
        while self._written and now - next(iter(self._written.values())) >= PAIR_SPACING:
            self._written.popitem(last=False)

    @staticmethod
    def _time() -> float:
        return asyncio.get_running_loop().time()

    async def send(self, body: bytes, access_token: str, patience: float) -> Reply:
        """Meta's own answer; or 429 after `patience` seconds without a place, 503 while the number is stopped,
        502 when nothing left, 504 when nobody knows. It is never sent twice."""
        if (why := self._unfit()) is not None:
            return _stopped(why)
        to = recipient_of(body)  # before the wait: nothing slow may stand between the stamp and the hand-over
        if not await self._gate.admit_conversation(patience):
            wait = max(1.0, self._silent_for())
            return refusal(429, 130429, "Rate limit hit", "No place within the number's limit in time.", wait)
        if (
            why := self._unfit()
        ) is not None:  # in the same tick as the hand-over: the lease is the only fence here
            self._gate.stay_conversation()
            return _stopped(why)
        self._gate.leave_conversation()
        self._note(to)
        self.open += 1
        try:
            passed = await self._whatsapp.pass_on(self._number, access_token, body)
        finally:
            self.open -= 1
        match passed:
            case NotSent(reason=reason):
                return refusal(
                    502, 131016, "Service unavailable", f"The provider was not reached: {reason}", 1.0
                )
            case Ambiguous(reason=reason):
                return refusal(504, 131000, "Something went wrong", f"It may have been sent: {reason}")
        self._answered(passed)
        return Reply(passed.status, passed.body, passed.content_type, passed.retry_after)


def _stopped(why: str) -> Reply:
    return refusal(503, 131016, "Service unavailable", f"This number may not send now: {why}.", 5.0)
