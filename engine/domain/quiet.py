"""Quiet hours: when nobody is to be written to, by the clocks of a zone. Pure: the moment is an argument.

Wall clocks decide, also on the days on which they are moved: an hour that comes twice is quiet twice, and one that
is left out leaves nothing to wait for.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

RECIPIENT = "recipient"
"""Instead of a zone's name: each person's own, by country and area of the number."""

_MINUTE = timedelta(minutes=1)
_LOOK = 8 * 24 * 60
"""Minutes to look ahead: wall clocks have come round by then, whatever was done to them."""

_MONTH_S = 31 * 86_400.0
_LONGEST_S = 10 * 365 * 86_400.0

_WRITTEN = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})")


class QuietRefused(ValueError):
    """Not quiet hours, or not a zone. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """From `begins` until before `ends`, over midnight when that is earlier; both are whole minutes."""

    begins: time
    ends: time

    def __str__(self) -> str:
        return f"{self.begins:%H:%M}-{self.ends:%H:%M}"

    def covers(self, wall: time) -> bool:
        """Whether a wall clock that shows this stands in the quiet hours."""
        if self.begins < self.ends:
            return self.begins <= wall < self.ends
        return wall >= self.begins or wall < self.ends


def parse_quiet(text: str) -> Quiet:
    """`21:00-08:00`. Raises QuietRefused."""
    match = _WRITTEN.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        begins, ends = time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
    except ValueError:
        raise QuietRefused(f"{text!r} are no quiet hours: write from-to, such as 21:00-08:00") from None
    if begins == ends:
        raise QuietRefused(f"{text!r} would be quiet all day: nothing could ever be sent")
    return Quiet(begins, ends)


def parse_zone(text: str) -> str:
    """A zone's name as IANA has it, or `recipient`. Raises QuietRefused."""
    name = text.strip()
    if name == RECIPIENT:
        return name
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise QuietRefused(
            f"There is no time zone {name!r}: write one such as America/Sao_Paulo, or recipient"
        ) from None
    return name


def is_quiet(quiet: Quiet, zones: str, at: datetime) -> bool:
    """Whether any of the zones (their names with blanks between them; none: UTC) is in its quiet hours at `at`."""
    return any(quiet.covers(at.astimezone(zone).time()) for zone in _zones(zones))


def next_change(quiet: Quiet, zones: str, at: datetime) -> datetime | None:
    """The first moment after `at` at which `is_quiet` turns, on a whole minute; None when it never does.

    Zones so far apart that it is always night in one of them are never open.
    """
    now = is_quiet(quiet, zones, at)
    moment = at.astimezone(UTC).replace(second=0, microsecond=0)
    for _ in range(_LOOK):
        moment += _MINUTE
        if is_quiet(quiet, zones, moment) is not now:
            return moment
    return None


def open_seconds(quiet: Quiet, zones: str, start: datetime, end: datetime) -> float:
    """How many seconds between the two moments are not quiet."""
    total, at = 0.0, start
    while at < end:
        turn = _change(quiet, zones, at.replace(second=0, microsecond=0))
        until = min(end, turn) if turn is not None else end
        if not is_quiet(quiet, zones, at):
            total += (until - at).total_seconds()
        at = until
    return total


def after_open(quiet: Quiet, zones: str, start: datetime, seconds: float) -> datetime | None:
    """The moment at which so many seconds since `start` were not quiet; None when it is always quiet.

    Beyond a month it is reckoned by the share of this week that is open.
    """
    if seconds > _MONTH_S:
        week = timedelta(days=7)
        share = open_seconds(quiet, zones, start, start + week) / week.total_seconds()
        return start + timedelta(seconds=min(seconds / share, _LONGEST_S)) if share else None
    at, left = start, seconds
    while True:
        turn = _change(quiet, zones, at.replace(second=0, microsecond=0))
        closed = is_quiet(quiet, zones, at)
        if turn is None:
            return None if closed else at + timedelta(seconds=left)
        if not closed:
            if (turn - at).total_seconds() >= left:
                return at + timedelta(seconds=left)
            left -= (turn - at).total_seconds()
        at = turn


@lru_cache(maxsize=4096)
def _change(quiet: Quiet, zones: str, minute: datetime) -> datetime | None:
    return next_change(quiet, zones, minute)


def _zones(names: str) -> Iterable[ZoneInfo]:
    return [ZoneInfo(name) for name in names.split()] or [_UTC]


_UTC = ZoneInfo("UTC")
