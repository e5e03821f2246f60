"""A row's life: twelve states, the legal moves between them, and the rank by which statuses only go forward.

    pending ──► claimed ──► sending ──► sent ──► delivered ──► read
       ▲           │           ├──► assessing (Meta holds it) ──► sent …
       │           │           ├──► unknown (a request may have been taken) ──► by evidence, policy, person
       │           │           └──► failed (definite; a late delivered or read wins over it)
       └───────────┴── back after a refusal that is not the row's fault, or when nothing left
    pending or claimed ──► expired, suppressed, cancelled (never taken by Meta)

Evidence outranks bookkeeping: a status that proves an earlier try was taken settles a row wherever it stands
before `delivered`, even one that was given up as expired, suppressed or cancelled.
"""

from enum import StrEnum


class State(StrEnum):
    """The twelve states; the value is the letter that the database keeps."""

    PENDING = "p"
    CLAIMED = "c"
    SENDING = "s"
    UNKNOWN = "u"
    ASSESSING = "a"
    SENT = "t"
    DELIVERED = "d"
    READ = "r"
    FAILED = "f"
    EXPIRED = "x"
    SUPPRESSED = "z"
    CANCELLED = "k"

    @property
    def word(self) -> str:
        """The state's name as people and JSON read it: `pending`, `claimed`, …"""
        return self.name.lower()


OPEN = frozenset({State.PENDING, State.CLAIMED, State.SENDING, State.UNKNOWN, State.ASSESSING})
"""A campaign is not finished while any row stands in one of these five."""

NEVER_TAKEN = frozenset({State.EXPIRED, State.SUPPRESSED, State.CANCELLED})

_SETTLED = frozenset({State.SENT, State.ASSESSING, State.DELIVERED, State.READ, State.FAILED})

MOVES: dict[State, frozenset[State]] = {
    State.PENDING: frozenset({State.CLAIMED}) | NEVER_TAKEN,
    State.CLAIMED: frozenset({State.SENDING, State.PENDING}) | NEVER_TAKEN,
    State.SENDING: frozenset({State.SENT, State.ASSESSING, State.UNKNOWN, State.FAILED, State.PENDING})
    | NEVER_TAKEN,  # an answer that was refused may find its campaign cancelled or its deadline past
    State.UNKNOWN: _SETTLED | {State.PENDING},
    State.ASSESSING: frozenset({State.SENT, State.DELIVERED, State.READ, State.FAILED, State.PENDING}),
    State.SENT: frozenset({State.DELIVERED, State.READ, State.FAILED, State.PENDING}),
    State.DELIVERED: frozenset({State.READ}),
    State.READ: frozenset(),
    State.FAILED: frozenset({State.PENDING, State.DELIVERED, State.READ}),
    State.EXPIRED: frozenset(),
    State.SUPPRESSED: frozenset(),
    State.CANCELLED: frozenset(),
}
"""What a decision may do. Evidence (below) may do more."""

EVIDENCE: dict[State, frozenset[State]] = {
    before: frozenset({State.SENT, State.DELIVERED, State.READ})
    for before in (State.PENDING, State.CLAIMED, State.SENDING, State.UNKNOWN, *sorted(NEVER_TAKEN))
}
"""What proof of an earlier try may do besides."""

_RANK = {State.SENT: 1, State.FAILED: 2, State.DELIVERED: 3, State.READ: 4}


def rank(state: State) -> int:
    """0 before `sent`, then sent 1, failed 2, delivered 3, read 4. Statuses move a row only upward."""
    return _RANK.get(state, 0)


def may_move(before: State, after: State, *, proven: bool = False) -> bool:
    """Whether a row may go from `before` to `after`; `proven`: by evidence about a try that left."""
    return after in MOVES[before] or (proven and after in EVIDENCE.get(before, frozenset()))
