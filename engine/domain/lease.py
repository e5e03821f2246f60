"""Who may send from a number: pure rules of holding, losing and taking over a lease.

Two clocks never have to agree. The owner stops by its own clock, a margin before the lease could be taken; the
candidate waits a full lease on its own clock during which the row did not move.
"""

from dataclasses import dataclass
from uuid import UUID

from engine.domain.heard import SILENT_S

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
class Wait:
    """A number that nobody sends from, until the lease of its silent owner has run out."""

    owner: UUID
    node: str
    """Its name."""
    seconds: float


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


def left(seen: Seen, now: float, lease_seconds: float, silent_s: float | None) -> float | None:
    """Seconds until the lease of a silent owner may be taken; None while its owner speaks: that one renews it.

    `silent_s`: since the owner said that it is alive; None when nobody knows such a node any more.
    """
    if silent_s is not None and silent_s < SILENT_S:
        return None
    return max(0.0, seen.since + lease_seconds - now)


def abandoned(seen: Seen, now: float, lease_seconds: float) -> bool:
    """Whether the row stood still for a full lease: its owner stopped by its own clock before that."""
    return now - seen.since >= lease_seconds
