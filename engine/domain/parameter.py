"""What may stand in each place of a template, so that a row which WhatsApp would refuse is refused at its import."""

import re
import unicodedata
from enum import Enum
from typing import Final
from urllib.parse import urlsplit


class Kind(Enum):
    """A place in a template, and what is put there."""

    BODY = "body"
    HEADER = "header"
    URL = "url"
    """The variable end of a button's address."""
    PAYLOAD = "payload"
    """What comes back when a quick reply is tapped."""
    CODE = "code"
    LINK = "link"
    MEDIA_ID = "media id"
    FILENAME = "filename"


BODY_CHARS = 1_024
"""Of a body in all, its fixed text and its values together."""

MOST_CHARS: Final = {  # Meta's figures; where it names none (payload, filename), what its other objects allow
    Kind.BODY: BODY_CHARS,
    Kind.HEADER: 60,
    Kind.URL: 2_000,
    Kind.PAYLOAD: 256,
    Kind.CODE: 20,
    Kind.LINK: 2_000,
    Kind.MEDIA_ID: 64,
    Kind.FILENAME: 240,
}

_WORDS: Final = {
    Kind.BODY: "template's parameter",
    Kind.HEADER: "template's header",
    Kind.URL: "variable of a button's address",
    Kind.PAYLOAD: "quick reply's payload",
    Kind.CODE: "code to copy",
    Kind.LINK: "link",
    Kind.MEDIA_ID: "media id",
    Kind.FILENAME: "file's name",
}

_TEXTS = frozenset({Kind.BODY, Kind.HEADER})
_LINE_END = re.compile("[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]")
_MANY_BLANKS = re.compile("[ \u00a0]{5}")
_BLANK = re.compile(r"\s")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def unfit(value: str, kind: Kind = Kind.BODY) -> str | None:
    """Why WhatsApp would refuse `value` there (its errors 131008, 132000, 132005, 132012, 132018), or None.

    The reason is the end of a sentence that begins with where the value stands; it never holds the value.
    """
    if not value or not (value.isascii() or any(map(_visible, value))) or value.isspace():
        return "is empty, and the template needs it"
    if len(value) > MOST_CHARS[kind]:
        return f"is longer than the {MOST_CHARS[kind]:,} characters that a {_WORDS[kind]} may have"
    if kind in _TEXTS:
        return _unfit_text(value)
    match kind:
        case Kind.LINK:
            return _unfit_link(value)
        case Kind.MEDIA_ID:
            return None if value.isascii() and value.isdigit() else "is no media id, which is of digits alone"
        case Kind.URL | Kind.CODE if _BLANK.search(value):
            return f"holds a blank or a line break, which a {_WORDS[kind]} cannot have"
        case Kind.FILENAME if "/" in value or "\\" in value:
            return "is a path: a file's name has no slashes"
    return "holds a line break, a tab or another control character" if _CONTROL.search(value) else None


def body_too_long(values: list[str]) -> str | None:
    """Why the values of a body are together too long, whatever fixed text stands between them; or None."""
    if len(values) > 1 and sum(map(len, values)) > BODY_CHARS:
        return f"has values for the body that are together longer than the {BODY_CHARS:,} characters of a whole body"
    return None


def _unfit_text(value: str) -> str | None:
    if "\0" in value:
        return "holds a NUL character"
    if _LINE_END.search(value):
        return "holds a line break or a tab, which WhatsApp refuses in a template"
    if _MANY_BLANKS.search(value):
        return "holds more than four blanks in a row, which WhatsApp refuses in a template"
    return None


def _unfit_link(value: str) -> str | None:
    try:
        parts = urlsplit(value)
        host = parts.hostname
    except ValueError:
        host = None
    if _BLANK.search(value) or not host or parts.scheme.lower() not in ("http", "https"):
        return "is no link: write https:// and the whole address, with no blanks"
    if parts.username is not None or parts.password is not None:
        return "is a link with a password in it: Meta fetches it without one, and it would be kept"
    return None


def _visible(character: str) -> bool:
    return not character.isspace() and unicodedata.category(character) != "Cf"
