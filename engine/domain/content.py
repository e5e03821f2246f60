"""What a template is filled with: its header, body and buttons, each from a column of the audience or a constant.

The shape, in a campaign's `content` and (written as tables) in the file of `campaign create --from`:

    {"header": {"type": "document", "link": {"column": "invoice"}, "filename": "invoice.pdf"},
     "body": [{"column": "name", "name": "first_name"}, {"text": "12 March", "name": "day"}],
     "buttons": [{"type": "url", "index": 0, "column": "code"}]}

A value is a text, which is the same for everybody, or {"column": …}. `name` is the variable's own name, in templates
whose variables have names; then all of the header's and body's variables have one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.domain.parameter import Kind, unfit

MEDIA = ("image", "video", "document")
BUTTONS: Final = {"url": Kind.URL, "quick_reply": Kind.PAYLOAD, "copy_code": Kind.CODE}
MOST_BUTTONS = 10

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ContentRefused(ValueError):
    """It cannot be what a template is filled with. The message is one sentence without its full stop."""

    def __init__(self, sentence: str, key: str | None = None) -> None:
        super().__init__(sentence)
        self.key = key
        """The key at fault, for a caller that knows in which line it stands."""


@dataclass(frozen=True, slots=True)
class Value:
    """Either a column's name or a text that is the same for everybody."""

    column: str | None = None
    text: str | None = None

    def of(self, params: Mapping[str, str]) -> str:
        """The text for one row. Raises KeyError when the row lacks the column."""
        return params[self.column] if self.column is not None else self.text or ""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a text. `name`: as the template calls it, None when it counts its variables."""

    value: Value
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """A header's picture, film or document: by `link` or by the `id` of an upload, never both."""

    type: str
    link: Value | None = None
    id: Value | None = None
    filename: Value | None = None


@dataclass(frozen=True, slots=True)
class Button:
    """A button that takes a value. `index`: its place among all of the template's buttons, from 0."""

    type: str
    index: int
    value: Value


@dataclass(frozen=True, slots=True)
class Content:
    """All that a campaign fills its template with."""

    header: Variable | Media | None = None
    body: tuple[Variable, ...] = ()
    buttons: tuple[Button, ...] = ()

    @classmethod
    def of_columns(cls, columns: Sequence[str]) -> "Content":
        """A body of counted variables, one column each: what `--body name,date` says."""
        return cls(body=tuple(Variable(Value(column=column)) for column in columns))

    def values(self) -> Iterator[tuple[str, Kind, Value]]:
        """Each value with the place where it goes, for people, and what may stand there."""
        match self.header:
            case Variable(value):
                yield "the header", Kind.HEADER, value
            case Media(type_, link, id_, filename):
                parts = (
                    ("link", Kind.LINK, link),
                    ("id", Kind.MEDIA_ID, id_),
                    ("filename", Kind.FILENAME, filename),
                )
                for part, kind, given in parts:
                    if given is not None:
                        yield f"the header's {type_} {part}", kind, given
        for place, variable in enumerate(self.body, start=1):
            yield f"the body's variable {variable.name or place}", Kind.BODY, variable.value
        for button in self.buttons:
            yield f"button {button.index} ({button.type})", BUTTONS[button.type], button.value

    def columns(self) -> dict[str, tuple[Kind, ...]]:
        """The columns that an audience must have, with all the kinds of place that each one fills."""
        found: dict[str, tuple[Kind, ...]] = {}
        for _, kind, value in self.values():
            if value.column is not None:
                kinds = found.get(value.column, ())
                found[value.column] = kinds if kind in kinds else (*kinds, kind)
        return found


def read_content(written: Mapping[str, object]) -> Content:
    """The content in the shape that the module draws, its constants checked too. Raises ContentRefused."""
    content = parse_content(written)
    _check(content)
    return content


def parse_content(written: Mapping[str, object]) -> Content:
    """The same for what was stored, whose names, places and constants were checked once. Raises ContentRefused."""
    _only(written, ("header", "body", "buttons"), "the content")
    header = None if written.get("header") is None else _header(_table(written["header"], "header"))
    body = tuple(_body(item, place) for place, item in enumerate(_list(written, "body"), start=1))
    buttons = tuple(
        _button(_table(item, "buttons"), place) for place, item in enumerate(_list(written, "buttons"))
    )
    return Content(header, body, tuple(sorted(buttons, key=lambda button: button.index)))


def write_content(content: Content) -> dict[str, object]:
    """The shape that `read_content` reads."""
    written: dict[str, object] = {}
    match content.header:
        case Variable():
            written["header"] = {"type": "text", **_written_variable(content.header)}
        case Media(type_, link, id_, filename):
            parts = {"link": link, "id": id_, "filename": filename}
            written["header"] = {"type": type_} | {k: _written(v) for k, v in parts.items() if v is not None}
    if content.body:
        written["body"] = [_written_variable(variable) for variable in content.body]
    if content.buttons:
        written["buttons"] = [
            {"type": button.type, "index": button.index, **_flat(button.value)} for button in content.buttons
        ]
    return written


