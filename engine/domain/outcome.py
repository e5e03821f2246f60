"""From an answer to the row's next state: pure, with time and chance as arguments."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.domain.backoff import full_jitter, pair_wait
from engine.domain.errors import STOPS, THROTTLES, Meaning, Scope
from engine.domain.recipient import State

THROTTLE_WAIT = 1.0
"""Seconds that a number is silent after a throughput error without Retry-After."""

MAINTENANCE_WAIT = 20.0
ACCOUNT_WAIT = 60.0
WORDS_CHARS = 160
_NUMBERED = re.compile(r"\(#[0-9]+\) *")
_UNSAID = re.compile(r"\+?[0-9][0-9 ().-]{5,}[0-9]|[A-Za-z0-9_+/=-]{24,}")
_THROTTLE_WAITS = {
    Scope.NUMBER_THROUGHPUT: THROTTLE_WAIT,
    Scope.ACCOUNT_THROUGHPUT: ACCOUNT_WAIT,
    Scope.MAINTENANCE: MAINTENANCE_WAIT,
}


@dataclass(frozen=True, slots=True)
class Accepted:
    """Meta took it and gave it an id. Not sent, not delivered: accepted."""

    wamid: str
    assessing: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A definite no. `code` is Meta's; `raw` the answer, bounded; retry_after in seconds when the answer said so."""

    code: int
    meaning: Meaning
    raw: str = ""
    retry_after: float | None = None
    said: str = ""
    """The provider's own words, bounded, without what names a person or opens a door: see `own_words`."""


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """The request may have been taken: nobody can say, so nothing is sent again."""

    reason: str
    raw: str = ""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Proof that nothing left: refused connection, DNS, TLS, no connection in time."""

    reason: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Marked, but taken back before it was handed to a connection: pause, drain, a lost lease."""

    reason: str


Answer = Accepted | Refused | Ambiguous | NotSent | Withdrawn


@dataclass(frozen=True, slots=True)
class Next:
    """What happens to the row, and to what stands around it."""

    outcome: str
    """The word in the try's record: accepted, refused, unknown, not_sent, withdrawn."""
    state: State
    at: datetime | None = None
    """For pending: when it may be tried again."""
    spends_attempt: bool = False
    code: int | None = None
    wait: float = 0.0
    """Seconds that the whole number must be silent."""
    hold: str | None = None
    """Why the campaign must be held, when the error is wider than the row."""


def after(answer: Answer, *, attempts: int, max_attempts: int, now: datetime, chance: float) -> Next:
    """`attempts`: definite answers so far, without this one; `chance` uniform in [0, 1)."""
    match answer:
        case Accepted(assessing=assessing):
            return Next("accepted", State.ASSESSING if assessing else State.SENT, spends_attempt=True)
        case Ambiguous():
            return Next("unknown", State.UNKNOWN)
        case NotSent():
            return Next(
                "not_sent", State.PENDING, at=now + _seconds(full_jitter(1, chance)), wait=THROTTLE_WAIT
            )
        case Withdrawn():
            return Next("withdrawn", State.PENDING, at=now)
        case Refused():
            return _after_refusal(answer, attempts, max_attempts, now, chance)


def _after_refusal(answer: Refused, attempts: int, max_attempts: int, now: datetime, chance: float) -> Next:
    scope, code = answer.meaning.scope, answer.code
    if scope in THROTTLES:
        wait = _throttle_wait(answer.meaning)
        if answer.retry_after is not None:
            # 0, or a date that our clock has passed, would be no silence at all.
            wait = max(answer.retry_after, THROTTLE_WAIT)
        # Spread over a second beyond the silence, so that the rows refused together do not return together.
        return Next("refused", State.PENDING, at=now + _seconds(wait + chance), code=code, wait=wait)
    if scope in STOPS:
        later = now + _seconds(1.0 + chance)
        return Next("refused", State.PENDING, at=later, code=code, hold=hold_reason(answer))
    spent = attempts + 1
    if scope in (Scope.PAIR, Scope.TRANSIENT) and spent < max_attempts:
        wait = pair_wait(attempts, chance) if scope is Scope.PAIR else full_jitter(spent, chance)
        wait = max(wait, answer.meaning.wait_s or 0.0)
        return Next("refused", State.PENDING, at=now + _seconds(wait), spends_attempt=True, code=code)
    return Next("refused", State.FAILED, spends_attempt=True, code=code)


def _throttle_wait(meaning: Meaning) -> float:
    return meaning.wait_s if meaning.wait_s is not None else _THROTTLE_WAITS[meaning.scope]


def hold_reason(answer: Refused) -> str:
    """The sentence that a held campaign shows: code, what happened, what to do."""
    ours = f"{answer.code} {answer.meaning.title}. {answer.meaning.advice}"
    return f'{ours} Meta says: "{answer.said}"' if answer.said else ours


def own_words(*parts: str) -> str:
    """What the provider wrote, for a screen: in one line, bounded, long digits and long codes left out.

    >>> own_words("(#190) Session has expired on Tuesday", "user 5511988880001")
    'Session has expired on Tuesday user …'
    """
    text = " ".join(" ".join(parts).split())
    text = "".join(c for c in _UNSAID.sub("…", _NUMBERED.sub("", text)) if c.isprintable()).replace('"', "'")
    return text if len(text) <= WORDS_CHARS else text[: WORDS_CHARS - 1] + "…"


def _seconds(value: float) -> timedelta:
    return timedelta(seconds=value)
