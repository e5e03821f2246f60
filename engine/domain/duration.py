"""Lengths of time as people write them: 10, 10s, 250ms, 30m, 2h, 1d."""

import math
import re

_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)", re.ASCII)


def parse_duration(text: str | float) -> float:
    """Seconds. Raises ValueError, whose text says what is allowed.

    >>> parse_duration("30m")
    1800.0
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        seconds = float(text)
    else:
        match = _WRITTEN.fullmatch(str(text).strip())
        seconds = float(match[1]) * _SECONDS[match[2]] if match else math.nan
    if not 0 <= seconds < 10 * 366 * 86400.0:
        raise ValueError("write a length of time such as 10, 10s, 30m or 2h")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest exact form: `90s`, `30m`, `2h`.

    >>> format_duration(1800)
    '30m'
    """
    for unit in ("d", "h", "m"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return f"{seconds:g}s"
