"""Which failed rows a person may send again, by the code that they failed with."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from engine.domain.errors import THROTTLES, Scope, describe

MARKETING_REST = timedelta(hours=24)
"""Not before then Meta may deliver what its limit of marketing messages to one person held back."""

_PASSES = THROTTLES | {Scope.TRANSIENT, Scope.PAIR}


@dataclass(frozen=True, slots=True)
class Failed:
    """Rows that are failed now with this code. `rested`: of them, those that failed more than MARKETING_REST ago."""

    code: int | None
    rows: int
    rested: int


@dataclass(frozen=True, slots=True)
class Offer:
    """What a retry does with the rows of one code. `why_not`: a sentence when it leaves some, or all, as they are."""

    code: int | None
    title: str
    failed: int
    retried: int
    why_not: str | None = None


def offers(failures: Iterable[Failed], *, marketing_limit: bool) -> list[Offer]:
    """What would happen to each code's rows; most rows first. `marketing_limit`: 131049 may be tried once more.

    >>> [(o.code, o.retried) for o in offers([Failed(131026, 9, 9), Failed(131000, 2, 0)], marketing_limit=False)]
    [(131026, 0), (131000, 2)]
    """
    found = [_offer(failed, marketing_limit) for failed in failures]
    return sorted(found, key=lambda o: (-o.failed, o.code if o.code is not None else 0))


def _offer(failed: Failed, marketing_limit: bool) -> Offer:
    if failed.code is None:
        why = "They failed without a code: nobody can say that another try would end otherwise."
        return Offer(None, "No code", failed.rows, 0, why)
    known = describe(failed.code)
    if known.scope in _PASSES:
        return Offer(failed.code, known.title, failed.rows, failed.rows)
    if known.scope is Scope.MARKETING and marketing_limit:
        early = failed.rows - failed.rested
        why_early = f"{early:,} failed less than 24 h ago: too early." if early else None
        return Offer(failed.code, known.title, failed.rows, failed.rested, why_early)
    return Offer(failed.code, known.title, failed.rows, 0, _why_not(failed.code, known.scope))


def _why_not(code: int, scope: Scope) -> str:
    if scope is Scope.MARKETING:
        return (
            "Meta's limit of marketing messages to one person: only with --retry-marketing-limit, after 24 h."
        )
    if scope is Scope.RECIPIENT:
        return "Meta refused this person or these values: the same message would be refused again."
    if scope is Scope.UNLISTED:
        return f"Tidegate does not know {code}: look at a raw answer with `tidegate rows show`."
    return f"The fault lies with the {scope.value}, and rows that it stopped wait behind its hold."
