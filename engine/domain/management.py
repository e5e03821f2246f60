"""From what the provider says of accounts, numbers and templates to what follows: stops, good news, wishes, events.

    message_template_status_update   PAUSED, DISABLED, … stop the template   APPROVED, UNPAUSE, … heal it
    account_update                   bans and lost access stop the account   REINSTATE, ACCOUNT_RECONNECTED heal it
    user_preferences                 stop and resume of marketing, by person
    all others                       kept as an event, for people

Read leniently: what is missing or of another kind only leaves out what depends on it. Unknown fields are events.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from engine.domain import inbound, lenient
from engine.domain.breaker import Heal, Stop, template_key
from engine.domain.errors import Scope

OLDEST = timedelta(days=8)
"""Bodies are sent again for seven days: a time from before that is nobody's time."""

CHATTER = frozenset(
    {"smb_message_echoes", "message_echoes", "smb_app_state_sync", "history", "calls", "standby"}
)
"""Fields that speak of single conversations: counted, not kept as events."""

_TEMPLATE_STOPS = {
    "PAUSED": "is paused by Meta",
    "DISABLED": "is disabled for good",
    "REJECTED": "was rejected",
    "DELETED": "was deleted",
    "PENDING_DELETION": "is being deleted",
    "PENDING": "is under review",
    "ARCHIVED": "was archived",
}
_TEMPLATE_HEALS = frozenset({"APPROVED", "REINSTATED", "UNARCHIVED", "UNPAUSE", "UNPAUSED"})

_ACCOUNT_STOPS = {
    "ACCOUNT_DELETED": "The account was deleted.",
    "PARTNER_REMOVED": "The account took its access away: share it again.",
    "PARTNER_APP_UNINSTALLED": "The app was removed from the account: install it again.",
    "ACCOUNT_OFFBOARDED": "The account was taken off this app: connect it again.",
}
_BANNED = "The account is disabled by Meta: ask Meta's support."
_RESTRICTED = "Meta restricts messages that the account begins."

_SHOWN = frozenset(
    {
        "message_template_status_update",
        "message_template_quality_update",
        "template_category_update",
        "account_update",
        "account_alerts",
        "account_review_update",
        "business_capability_update",
        "phone_number_quality_update",
        "phone_number_name_update",
    }
)
"""Fields whose values hold no person's phone number, so that they can be shown."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a body. `kind`: its field. `account`: the WABA. `at`: by Meta's clock, when it says so."""

    kind: str
    account: str | None
    at: datetime | None
    value: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Event:
    """One line for people. `target`: a template's key, a number as displayed, or an account."""

    kind: str
    target: str
    event: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Preference:
    """A person stops marketing messages, or wants them again. `phone` is E.164 with its +."""

    phone: str = field(repr=False)
    stops: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Consequences:
    """What follows from one change. `at`: from when on it counts. `key`: the same for the same change come again."""

    key: str
    at: datetime
    event: Event | None = None
    stops: tuple[Stop, ...] = ()
    heals: tuple[Heal, ...] = ()
    preferences: tuple[Preference, ...] = ()


def consequences(change: Change, received_at: datetime) -> Consequences:
    """What follows from a change that was received then. Never raises."""
    at = _credible(change.at, received_at)
    stops: list[Stop | Heal] = list(_READERS.get(change.kind, _nothing)(change, at))
    return Consequences(
        key=_key(change),
        at=at,
        event=None if change.kind in CHATTER else _event(change),
        stops=tuple(one for one in stops if isinstance(one, Stop)),
        heals=tuple(one for one in stops if isinstance(one, Heal)),
        preferences=tuple(_preferences(change, received_at)),
    )


def _template(change: Change, at: datetime) -> Iterable[Stop | Heal]:
    del at
    key, value = _template_of(change), change.value
    if key is None:
        return
    event, title = _word(value, "event"), _word(lenient.mapping(value.get("other_info")), "title")
    if event in _TEMPLATE_HEALS or title in _TEMPLATE_HEALS:
        yield Heal(Scope.TEMPLATE, key, f"{title or event}")
    elif event in _TEMPLATE_STOPS:
        _, name, language = key.split("/", 2)
        why = ", ".join(w for w in (title, _word(value, "reason")) if w and w not in ("NONE", event))
        text = f"Template {name} ({language}) {_TEMPLATE_STOPS[event]}{f' ({why})' if why else ''}."
        yield Stop(Scope.TEMPLATE, key, None, text)


