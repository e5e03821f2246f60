"""What becomes of campaigns and numbers over time: settled rows, idle minutes, unknown rows, delivered shares.

Fed with what the database says; remembers just enough to say how that changes. Times: seconds of the loop.
"""

from collections import deque
from collections.abc import Collection, Mapping

from engine.domain.recipient import State

WAITING = (State.PENDING, State.CLAIMED, State.SENDING)
PACE_SECONDS = 60.0
UNKNOWN_SECONDS = 600.0
LEAST_SAMPLE = 50
"""Sends that a share must be made of to mean anything."""


class Progress:
    """Of each campaign: how fast rows leave the open work, and since when none has."""

    def __init__(self) -> None:
        self._settled: dict[int, deque[tuple[float, int]]] = {}
        self._moved: dict[int, tuple[float, int]] = {}

    def see(self, now: float, counts: Mapping[int, Mapping[State, int]], due: Collection[int]) -> None:
        """The books as they stand; `due`: campaigns with rows that could be sent now."""
        for gone in self._settled.keys() - counts.keys():
            del self._settled[gone]
        for campaign_id, by_state in counts.items():
            settled = sum(by_state.values()) - sum(by_state[state] for state in WAITING)
            history = self._settled.setdefault(campaign_id, deque())
            history.append((now, settled))
            while history[0][0] < now - PACE_SECONDS:
                history.popleft()
            since, before = self._moved.get(campaign_id, (now, settled))
            moved = settled != before or campaign_id not in due
            self._moved[campaign_id] = (now if moved else since, settled)

    def pace(self, campaign_id: int) -> float | None:
        """Rows a second that left the open work during the last minute; None when not known."""
        history = self._settled.get(campaign_id)
        if not history or history[-1][0] - history[0][0] < 2.0:
            return None
        (first, before), (last, after) = history[0], history[-1]
        return (after - before) / (last - first)

    def idle(self, now: float, campaign_id: int) -> float:
        """Seconds since a row was settled, counted only while rows are due."""
        since, _ = self._moved.get(campaign_id, (now, 0))
        return now - since


class Growth:
    """How much a count has grown above its lowest of the last ten minutes."""

    def __init__(self) -> None:
        self._seen: dict[int, deque[tuple[float, int]]] = {}

    def see(self, now: float, counts: Mapping[int, int]) -> None:
        """Counts by number_id; who is missing has none."""
        for number_id in self._seen.keys() | counts.keys():
            history = self._seen.setdefault(number_id, deque())
            history.append((now, counts.get(number_id, 0)))
            while history[0][0] < now - UNKNOWN_SECONDS:
                history.popleft()

    def of(self, number_id: int) -> int:
        """Rows above the lowest."""
        history = self._seen.get(number_id)
        return history[-1][1] - min(count for _, count in history) if history else 0


class Delivered:
    """Which share of its older sends reached people, for each campaign, and the best that it has shown."""

    def __init__(self, assumed: float) -> None:
        self._assumed = assumed
        self._shares: dict[int, float] = {}
        self._norms: dict[int, float] = {}

    def see(self, samples: Mapping[int, tuple[int, int]]) -> None:
        """(sends, delivered) by campaign_id. Whoever has too few sends is not judged."""
        self._shares = {c: got / sends for c, (sends, got) in samples.items() if sends >= LEAST_SAMPLE}
        for campaign_id, share in self._shares.items():
            self._norms[campaign_id] = max(share, self._norms.get(campaign_id, self._assumed))

    def share(self, campaign_id: int) -> float | None:
        """0..1, or None."""
        return self._shares.get(campaign_id)

    def norm(self, campaign_id: int) -> float | None:
        """The best share so far, or the assumed one; None while there is nothing to compare."""
        return self._norms.get(campaign_id)
