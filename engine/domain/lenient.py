"""Reading JSON of others without trusting its shape: a value of the wrong kind reads as absent, never as an error."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_MILLISECONDS_FROM = 1e12  # as seconds this is the year 33658
_LATEST = 1e10


def text(value: object, limit: int) -> str | None:
    """`value` as text that Postgres takes: bounded, no NUL, no lone surrogate. None when empty or no text."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**limit else None
    if not isinstance(value, str) or not value:
        return None
    value = value[:limit]
    if "\0" in value or not value.isascii():
        value = value.replace("\0", "").encode("utf-8", "replace").decode()
    return value or None


def number(value: object) -> float | None:
    """A number, quoted or not; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def seconds(value: object) -> float | None:
    """Unix seconds from seconds or milliseconds, quoted or not; None when it cannot be a time of our age."""
    read = number(value)
    if read is None:
        return None
    if read >= _MILLISECONDS_FROM:
        read /= 1000
    return read if 0 < read < _LATEST else None


def moment(value: object) -> datetime | None:
    """As `seconds`, as an aware moment."""
    read = seconds(value)
    return datetime.fromtimestamp(read, UTC) if read is not None else None


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(holder: Mapping[str, Any], key: str) -> list[Any]:
    """The list under `key`, or an empty one."""
    value = holder.get(key)
    return value if isinstance(value, list) else []