def _header(table: Mapping[str, object]) -> Variable | Media:
    type_ = table.get("type", "text")
    if type_ == "text":
        _only(table, ("type", "column", "text", "name"), "a header of text")
        return _variable(table, "the header")
    if type_ not in MEDIA:
        raise ContentRefused(f"the header's type {type_!r} is none of text, {', '.join(MEDIA)}", "type")
    allowed = ("type", "link", "id", *(("filename",) if type_ == "document" else ()))
    _only(table, allowed, f"a header with {_a(str(type_))}")
    if ("link" in table) == ("id" in table):
        raise ContentRefused(
            f"a header with {_a(str(type_))} needs a link or the id of an upload, one of them", "header"
        )
    link, id_, filename = (_nested(table, key) for key in ("link", "id", "filename"))
    return Media(str(type_), link, id_, filename)


def _body(item: object, place: int) -> Variable:
    if isinstance(item, str):
        return Variable(Value(column=item.strip()))
    table = _table(item, "body")
    _only(table, ("column", "text", "name"), f"the body's variable {place}")
    return _variable(table, f"the body's variable {place}")


def _button(table: Mapping[str, object], place: int) -> Button:
    type_, index = table.get("type"), table.get("index", place)
    if type_ not in BUTTONS:
        raise ContentRefused(f"a button's type {type_!r} is none of {', '.join(BUTTONS)}", "type")
    _only(table, ("type", "index", "column", "text"), f"a {type_} button")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < MOST_BUTTONS:
        raise ContentRefused(f"a button's index {index!r} is no number from 0 to {MOST_BUTTONS - 1}", "index")
    return Button(str(type_), index, _value(table, f"button {index}"))


def _variable(table: Mapping[str, object], where: str) -> Variable:
    name = table.get("name")
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise ContentRefused(
            f"{where} has the name {name!r}: a variable's name is of lower-case letters, digits and _", "name"
        )
    return Variable(_value(table, where), name)


def _value(table: Mapping[str, object], where: str) -> Value:
    column, text = table.get("column"), table.get("text")
    if (column is None) == (text is None):
        raise ContentRefused(f"{where} needs a column or a text, one of them")
    if column is None:
        if not isinstance(text, str):
            raise ContentRefused(f"{where} has a text that is none: write it in quotes", "text")
        return Value(text=text)
    if not isinstance(column, str) or not column.strip():
        raise ContentRefused(f"{where} names no column", "column")
    return Value(column=column.strip())


def _nested(table: Mapping[str, object], key: str) -> Value | None:
    written = table.get(key)
    if written is None:
        return None
    if isinstance(written, str):
        return Value(text=written)
    nested = _table(written, key)
    _only(nested, ("column", "text"), f"the header's {key}")
    return _value(nested, f"the header's {key}")


def _check(content: Content) -> None:
    variables = [*content.body, *([content.header] if isinstance(content.header, Variable) else [])]
    names = [variable.name for variable in variables]
    if any(names) and not all(names):
        raise ContentRefused(
            "some variables have a name and some have none: a template names all of them or none"
        )
    named = [variable.name for variable in content.body if variable.name]
    for name in named:
        if named.count(name) > 1:
            raise ContentRefused(f"two variables of the body are called {name!r}", "name")
    indexes = [button.index for button in content.buttons]
    for index in indexes:
        if indexes.count(index) > 1:
            raise ContentRefused(
                f"two buttons have the index {index}: count all of the template's buttons from 0", "index"
            )
    if sum(button.type == "copy_code" for button in content.buttons) > 1:
        raise ContentRefused("a template has one copy_code button at most", "type")
    for where, kind, value in content.values():
        if value.text is not None and (why := unfit(value.text, kind)):
            raise ContentRefused(f"{where} {why}", "text")


def _only(table: Mapping[str, object], allowed: Sequence[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise ContentRefused(f"{where} knows no {key!r}, only {', '.join(allowed)}", key)


def _table(item: object, key: str) -> Mapping[str, object]:
    if not isinstance(item, Mapping):
        raise ContentRefused(f"{key!r} must be a table of keys and values", key)
    return item


def _list(table: Mapping[str, object], key: str) -> Sequence[object]:
    items = table.get(key, ())
    if isinstance(items, str) or not isinstance(items, Sequence):
        raise ContentRefused(f"{key!r} must be a list, one item for each", key)
    return items


def _written_variable(variable: Variable) -> dict[str, object]:
    return {**_flat(variable.value), **({"name": variable.name} if variable.name else {})}


def _written(value: Value) -> object:
    return {"column": value.column} if value.column is not None else value.text


def _flat(value: Value) -> dict[str, object]:
    return {"column": value.column} if value.column is not None else {"text": value.text}


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
