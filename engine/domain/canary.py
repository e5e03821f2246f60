"""The first few of an audience: sent alone, and judged before all others get the message."""

import re
from dataclasses import dataclass
from math import ceil

BLOCKS = frozenset({131048, 131050, 131064})
"""Codes with which Meta tells that people block, report or stop what they get."""

DEFAULT_MAX_FAILED = 0.1
DEFAULT_WAIT_S = 60.0


class CanaryRefused(ValueError):
    """Not a canary. The message is one sentence without its full stop."""


@dataclass(frozen=True, slots=True)
class Canary:
    """Either so many `rows`, or a `share` of the audience (0 < share < 1), that go first.

    `max_failed`: the share of them that may fail or say stop. `wait_s`: seconds from the last move of one of them to
    the judgement, so that statuses have come.
    """

    rows: int | None = None
    share: float | None = None
    max_failed: float = DEFAULT_MAX_FAILED
    wait_s: float = DEFAULT_WAIT_S

    def size(self, planned: int) -> int:
        """How many rows of `planned` go first; at least one."""
        wanted = self.rows if self.rows is not None else ceil(planned * (self.share or 0.0))
        return min(max(1, wanted), planned)


@dataclass(frozen=True, slots=True)
class Sent:
    """How the canary stands: rows in all, not settled yet, failed, and people among them who said stop since."""

    rows: int
    open: int
    failed: int
    stops: int


def parse_canary(text: str) -> Canary:
    """`500` or `2%`. Raises CanaryRefused."""
    written = text.strip()
    if re.fullmatch(r"[0-9]{1,9}", written) and int(written) > 0:
        return Canary(rows=int(written))
    if re.fullmatch(r"[0-9]{1,2}(\.[0-9]+)?%", written) and float(written[:-1]) > 0:
        return Canary(share=float(written[:-1]) / 100)
    raise CanaryRefused(f"{text!r} is no canary: write a number of rows, or a share such as 2%")


def why_not(sent: Sent, max_failed: float) -> str | None:
    """Why the rest must not follow; None when it may. Of a canary without open rows.

    >>> why_not(Sent(100, 0, 15, 2), 0.1)
    '15 of 100 failed and 2 said stop (17%; allowed 10%)'
    """
    bad = sent.failed + sent.stops
    if not sent.rows or bad / sent.rows <= max_failed:
        return None
    share = f"{bad / sent.rows:.0%}; allowed {max_failed:.0%}"
    return f"{sent.failed:,} of {sent.rows:,} failed and {sent.stops:,} said stop ({share})"
