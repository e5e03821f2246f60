"""What a dry run of reconcile says of rows that wait for the end of their campaign's window; pure, for every screen."""

from datetime import datetime

from engine.domain.count import counted
from engine.domain.snapshot import ReconcilePreview

EVERY_S = 15.0
"""Seconds between two rounds in which the engine settles by itself what is ripe."""

_THEN = {
    "hold": "for a person (hold)",
    "assume_sent": "counted as sent (assume_sent)",
    "resend": "sent once more (resend)",
}


def coming(preview: ReconcilePreview, now: datetime) -> list[str]:
    """A line for each of: when windows end, what happens then without evidence, and who does it. Empty: none waits for
    its window.

    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 11, 30, 22, 13, tzinfo=UTC)
    >>> first, last = now + timedelta(seconds=42), now + timedelta(seconds=65)
    >>> waiting = ReconcilePreview(0, 0, 0, 3, 0, "", first=first, last=last, then=(("hold", 2), ("resend", 1)))
    >>> print(*coming(waiting, now), sep="\\n")
    Windows of 3 rows end: first in 42 s, all by 22:14:05Z.
    Without evidence then: 2 for a person (hold), 1 sent once more (resend).
    The engine settles by itself every 15 s what is ripe.
    """
    if preview.first is None or preview.last is None:
        return []
    left = (preview.first - now).total_seconds()
    first = f"in {left:.0f} s" if left < 120 else f"at {preview.first:%H:%M:%S}Z"
    days = (preview.last.date() - now.date()).days
    last = f"{preview.last:%H:%M:%S}Z" if days == 0 else f"{preview.last:%m-%d %H:%M:%S}Z"
    ends = f"first {first if left > 0 else 'by now'}, all by {last}"
    then = ", ".join(f"{rows:,} {_THEN.get(policy, policy)}" for policy, rows in preview.then)
    return [
        f"Windows of {counted(sum(rows for _, rows in preview.then), 'row')} end: {ends}.",
        f"Without evidence then: {then}.",
        f"The engine settles by itself every {EVERY_S:.0f} s what is ripe.",
    ]
