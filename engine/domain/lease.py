"""Who may send from a number: pure rules of holding, losing and taking over a lease.

Two clocks never have to agree. The owner stops by its own clock, a margin before the lease could be taken; the
candidate waits a full lease on its own clock during which the row did not move.
"""

from dataclasses import dataclass
from uuid import UUID

CONNECT_TIMEOUT = 2.0
"""Seconds a connection to the provider may take: the longest that a request can leave after its check."""

MARGIN = CONNECT_TIMEOUT + 1.0


def margin(lease_seconds: float) -> float:
    """Seconds before the lease's end at which its owner stops; at most half, so that short leases are usable."""
    return min(MARGIN, lease_seconds / 2)


def deadline(asked_at: float, lease_seconds: float) -> float:
    """Until when the owner may send, on its own clock; `asked_at`: read before the renewal left."""
    return asked_at + lease_seconds - margin(lease_seconds)


@dataclass(frozen=True, slots=True)
class Seen:
    """A lease row as last read, and since when (own clock) it has not moved."""

    token: UUID
    renew_seq: int
    since: float


def watch(before: Seen | None, token: UUID, renew_seq: int, now: float) -> Seen:
    """Go on watching a row: the same row keeps its `since`, a moved one starts anew."""
    if before is not None and (before.token, before.renew_seq) == (token, renew_seq):
        return before
    return Seen(token, renew_seq, now)


def abandoned(seen: Seen, now: float, lease_seconds: float) -> bool:
    """Whether the row stood still for a full lease: its owner stopped by its own clock before that."""
    return now - seen.since >= lease_seconds
