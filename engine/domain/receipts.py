"""What a webhook says about messages, read leniently.

A body may hold up to 1,000 statuses over many entries and changes, in any order, repeated, and beside items of
kinds that nobody has seen yet. One odd item never costs the others: it is counted, and the body is kept as it came.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from engine.domain.message import Token, parse_token
from engine.domain.recipient import State

_KNOWN = {state.word: state for state in (State.SENT, State.DELIVERED, State.READ, State.FAILED)}
_ID_CHARS = 512
_TITLE_CHARS = 200
_DETAILS_CHARS = 500
_MILLISECONDS_FROM = 1e12  # as seconds this is the year 33658
_LATEST = 1e10
_INT4 = 2**31
_INT8 = 2**63


class UnparsableError(ValueError):
    """The body is not a JSON object. The message never quotes it: bodies hold phone numbers."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """One status of one message: `sent`, `delivered`, `read` or `failed`.

    `at` is Unix seconds by Meta's clock. `number` is Meta's phone number id. `code` and the texts only on `failed`.
    """

    state: State
    wamid: str | None
    token: Token | None
    number: str | None
    at: float | None
    code: int | None = None
    title: str = ""
    details: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One body: its statuses, and how many items of other kinds stood beside them."""

    statuses: list[Receipt] = field(default_factory=list)
    inbound: int = 0
    errors: list[tuple[str | None, int | None]] = field(default_factory=list)
    """Number and code of each error that belongs to no message."""
    fields: Counter[str] = field(default_factory=Counter)
    """Changes of other fields than `messages`, by field."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Statuses of a word that means nothing to us (`played`, `deleted`, words to come), by word."""
    odd: list[str] = field(default_factory=list)
    """Where an item was not of the documented shape: `entry`, `change`, `status`."""


def parse(body: bytes) -> Parsed:
    """Everything in one webhook body. Raises UnparsableError when it is no JSON object at all."""
    parsed = Parsed()
    inbound = 0
    try:
        changes = list(_quick(body))
    except (msgspec.DecodeError, RecursionError):
        changes = list(_careful(body, parsed.odd))
    for kind, number, value in changes:
        if kind != "messages":
            parsed.fields[_text(kind, 64) or "?"] += 1
            continue
        parsed.statuses.extend(_receipts(value.statuses or (), _text(number, _ID_CHARS), parsed))
        inbound += len(value.messages or ())
        parsed.errors.extend((_text(number, _ID_CHARS), _refusal([one])[0]) for one in value.errors or ())
    return replace(parsed, inbound=inbound)


class _Status(msgspec.Struct):
    status: str
    id: Any = None
    timestamp: Any = None
    biz_opaque_callback_data: Any = None
    errors: Any = None


class _Metadata(msgspec.Struct):
    phone_number_id: Any = None


class _Value(msgspec.Struct):
    metadata: _Metadata | None = None
    statuses: list[_Status] | None = None
    messages: list[msgspec.Raw] | None = None
    errors: list[Any] | None = None


class _Change(msgspec.Struct):
    field: str
    value: _Value


class _Entry(msgspec.Struct):
    changes: list[_Change]


class _Body(msgspec.Struct):
    entry: list[_Entry]


_decode = msgspec.json.Decoder(_Body).decode

_Read = tuple[Any, Any, _Value]
"""A change: its field, its phone number id as it came, its value."""


def _quick(body: bytes) -> Iterator[_Read]:
    """The changes of a body of the documented shape. Raises DecodeError on any other."""
    for entry in _decode(body).entry:
        for change in entry.changes:
            metadata = change.value.metadata
            yield change.field, metadata.phone_number_id if metadata else None, change.value


def _careful(body: bytes, odd: list[str]) -> Iterator[_Read]:
    """The changes of a body in which something is not as documented; that something goes to `odd`.

    The standard parser takes what msgspec refuses, a cut emoji in a person's name for one.
    """
    try:
        root = json.loads(body)
    except (ValueError, RecursionError):
        root = None
    if not isinstance(root, dict):
        raise UnparsableError("The body is not a JSON object.")
    for entry in _list(root, "entry"):
        if not isinstance(entry, dict):
            odd.append("entry")
            continue
        for change in _list(entry, "changes"):
            value = change.get("value") if isinstance(change, dict) else None
            if not isinstance(value, dict):
                odd.append("change")
                continue
            metadata = value.get("metadata")
            number = metadata.get("phone_number_id") if isinstance(metadata, dict) else None
            yield change.get("field"), number, _lenient(value, change.get("field"), odd)


def _lenient(value: Mapping[str, Any], kind: object, odd: list[str]) -> _Value:
    """A change's value with the statuses that can be read."""
    statuses: list[_Status] = []
    for item in _list(value, "statuses") if kind == "messages" else ():
        word = item.get("status") if isinstance(item, dict) else None
        if isinstance(word, str):
            statuses.append(
                _Status(
                    word,
                    item.get("id"),
                    item.get("timestamp"),
                    item.get("biz_opaque_callback_data"),
                    item.get("errors"),
                )
            )
        else:
            odd.append("status")
    inbound = [msgspec.Raw()] * len(_list(value, "messages"))
    return _Value(None, statuses, inbound, _list(value, "errors"))


def _receipts(items: Iterable[_Status], number: str | None, parsed: Parsed) -> Iterator[Receipt]:
    for item in items:
        state = _KNOWN.get(item.status)
        if state is None:
            parsed.ignored[_text(item.status, 32) or "?"] += 1
            continue
        token = parse_token(item.biz_opaque_callback_data)
        if token is not None and token.row >= _INT8:
            token = None  # no row of ours: it would not fit the column
        wamid = _text(item.id, _ID_CHARS)
        refusal = _refusal(item.errors) if state is State.FAILED else (None, "", "")
        yield Receipt(state, wamid, token, number, _seconds(item.timestamp), *refusal)


def _refusal(errors: object) -> tuple[int | None, str, str]:
    """Code, title and details of the first error, bounded; a code that is no number is None."""
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, dict):
        return None, "", ""
    data = first.get("error_data")
    details = data.get("details") if isinstance(data, dict) else None
    code = _number(first.get("code"))
    return (
        int(code) if code is not None and abs(code) < _INT4 else None,
        _text(first.get("title") or first.get("message"), _TITLE_CHARS) or "",
        _text(details, _DETAILS_CHARS) or "",
    )


def _seconds(value: object) -> float | None:
    """Unix seconds from seconds or milliseconds, quoted or not; None when it cannot be a time of our age."""
    seconds = _number(value)
    if seconds is None:
        return None
    if seconds >= _MILLISECONDS_FROM:
        seconds /= 1000
    return seconds if 0 < seconds < _LATEST else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _text(value: object, limit: int) -> str | None:
    """`value` as text that Postgres takes: bounded, no NUL, no lone surrogate. None when empty or no text."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        return None
    value = value[:limit]
    if "\0" in value or not value.isascii():
        value = value.replace("\0", "").encode("utf-8", "replace").decode()
    return value or None


def _list(holder: Mapping[str, Any], key: str) -> list[Any]:
    value = holder.get(key)
    return value if isinstance(value, list) else []
