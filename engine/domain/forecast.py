"""What a rate can still do before deadlines, and when it is done; quiet hours are no time for sending."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.domain.quiet import Quiet, after_open, is_quiet, open_seconds

ENDED = frozenset({"finished", "cancelled"})


@dataclass(frozen=True, slots=True)
class Demand:
    """What a campaign still wants to send. `waiting`: rows that have not left; `rate`: messages/s of its numbers."""

    name: str
    state: str
    priority: int
    deadline: datetime | None
    waiting: int
    rate: float
    numbers: frozenset[str]
    quiet: Quiet | None = None
    zones: tuple[str, ...] = ()

    def seconds(self, now: datetime) -> float | None:
        """Left for sending before its deadline, quiet hours (those of the zone with the most) taken off."""
        if self.deadline is None:
            return None
        if self.deadline <= now:
            return 0.0
        if self.quiet is None or not self.zones:
            return (self.deadline - now).total_seconds()
        return min(open_seconds(self.quiet, zone, now, self.deadline) for zone in self.zones)


def late_rows(mine: Demand, all_of_them: Iterable[Demand], now: datetime) -> int | None:
    """How many rows of a campaign will miss its deadline as things stand, behind what goes first on its numbers.

    None without a deadline. Of a paused campaign: as if it went on now. The tenth that goes round-robin is left out.
    """
    seconds = mine.seconds(now)
    if seconds is None:
        return None
    if mine.state in ENDED or not mine.waiting:
        return 0
    ahead = [
        (other.seconds(now), other.waiting)
        for other in all_of_them
        if other.name != mine.name
        and other.state == "running"
        and other.numbers & mine.numbers
        and _goes_first(other, mine, now)
    ]
    return late_behind([(seconds, mine.waiting)], ahead, mine.rate)


def done_at(seconds: float, quiet: Quiet | None, zones: Iterable[str], now: datetime) -> datetime | None:
    """When so many seconds of sending are over, quiet hours left out (those of the zone that is done last).

    None when it is always quiet in one of them; ten years from now at the latest.
    """
    seconds = min(seconds, 10 * 365 * 86_400.0)
    ends = [after_open(quiet, zone, now, seconds) for zone in zones] if quiet is not None else []
    if any(end is None for end in ends):
        return None
    return max((end for end in ends if end is not None), default=now + timedelta(seconds=seconds))


def asleep(quiet: Quiet | None, zones: Iterable[str], now: datetime) -> bool:
    """Whether it is quiet everywhere, so that nothing can be told from what leaves."""
    known = list(zones)
    return quiet is not None and bool(known) and all(is_quiet(quiet, zone, now) for zone in known)


def _goes_first(other: Demand, mine: Demand, now: datetime) -> bool:
    """By priority, then by the nearest deadline that can still be met: see sharing."""
    if other.priority != mine.priority:
        return other.priority > mine.priority
    if other.deadline is None or mine.deadline is None or other.deadline <= now:
        return False
    return other.deadline < mine.deadline


def late(groups: Iterable[tuple[datetime | None, int]], rate: float, now: datetime) -> int:
    """How many rows will miss their deadline when `rate` messages/s serve the nearest deadline first.

    `groups`: (deadline or None, rows). A row that would be late is not sent, and costs the others nothing.

    >>> noon = datetime(2026, 7, 1, 12)
    >>> late([(datetime(2026, 7, 1, 12, 1), 100), (None, 5)], 1.0, noon)
    40
    """
    return late_behind([(_seconds(deadline, now), rows) for deadline, rows in groups], (), rate)


def late_behind(
    groups: Iterable[tuple[float | None, int]], ahead: Iterable[tuple[float | None, int]], rate: float
) -> int:
    """As `late`, in seconds that are left for sending (None: without end), behind rows that go first.

    >>> late_behind([(60.0, 100)], [(10.0, 50), (None, 20)], 1.0)
    70
    """
    first = list(ahead)
    sent = missed = 0
    for seconds, rows in sorted((s, n) for s, n in groups if s is not None):
        room = int(rate * seconds) - sent - sum(min(n, _most(rate, seconds, s)) for s, n in first)
        in_time = min(rows, max(0, room))
        sent += in_time
        missed += rows - in_time
    return missed


def _most(rate: float, seconds: float, theirs: float | None) -> int:
    """What rows with `theirs` seconds left can take of the next `seconds`."""
    return int(rate * (seconds if theirs is None else min(seconds, theirs)))


def _seconds(deadline: datetime | None, now: datetime) -> float | None:
    return None if deadline is None else max(0.0, (deadline - now).total_seconds())
