"""What the provider's answers say about a number's pace: silence, ceiling, probing. One for each owned number."""

from collections import deque

from engine.domain.ceiling import Ceiling, calm, refused
from engine.domain.errors import Scope
from engine.domain.health import PROBE, Health
from engine.domain.outcome import Accepted, Answer, Next, NotSent, Refused
from engine.observe.metrics import NumberFigures

UNREACHABLE_AFTER = 5
"""Requests in a row that provably did not leave, after which the number slows down."""

LONGEST_PAUSE = 10.0
"""Seconds between attempts at a provider that cannot be reached."""

FASTEST = 2000
"""Accepted messages that are remembered: more than any number sends in a second."""


class Provider:
    """Times are seconds of the loop."""

    def __init__(self, ceiling: float | None, figures: NumberFigures) -> None:
        """`ceiling`: what an earlier owner had found, in messages/s."""
        self.ceiling = Ceiling(ceiling, ceiling)
        self.health = Health()
        self.silent_until = 0.0
        self._figures = figures
        self._accepted_at: deque[float] = deque(maxlen=FASTEST)
        self._not_sent_in_a_row = 0

    def rate(self, configured: float) -> float:
        """messages/s that may be sent now."""
        allowed = self.ceiling.allowed(configured)
        return min(allowed, 1 / PROBE) if self.health.probing else allowed

    def look_up(self, now: float, configured: float) -> None:
        """Once a second: search upward while nothing is refused."""
        self.ceiling = calm(self.ceiling, now, configured)

    def answered(self, answer: Answer, decided: Next, now: float, configured: float) -> float:
        """Take in an answer; seconds of silence that follow from it."""
        match answer:
            case Accepted():
                self._figures.accepted.add(now)
                self._figures.last_accepted = now
                self._accepted_at.append(now)
                self._not_sent_in_a_row = 0
                self.health.good()
            case Refused():
                self._refused(answer, now, configured)
            case NotSent():
                self._not_sent_in_a_row += 1
                doublings = self._not_sent_in_a_row - UNREACHABLE_AFTER
                # Capped before the power: a long outage makes thousands of them.
                return min(LONGEST_PAUSE, 0.5 * 2.0 ** min(doublings, 10)) if doublings >= 0 else 0.0
        return decided.wait

    def _refused(self, answer: Refused, now: float, configured: float) -> None:
        self._figures.refused.add(now)
        self._figures.codes.add(now, answer.code)
        self._not_sent_in_a_row = 0
        self.health.refused(now, answer.code, answer.meaning)
        self.throttled(answer, now, configured)

    def throttled(self, answer: Refused, now: float, configured: float) -> bool:
        """Lower the ceiling if the number was throttled, by whichever lane; whether it was."""
        if answer.meaning.scope is not Scope.NUMBER_THROUGHPUT:
            return False
        while self._accepted_at and self._accepted_at[0] <= now - 1.0:
            self._accepted_at.popleft()
        self.ceiling = refused(self.ceiling, now, configured, float(len(self._accepted_at)))
        return True
