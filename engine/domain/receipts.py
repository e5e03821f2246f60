"""What a webhook says about messages, read leniently.

A body may hold up to 1,000 statuses over many entries and changes, in any order, repeated, and beside items of
kinds that nobody has seen yet. One odd item never costs the others: it is counted, and the body is kept as it came.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.domain import inbound, lenient
from engine.domain.inbound import Inbound
from engine.domain.management import Change
from engine.domain.message import Token, parse_token
from engine.domain.recipient import State

_KNOWN = {state.word: state for state in (State.SENT, State.DELIVERED, State.READ, State.FAILED)}
_ID_CHARS = 512
_TITLE_CHARS = 200
_DETAILS_CHARS = 500
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
class Fault:
    """An error of a whole number: code and texts as in a receipt."""

    number: str | None
    code: int | None
    title: str
    details: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """One body: its statuses, and what stood beside them."""

    statuses: list[Receipt] = field(default_factory=list)
    messages: list[Inbound] = field(default_factory=list)
    """What people wrote."""
    errors: list[Fault] = field(default_factory=list)
    """Errors that belong to no message."""
    changes: list[Change] = field(default_factory=list)
    """What is said of accounts, numbers and templates: changes of other fields than `messages`."""
    fields: Counter[str] = field(default_factory=Counter)
    """How many changes of other fields than `messages`, by field."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Statuses of a word that means nothing to us (`played`, `deleted`, words to come), by word."""
    odd: list[str] = field(default_factory=list)
    """Where an item was not of the documented shape: `entry`, `change`, `status`."""


def parse(body: bytes) -> Parsed:
    """Everything in one webhook body. Raises UnparsableError when it is no JSON object at all."""
    parsed = Parsed()
    try:
        changes = list(_quick(body))
    except (msgspec.DecodeError, RecursionError):
        changes = list(_careful(body, parsed.odd))
    for kind, number_id, value in changes:
        if kind != "messages":
            parsed.fields[lenient.text(kind, 64) or "?"] += 1
            continue
        number = lenient.text(number_id, _ID_CHARS)
        parsed.statuses.extend(_receipts(value.statuses or (), number, parsed))
        parsed.messages.extend(_messages(value, number))
        parsed.errors.extend(Fault(number, *_refusal([one])) for one in value.errors or ())
    if (
        parsed.fields
    ):  # rare: read a second time, so that the many bodies of statuses carry no weight for them
        parsed.changes.extend(_others(body))
    return parsed


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
    contacts: msgspec.Raw = msgspec.Raw()
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
    root = _loads(body)
    if not isinstance(root, dict):
        raise UnparsableError("The body is not a JSON object.")
    for entry in lenient.items(root, "entry"):
        if not isinstance(entry, dict):
            odd.append("entry")
            continue
        for change in lenient.items(entry, "changes"):
            value = change.get("value") if isinstance(change, dict) else None
            if not isinstance(value, dict):
                odd.append("change")
                continue
            metadata = value.get("metadata")
            number = metadata.get("phone_number_id") if isinstance(metadata, dict) else None
            yield change.get("field"), number, _lenient(value, change.get("field"), odd)


def _others(body: bytes) -> Iterator[Change]:
    """Changes of other fields than `messages`, whole."""
    for entry in map(lenient.mapping, lenient.items(lenient.mapping(_loads(body)), "entry")):
        for change in map(lenient.mapping, lenient.items(entry, "changes")):
            if change.get("field") != "messages" and isinstance(change.get("value"), dict):
                kind, account = (
                    lenient.text(change.get("field"), 64),
                    lenient.text(entry.get("id"), _ID_CHARS),
                )
                yield Change(kind or "?", account, lenient.moment(entry.get("time")), change["value"])


def _lenient(value: Mapping[str, Any], kind: object, odd: list[str]) -> _Value:
    """A change's value with the statuses that can be read."""
    if kind != "messages":
        return _Value()
    statuses: list[_Status] = []
    for item in lenient.items(value, "statuses"):
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
    return _Value(
        None,
        statuses,
        [_raw(item) for item in lenient.items(value, "messages")],
        _raw(lenient.items(value, "contacts")),
        lenient.items(value, "errors"),
    )


def _raw(item: object) -> msgspec.Raw:
    """As JSON again, in the one form that both parsers hand on."""
    return msgspec.Raw(json.dumps(item).encode())


def _messages(value: _Value, number: str | None) -> Iterator[Inbound]:
    contacts = _loads(value.contacts) if value.messages and value.contacts else None
    for item in value.messages or ():
        yield inbound.read(_loads(item), contacts if isinstance(contacts, list) else (), number)


def _loads(raw: bytes | msgspec.Raw) -> object:
    """What stands there, None when it is no JSON. The standard parser: it takes a cut emoji, msgspec does not."""
    try:
        return json.loads(bytes(raw))
    except (ValueError, RecursionError):
        return None


def _receipts(items: Iterable[_Status], number: str | None, parsed: Parsed) -> Iterator[Receipt]:
    for item in items:
        state = _KNOWN.get(item.status)
        if state is None:
            parsed.ignored[lenient.text(item.status, 32) or "?"] += 1
            continue
        token = parse_token(item.biz_opaque_callback_data)
        if token is not None and token.row >= _INT8:
            token = None  # no row of ours: it would not fit the column
        wamid = lenient.text(item.id, _ID_CHARS)
        refusal = _refusal(item.errors) if state is State.FAILED else (None, "", "")
        yield Receipt(state, wamid, token, number, lenient.seconds(item.timestamp), *refusal)


def _refusal(errors: object) -> tuple[int | None, str, str]:
    """Code, title and details of the first error, bounded; a code that is no number is None."""
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, dict):
        return None, "", ""
    data = first.get("error_data")
    details = data.get("details") if isinstance(data, dict) else None
    code = lenient.number(first.get("code"))
    return (
        int(code) if code is not None and abs(code) < _INT4 else None,
        lenient.text(first.get("title") or first.get("message"), _TITLE_CHARS) or "",
        lenient.text(details, _DETAILS_CHARS) or "",
    )
