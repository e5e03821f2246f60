"""Which numbers a grid shows, in which order: bad ones first, always; the rest as the viewer chose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from engine.domain.snapshot import NumberView

CRITICAL_ERROR_SHARE = 0.20
WARNING_ERROR_SHARE = 0.03


class Severity(IntEnum):
    """How bad, worst last."""

    NORMAL = 0
    PAUSED = 1
    WARNING = 2
    CRITICAL = 3


def severity(number: NumberView) -> Severity:
    """Of one number: held or failing is critical; slowed, waiting, stuck or some errors warn."""
    failing = number.error_share is not None and number.error_share >= CRITICAL_ERROR_SHARE
    if number.state == "held" or (failing and number.state != "paused"):
        return Severity.CRITICAL
    if number.state == "paused":
        return Severity.WARNING if number.stuck else Severity.PAUSED
    some = number.error_share is not None and number.error_share >= WARNING_ERROR_SHARE
    if number.state in ("slowed", "waiting") or number.stuck or some:
        return Severity.WARNING
    return Severity.NORMAL


@dataclass(frozen=True, slots=True)
class Order:
    """One way to sort: its name, as the title and the column head say it, and what it looks at."""

    name: str
    column: str
    by: Callable[[NumberView], float | str]
    descending: bool = True


ORDERS: tuple[Order, ...] = (
    Order("severity", "ST", severity),
    Order("number", "NUMBER", lambda n: n.display, descending=False),
    Order("sent/s", "SENT/S", lambda n: n.sent_per_second),
    Order("rate", "CFG", lambda n: n.rate),
    Order("use", "USE%", lambda n: n.sent_per_second / n.rate if n.rate else 0.0),
    Order("token wait", "TOKW95", lambda n: n.token_wait.p95 if n.token_wait else -1.0),
    Order("errors", "ERR%", lambda n: n.error_share or 0.0),
    Order("pending", "PENDING", lambda n: n.pending),
    Order("stuck", "STUCK", lambda n: n.stuck),
)


@dataclass(frozen=True, slots=True)
class Rows:
    """What is shown, and how much is not."""

    shown: tuple[NumberView, ...]
    hidden: int
    hidden_bad: int


def choose(numbers: Sequence[NumberView], order: Order, text: str, labels: Mapping[str, str]) -> Rows:
    """Filter by plain text, float the bad ones, sort the rest; equal ones by id, so that rows do not jump."""
    wanted = text.casefold().strip()
    shown = [n for n in numbers if not wanted or wanted in _haystack(n, labels)]
    kept = {n.id for n in shown}
    hidden = [n for n in numbers if n.id not in kept]
    shown.sort(key=lambda n: n.id)
    shown.sort(key=order.by, reverse=order.descending)
    shown.sort(key=lambda n: -max(severity(n), Severity.PAUSED))
    bad = sum(1 for n in hidden if severity(n) >= Severity.WARNING)
    return Rows(tuple(shown), len(hidden), bad)


def _haystack(n: NumberView, labels: Mapping[str, str]) -> str:
    parts = (
        labels.get(n.id, ""),
        n.account,
        n.state,
        n.reason or "",
        str(n.top_error or ""),
        n.bound_by,
        n.owner or "",
    )
    return " ".join((*parts, *n.campaigns)).casefold()
