"""What a rate can still do before deadlines."""

from collections.abc import Iterable
from datetime import datetime


def late(groups: Iterable[tuple[datetime | None, int]], rate: float, now: datetime) -> int:
    """How many rows will miss their deadline when `rate` messages/s serve the nearest deadline first.

    `groups`: (deadline or None, rows). A row that would be late is not sent, and costs the others nothing.

    >>> noon = datetime(2026, 7, 1, 12)
    >>> late([(datetime(2026, 7, 1, 12, 1), 100), (None, 5)], 1.0, noon)
    40
    """
    sent = missed = 0
    for deadline, rows in sorted((group for group in groups if group[0] is not None), key=_deadline):
        room = int(rate * max(0.0, (_deadline((deadline, rows)) - now).total_seconds())) - sent
        in_time = min(rows, max(0, room))
        sent += in_time
        missed += rows - in_time
    return missed


def _deadline(group: tuple[datetime | None, int]) -> datetime:
    assert group[0] is not None
    return group[0]
