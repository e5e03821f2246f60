"""Which figures of the node are remembered for six hours: the one registry that the engine samples and screens list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.domain.forecast import ENDED
from engine.domain.snapshot import WINDOWS, CampaignView, Percentiles, Points, Snapshot

Read = Callable[[Snapshot], float | None]
Unit = Literal["per second", "seconds", "rows", "MB"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a snapshot, taken once a second. None is remembered as 0: nothing happened that could be timed."""

    name: str
    title: str
    unit: Unit
    read: Read
    over_nodes: Literal["sum", "max"] = "max"
    """How the figures of several nodes become one; what the database says is the same from everyone."""


def _p95(read: Callable[[Snapshot], Percentiles | None]) -> Read:
    def of(snapshot: Snapshot) -> float | None:
        found = read(snapshot)
        return found.p95 if found is not None else None

    return of


def _count(state: str) -> Read:
    return lambda s: float(sum(c.counts.get(state, 0) for c in s.campaigns))


FIGURES: tuple[Figure, ...] = (
    Figure("accepted", "accepted", "per second", lambda s: sum(n.accepted_last_second for n in s.numbers), "sum"),
    Figure("tries", "tries", "per second", lambda s: sum(n.tries_last_second for n in s.numbers), "sum"),
    Figure("token_wait", "token wait p95, worst number", "seconds", _p95(lambda s: s.token_wait)),
    Figure("latency", "provider's answer p95, worst number", "seconds", _p95(lambda s: s.latency)),
    Figure("claim_time", "claim p95", "seconds", _p95(lambda s: s.claim_time)),
    Figure("commit_time", "commit p95", "seconds", _p95(lambda s: s.commit_time)),
    Figure("sent_to_delivered", "sent to delivered p95", "seconds", _p95(lambda s: s.sent_to_delivered)),
    Figure("webhook_lag", "webhook lag", "seconds", lambda s: s.webhook_lag_s),
    Figure("inbox", "webhook bodies waiting", "rows", lambda s: s.inbox_backlog),
    Figure("in_flight", "requests in flight", "rows", lambda s: s.in_flight, "sum"),
    Figure("pending", "pending", "rows", _count("pending")),
    Figure("failed", "failed", "rows", _count("failed")),
    Figure("delivered", "delivered and read", "rows",
           lambda s: float(sum(c.counts.get(w, 0) for c in s.campaigns for w in ("delivered", "read")))),
    Figure("stuck", "sending for more than 120 s", "rows", lambda s: sum(b.count for b in s.stuck)),
    Figure("unknown", "unknown", "rows", lambda s: s.unknown),
    Figure("held", "holds", "rows", lambda s: len(s.holds)),
    Figure("results", "answers not written yet", "rows", lambda s: s.results_backlog, "sum"),
    Figure("transaction", "oldest transaction", "seconds",
           lambda s: s.oldest_transaction.age_s if s.oldest_transaction else None),
    Figure("loop_lag", "engine's loop late by", "seconds", lambda s: s.loop_lag_s),
    Figure("memory", "memory", "MB", lambda s: s.memory_mb, "sum"),
)  # fmt: skip


OF_A_CAMPAIGN: tuple[tuple[str, str, Unit], ...] = (
    ("accepted", "accepted", "per second"), ("pending", "pending", "rows"), ("failed", "failed", "rows"),
)  # fmt: skip
"""Name, title, unit. They are the database's: every node keeps the same of them, since its start."""

MOST_CAMPAIGNS = 20
"""Campaigns whose past is kept."""


def remembered(campaigns: Iterable[CampaignView]) -> list[CampaignView]:
    """At most MOST_CAMPAIGNS of those that were started: the ones under way, then those that ended last."""
    started = [c for c in campaigns if c.started_at is not None]
    under_way = [c for c in started if c.state not in ENDED]
    ended = sorted((c for c in started if c.state in ENDED), key=_ended_at, reverse=True)
    return [*under_way, *ended][:MOST_CAMPAIGNS]


def _ended_at(campaign: CampaignView) -> float:
    return campaign.finished_at.timestamp() if campaign.finished_at is not None else 0.0


def longest(snapshots: Sequence[Snapshot], campaigns: Iterable[CampaignView]) -> tuple[CampaignView, ...]:
    """The same campaigns with the past that the node which has run for longest remembers."""
    pasts = {
        c.name: c.past for s in sorted(snapshots, key=lambda s: s.uptime_s) for c in s.campaigns if c.past
    }
    return tuple(replace(c, past=pasts.get(c.name, {})) for c in campaigns)


def merged(pasts: Sequence[Mapping[str, Points]]) -> dict[str, Points]:
    """The figures of several nodes as one; steps are aligned at the newest, so to within one step."""
    ways: dict[str, Callable[[Iterable[float]], float]] = {"sum": sum, "max": max}
    return {
        figure.name: tuple(
            tuple(ways[figure.over_nodes](column) for column in columns(_window(pasts, figure.name, at)))
            for at in range(len(WINDOWS))
        )
        for figure in FIGURES
    }


def _window(pasts: Iterable[Mapping[str, Points]], name: str, at: int) -> list[tuple[float, ...]]:
    return [past[name][at] for past in pasts if len(past.get(name, ())) > at]


def columns(series: Sequence[Sequence[float]]) -> Iterable[tuple[float, ...]]:
    """Aligned at the newest value; a node that is younger counts as 0 before its start."""
    length = max((len(s) for s in series), default=0)
    return zip(*((0.0,) * (length - len(s)) + tuple(s) for s in series), strict=True)
