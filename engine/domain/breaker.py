"""What stops wider than a row, and what lifts it again: pure statements; the fact is a row of `breaker`.

scope        key
number       Meta's phone number id
account      WABA id
credential   the token's reference (file:…, env:…)
template     account/name/language, the language with `_`
country      account/alpha-2
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.domain.errors import Scope

HEALS_BY_ITSELF = {131064: timedelta(hours=1)}
"""Codes of stops that the provider lifts without a word, and how long until the first look."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing may be sent within `key` of `scope` (one of errors.STOPS).

    With `until` it passes by itself then. Without, a person lifts it, or good news of the provider, or a request
    that is tried from `probe_at` on and succeeds.
    """

    scope: Scope
    key: str
    code: int | None
    reason: str
    until: datetime | None = None
    probe_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Heal:
    """The provider says that what stopped `key` of `scope` is mended."""

    scope: Scope
    key: str
    reason: str


def probe_time(code: int, since: datetime) -> datetime | None:
    """From when on a stop that heals by itself may be looked at; None for those that a person lifts."""
    heals = HEALS_BY_ITSELF.get(code)
    return since + heals if heals is not None else None


def language_code(text: str) -> str:
    """A template's language as its own code: documentation writes en-US where the API says en_US.

    >>> language_code("PT-br")
    'pt_BR'
    """
    first, *rest = text.strip().replace("-", "_").split("_")
    return "_".join([first.lower(), *(part.upper() if len(part) == 2 else part.title() for part in rest)])


def template_key(account: str, name: str, language: str) -> str:
    """The key of a template's breaker."""
    return f"{account}/{name}/{language_code(language)}"


def country_key(account: str, country: str) -> str:
    """The key of a country's breaker; `country` is alpha-2."""
    return f"{account}/{country}"


def latest(stops: Iterable[tuple[Stop, datetime]]) -> list[tuple[Stop, datetime]]:
    """One stop for each scope and key, in their order: the one with the newest evidence."""
    kept: dict[tuple[Scope, str], tuple[Stop, datetime]] = {}
    for stop, at in sorted(stops, key=lambda pair: pair[1]):
        kept[stop.scope, stop.key] = stop, at
    return [kept[place] for place in sorted(kept)]


def over_number(number: str, account: str, token_ref: str) -> dict[Scope, str]:
    """The keys of the breakers that stop a whole number: its own, its account's, its credential's."""
    return {Scope.NUMBER: number, Scope.ACCOUNT: account, Scope.CREDENTIAL: token_ref}
