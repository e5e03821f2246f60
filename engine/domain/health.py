"""Is a run going well? A pure judge of a campaign's last answers, for each path that answers come by.

Throughput refusals are no judgement of a run: they only slow it, and it heals unaided. Everything else that goes on
refusing must stop the run, with the reason, before it burns through the list.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from engine.domain.errors import STOPS, THROTTLES, Meaning, Scope

RECENT = 200
"""Answers that are judged together."""

FAILING_SHARE = 0.50
"""More failures by recipient than this among the last 200 hold the campaign: nobody is struck off for it."""

UNLISTED_SHARE = 0.20
IN_A_ROW = 20
"""Refusals without a success in between: the number slows to a probe, one code of this length holds."""

NOTHING_ELSE = 30.0
"""Seconds of nothing but refusals (that are not throughput) after which the campaign is held."""

PROBE = 3.0
"""Seconds between the requests of a number whose last IN_A_ROW answers were refusals."""

EVERY_ROW = frozenset({100, 131008, 131009, 132000, 132008, 132012, 132018, 135000})
"""Codes about a row's values that, row after row, are about the template or the file."""


@dataclass(slots=True)
class Health:
    """Of one campaign on one path. Times: seconds of one monotonic clock."""

    recent: deque[tuple[Scope | None, int]] = field(default_factory=lambda: deque(maxlen=RECENT))
    refused_in_a_row: int = 0
    refused_since: float | None = None
    _same_code: tuple[int, int] = (0, 0)

    def good(self) -> None:
        """An answer that shows that sending works: accepted; on the webhooks' path delivered or read."""
        self.recent.append((None, 0))
        self.refused_in_a_row, self.refused_since, self._same_code = 0, None, (0, 0)

    def refused(self, now: float, code: int, meaning: Meaning) -> str | None:
        """A definite refusal; the reason to hold the campaign, or None."""
        if meaning.scope in THROTTLES or meaning.scope in STOPS or meaning.scope is Scope.PAIR:
            # The first only slow a run, the second trip a breaker of their own; a pair is one person's, who waits
            # while all others go on: attempts and the try budget bound it.
            return None
        self.recent.append((meaning.scope, code))
        self.refused_in_a_row += 1
        self.refused_since = now if self.refused_since is None else self.refused_since
        last, length = self._same_code
        self._same_code = (code, length + 1 if code == last else 1)
        return (
            self._run_of_one_code(code, meaning)
            or self._share(code, meaning)
            or self._nothing_else(now, meaning)
        )

    @property
    def probing(self) -> bool:
        """Whether requests should leave only as probes, one every PROBE seconds."""
        return self.refused_in_a_row >= IN_A_ROW

    def _run_of_one_code(self, code: int, meaning: Meaning) -> str | None:
        if (meaning.scope is Scope.UNLISTED or code in EVERY_ROW) and self._same_code[1] > IN_A_ROW:
            return f"{code} {meaning.title}: {self._same_code[1]} times in a row. {meaning.advice}"
        return None

    def _share(self, code: int, meaning: Meaning) -> str | None:
        if len(self.recent) < RECENT:
            return None
        if meaning.scope is Scope.UNLISTED:
            count = sum(c == code for _, c in self.recent)
            if count > UNLISTED_SHARE * RECENT:
                return f"{code} {meaning.title}: {count} of the last {RECENT} answers. {meaning.advice}"
        failing = Counter(
            c for scope, c in self.recent if scope in (Scope.RECIPIENT, Scope.MARKETING, Scope.UNLISTED)
        )
        total = sum(failing.values())
        if total > FAILING_SHARE * RECENT:
            (most, count), *_ = failing.most_common(1)
            return (
                f"{total} of the last {RECENT} answers are failures, most of them {most} ({count}). "
                "Look at the audience and the template before going on."
            )
        return None

    def _nothing_else(self, now: float, meaning: Meaning) -> str | None:
        lasted = now - (self.refused_since if self.refused_since is not None else now)
        if self.probing and lasted >= NOTHING_ELSE:
            return f"nothing but refusals for {lasted:.0f} s, the last: {meaning.title}. {meaning.advice}"
        return None


def budget_spent(tries: int, planned: int, budget: int | None) -> str | None:
    """The reason to hold a campaign whose tries are used up (default: three for each row), or None."""
    most = budget if budget is not None else 3 * planned
    if planned and tries >= most:
        return f"the try budget of {most:,} is spent. Look at what was refused; resuming raises it."
    return None
