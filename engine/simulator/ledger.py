"""Every request that reached the messages endpoint, answered or not, in order of arrival.

Columns instead of one object an entry: a bench leaves millions of them, and a wamid is computed again from
its number rather than kept (about 200 bytes an entry, most of it the two texts).
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from typing import Any

from msgspec import Struct

from engine.simulator import wire

_MIX = 0x9E3779B97F4A7C15F3  # odd, so multiplying by it modulo 2**72 gives each entry an id of its own


class Entry(Struct, frozen=True):
    """One request. `at_us` is monotonic, `unix_us` wall clock; `code` 0 means no error code was answered."""

    n: int
    at_us: int
    unix_us: int
    number: str
    to: str | None
    token: str | None
    outcome: str
    code: int
    accepted: bool
    wamid: str | None


class Ledger:
    """Append-only; `n` counts from 1."""

    def __init__(self, unix_minus_monotonic_us: int, salt: int) -> None:
        """`salt` (72 bits) keeps ids of two runs apart: to a client, wamids are unique for ever."""
        self._shift, self._salt = unix_minus_monotonic_us, salt
        self.at_us = array("q")
        self.codes = array("l")
        self.numbers: list[str] = []
        self.outcomes: list[str] = []
        self.wa_ids: list[str | None] = []
        self.inputs: dict[int, str] = {}  # only where `to` was not simply + and the wa_id
        self.tokens: list[str | None] = []
        self.accepted = bytearray()
        self.totals: Counter[str] = Counter()
        self._names: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.at_us)

    def record(
        self,
        at_us: int,
        number: str,
        outcome: str,
        *,
        code: int = 0,
        accepted: bool = False,
        to: str | None = None,
        wa_id: str | None = None,
        token: str | None = None,
    ) -> int:
        """Add a request and return its n."""
        self.at_us.append(at_us)
        self.codes.append(code)
        self.numbers.append(self._names.setdefault(number, number))
        self.outcomes.append(outcome)
        self.wa_ids.append(wa_id)
        self.tokens.append(token)
        self.accepted.append(accepted)
        n = len(self.at_us)
        if to is not None and (wa_id is None or to != "+" + wa_id):
            self.inputs[n] = to
        self.totals["requests"] += 1
        self.totals[outcome] += 1
        if accepted:
            self.totals["taken"] += 1
        return n

    def wamid(self, n: int, *, inbound: bool = False) -> str:
        """The message id of entry `n`, which must have a recipient."""
        return self.wamid_for(n, self.wa_ids[n - 1] or "", inbound=inbound)

    def wamid_for(self, unique: int, wa_id: str, *, inbound: bool = False) -> str:
        """The message id for a number that is used once, below 2**72."""
        return wire.wamid((unique * _MIX + self._salt) % (1 << 72), wa_id, inbound=inbound)

    def unix_us(self, monotonic_us: int) -> int:
        """Wall clock time of a moment on the monotonic clock."""
        return monotonic_us + self._shift

    def entry(self, n: int) -> Entry:
        """Entry `n`, from 1."""
        i = n - 1
        wa, taken = self.wa_ids[i], bool(self.accepted[i])
        return Entry(
            n=n,
            at_us=self.at_us[i],
            unix_us=self.unix_us(self.at_us[i]),
            number=self.numbers[i],
            to=self.inputs.get(n, wa and "+" + wa),
            token=self.tokens[i],
            outcome=self.outcomes[i],
            code=self.codes[i],
            accepted=taken,
            wamid=self.wamid(n) if taken else None,
        )

    def entries(self, after: int, limit: int) -> list[Entry]:
        """Up to `limit` entries with n > `after`."""
        return [self.entry(n) for n in range(after + 1, min(after + limit, len(self)) + 1)]


class Tally:
    """Counts over a ledger, fed in slices so that a long one never holds up the server."""

    def __init__(self, ledger: Ledger, window_us: int) -> None:
        self._ledger, self._window_us = ledger, window_us
        self._numbers: dict[str, _NumberTally] = {}
        self._rows: set[str] = set()
        self._repeated: Counter[str] = Counter()

    def add(self, start: int, stop: int) -> None:
        """Count entries start + 1 to stop; slices must follow each other."""
        book = self._ledger
        for i in range(start, stop):
            number = book.numbers[i]
            counts = self._numbers.get(number)
            if counts is None:
                counts = self._numbers[number] = _NumberTally()
            counts.add(book.at_us[i], self._window_us, book.codes[i], taken=bool(book.accepted[i]))
            token = book.tokens[i]
            if token is not None and book.accepted[i]:
                self._count_row(row_of(token))

    def result(self) -> dict[str, Any]:
        """Per number, and the rows that were accepted more than once (the first 1,000 by name)."""
        return {
            "numbers": {number: counts.result() for number, counts in self._numbers.items()},
            "repeated_rows": len(self._repeated),
            "repeated": dict(sorted(self._repeated.items())[:1000]),
        }

    def _count_row(self, row: str) -> None:
        if row in self._rows:
            self._repeated[row] = (self._repeated[row] or 1) + 1
        else:
            self._rows.add(row)


class _NumberTally:
    __slots__ = (
        "accepted",
        "most_accepted",
        "most_requests",
        "recent",
        "recent_accepted",
        "refused",
        "requests",
    )

    def __init__(self) -> None:
        self.requests = self.accepted = self.most_requests = self.most_accepted = 0
        self.refused: Counter[str] = Counter()
        self.recent: deque[int] = deque()
        self.recent_accepted: deque[int] = deque()

    def add(self, at_us: int, window_us: int, code: int, *, taken: bool) -> None:
        self.requests += 1
        self.most_requests = max(self.most_requests, _slide(self.recent, at_us, window_us))
        if taken:
            self.accepted += 1
            self.most_accepted = max(self.most_accepted, _slide(self.recent_accepted, at_us, window_us))
        elif code:
            self.refused[str(code)] += 1

    def result(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "accepted": self.accepted,
            "refused": dict(self.refused),
            "most_requests": self.most_requests,
            "most_accepted": self.most_accepted,
        }


def row_of(token: str) -> str:
    """The row a token belongs to: the token without its last `:n`, which numbers the try."""
    return token.rpartition(":")[0] or token


def _slide(recent: deque[int], at_us: int, window_us: int) -> int:
    recent.append(at_us)
    while recent[0] <= at_us - window_us:
        recent.popleft()
    return len(recent)