def _account(change: Change, at: datetime) -> Iterable[Stop | Heal]:
    account, value = _account_of(change), change.value
    if account is None:
        return
    event, ban = _word(value, "event"), _word(lenient.mapping(value.get("ban_info")), "waba_ban_state")
    if event in _ACCOUNT_STOPS:
        yield Stop(Scope.ACCOUNT, account, None, _ACCOUNT_STOPS[event])
    elif event == "DISABLED_UPDATE" and ban == "DISABLE":
        yield Stop(Scope.ACCOUNT, account, None, _BANNED)
    elif event == "ACCOUNT_RECONNECTED" or (event == "DISABLED_UPDATE" and ban == "REINSTATE"):
        yield Heal(Scope.ACCOUNT, account, ban or event)
    elif event == "ACCOUNT_RESTRICTION":
        yield from _restriction(account, value, at)


def _restriction(account: str, value: Mapping[str, Any], at: datetime) -> Iterable[Stop]:
    """The longest of its restrictions that is not over yet; one without an end needs a person."""
    ends = [
        lenient.moment(info.get("expiration"))
        for info in map(lenient.mapping, _listed(value.get("restriction_info")))
        if _word(info, "restriction_type") == "RESTRICTED_BIZ_INITIATED_MESSAGING"
    ]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        yield Stop(Scope.ACCOUNT, account, None, f"{_RESTRICTED} It did not say until when.")
    elif known and max(known) > at:
        until = max(known)
        yield Stop(
            Scope.ACCOUNT, account, None, f"{_RESTRICTED} It ends {until:%Y-%m-%d %H:%M} UTC.", until=until
        )


def _nothing(change: Change, at: datetime) -> Iterable[Stop | Heal]:
    del change, at
    return ()


_READERS: Mapping[str, Callable[[Change, datetime], Iterable[Stop | Heal]]] = {
    "message_template_status_update": _template,
    "account_update": _account,
}


def _preferences(change: Change, received_at: datetime) -> Iterable[Preference]:
    if change.kind != "user_preferences":
        return
    for item in map(lenient.mapping, lenient.items(change.value, "user_preferences")):
        phone, wish = inbound.phone(item.get("wa_id")), _word(item, "value")
        marketing = _word(item, "category") in ("", "MARKETING_MESSAGES")
        if phone is not None and marketing and wish in ("STOP", "RESUME", "SIGNUP"):
            at = _credible(lenient.moment(item.get("timestamp")) or change.at, received_at)
            yield Preference(phone, wish == "STOP", at)


def _event(change: Change) -> Event:
    value = change.value
    display = lenient.text(value.get("display_phone_number"), 64)
    target = (_template_of(change) if change.account else None) or display or _account_of(change) or "?"
    word = _word(value, "event") or _word(value, "alert_type") or _word(value, "decision") or _wishes(value)
    return Event(
        change.kind, target, word or change.kind.upper(), _detail(value) if change.kind in _SHOWN else None
    )


def _wishes(value: Mapping[str, Any]) -> str:
    """A word for preferences, without who they are."""
    listed = map(lenient.mapping, lenient.items(value, "user_preferences"))
    return ", ".join(sorted({_word(item, "value") for item in listed} - {""}))


def _detail(value: Mapping[str, Any]) -> str | None:
    """The rest of the value as short JSON."""
    shown = {
        name: content for name, content in value.items() if name not in ("event", "display_phone_number")
    }
    return lenient.text(_json(shown), 500) if shown else None


def _template_of(change: Change) -> str | None:
    name = lenient.text(change.value.get("message_template_name"), 512)
    language = lenient.text(change.value.get("message_template_language"), 32)
    return template_key(change.account, name, language) if change.account and name and language else None


def _account_of(change: Change) -> str | None:
    """The WABA: partner events name it apart, as their entry is the partner's own."""
    info = lenient.mapping(change.value.get("waba_info"))
    return lenient.text(info.get("waba_id"), 64) or change.account


def _credible(at: datetime | None, received_at: datetime) -> datetime:
    """Meta's time, unless it is none or cannot be: then ours. Never later than the receipt."""
    if at is None or at < received_at - OLDEST:
        return received_at
    return min(at, received_at)


def _key(change: Change) -> str:
    whole = [change.kind, change.account, change.at and change.at.isoformat(), change.value]
    return "event:" + hashlib.sha256(_json(whole).encode()).hexdigest()


def _json(value: object) -> str:
    """One spelling for equal values; '' for what is nested too deep to be written."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return ""


def _word(value: Mapping[str, Any], key: str) -> str:
    """An upper-case word, or ''."""
    return (lenient.text(value.get(key), 64) or "").strip().upper()


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
