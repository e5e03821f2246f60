"""One picture out of what many nodes say: each figure from whoever knows it, and nothing from the dead."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from engine.domain.recall import columns, longest, merged
from engine.domain.snapshot import (
    AlertView,
    CampaignView,
    ErrorView,
    EventView,
    NodeView,
    NumberPast,
    NumberView,
    Past,
    Percentiles,
    Snapshot,
    Spreads,
)

DEAD_AFTER = 5.0
"""Seconds of silence after which nothing that a node said is shown. It publishes twice a second."""

NO_ENGINE = "no engine"
"""Key of the alert that work waits and no node lives."""

NODE_LOST = "node_lost:"
"""Begins the keys under which living nodes tell of dead ones."""

ADVICE = "its numbers move to other nodes when their leases end; look at its host and its log"


@dataclass(frozen=True, slots=True)
class Node:
    """What is known of one node. `age_s`: of its snapshot."""

    id: UUID
    name: str
    host: str
    pid: int
    draining: bool
    age_s: float
    snapshot: Snapshot | None

    @property
    def alive(self) -> bool:
        """Whether its figures may be shown."""
        return self.age_s <= DEAD_AFTER


def merge(
    nodes: Sequence[Node],
    owners: Mapping[str, UUID],
    events: Sequence[EventView],
    now: datetime,
    base: Snapshot,
    alone_since: datetime | None = None,
) -> Snapshot:
    """`base` gives what is the viewer's own (author, host, pid, acts) and, while no node lives, what the database alone
    knows; `owners` the lease holder by Meta's number id; `events` the acts of people, from the journal. As old as the
    oldest figure that is shown. `alone_since`: when the viewer first saw no node at all."""
    live = [(n, n.snapshot) for n in nodes if n.alive and n.snapshot is not None]
    age = max((n.age_s for n, _ in live), default=0.0)
    present = [n for n in nodes if not (live and _is_history(n, owners))]
    whole = replace(
        base,
        at=now - timedelta(seconds=age),
        node=live[0][0].name if len(present) == 1 and live else f"{len(live)}/{len(present)} nodes",
        nodes=tuple(_view(n, owners) for n in nodes),
        alerts=(*_deaths(nodes, present, now), *_alerts(s.alerts for _, s in live)),
        events=tuple(
            sorted([*events, *_by_engines(s for _, s in live)], key=lambda e: e.at, reverse=True)[:50]
        ),
        database="ok",
    )
    if not live:
        return _nobody_lives(whole, nodes, owners, alone_since or now)
    newest = min(live, key=lambda pair: pair[0].age_s)[1]  # the books are the database's: anyone's, once
    snapshots = [s for _, s in live]
    return replace(
        whole,
        uptime_s=max(s.uptime_s for s in snapshots),
        draining=all(s.draining for s in snapshots),
        numbers=tuple(_number(n.id, live, nodes, owners, newest) for n in newest.numbers),
        campaigns=longest(snapshots, newest.campaigns),
        errors=_errors(s.errors for s in snapshots),
        stuck=newest.stuck,
        unknown=newest.unknown,
        last_reconcile=newest.last_reconcile,
        accepted_series=_summed([s.accepted_series for s in snapshots]),
        tries_series=_summed([s.tries_series for s in snapshots]),
        rate_series=_summed([s.rate_series for s in snapshots]),
        token_wait_series=_highest([s.token_wait_series for s in snapshots]),
        token_wait_median_series=_highest([s.token_wait_median_series for s in snapshots]),
        accepted_minutes=_summed([s.accepted_minutes for s in snapshots]),
        rate_minutes=_summed([s.rate_minutes for s in snapshots]),
        token_wait_minutes=_highest([s.token_wait_minutes for s in snapshots]),
        token_wait_median_minutes=_highest([s.token_wait_median_minutes for s in snapshots]),
        token_wait=_worst(s.token_wait for s in snapshots),
        claim_time=_worst(s.claim_time for s in snapshots),
        commit_time=_worst(s.commit_time for s in snapshots),
        latency=_worst(s.latency for s in snapshots),
        sent_to_delivered=_worst(s.sent_to_delivered for s in snapshots),
        webhook_lag_s=newest.webhook_lag_s,
        inbox_backlog=newest.inbox_backlog,
        database=max((s.database for s in snapshots), key=("ok", "slow", "away").index),
        in_flight=sum(s.in_flight for s in snapshots),
        loop_lag_s=max(s.loop_lag_s for s in snapshots),
        memory_mb=sum(s.memory_mb for s in snapshots),
        holds=newest.holds,
        oldest_transaction=newest.oldest_transaction,
        results_backlog=sum(s.results_backlog for s in snapshots),
        version=min(s.version for s in snapshots),
        past=_past([s.past for s in snapshots]),
    )


def _view(node: Node, owners: Mapping[str, UUID]) -> NodeView:
    mine = tuple(sorted(key for key, owner in owners.items() if owner == node.id))
    known = node.snapshot if node.alive else None
    sent = sum(n.sent_per_second for n in known.numbers if n.id in mine) if known else 0.0
    memory = known.memory_mb if known else 0.0
    return NodeView(node.name, node.host, node.pid, node.age_s, node.alive, node.draining, mine, sent, memory)


def _number(
    key: str,
    live: Sequence[tuple[Node, Snapshot]],
    nodes: Sequence[Node],
    owners: Mapping[str, UUID],
    newest: Snapshot,
) -> NumberView:
    """As its owner sees it. Without a living owner only what the database knows: no pace, no waits."""
    owner = owners.get(key)
    for node, snapshot in live:
        if node.id == owner:
            found = next((n for n in snapshot.numbers if n.id == key), None)
            if found is not None:
                return replace(found, owner=node.name)
    return _unattended(next(n for n in newest.numbers if n.id == key), owner, nodes)


def _unattended(known: NumberView, owner: UUID | None, nodes: Sequence[Node]) -> NumberView:
    """Only what the database knows of it, and for whose lease the living ones wait."""
    name = next((f"{n.name} (dead)" for n in nodes if n.id == owner and not n.alive), None)
    bound = known.bound_by if known.bound_by == "lease" else "no node"
    return replace(
        known, owner=name, away=False, accepted_last_second=0, tries_last_second=0, sent_per_second=0.0,
        tries_per_second=0.0, token_wait=None, latency=None, bound_by=bound, in_flight=0, last_accepted_s=None,
        accepted_series=(), use=None, past=NumberPast(),
    )  # fmt: skip


def _is_history(node: Node, owners: Mapping[str, UUID]) -> bool:
    """Whether it is dead and others have taken over all that it had."""
    return not node.alive and node.id not in owners.values()


def _deaths(nodes: Sequence[Node], present: Sequence[Node], now: datetime) -> list[AlertView]:
    """One for each dead node; over when others have its numbers, and none when it has only been started anew."""
    here = {(n.name, n.host) for n in nodes if n.alive}
    dead = [n for n in nodes if not n.alive]
    return [_death(n, now, active=n in present) for n in dead if n in present or (n.name, n.host) not in here]


def _death(node: Node, now: datetime, *, active: bool) -> AlertView:
    since = now - timedelta(seconds=node.age_s)
    cause = "DEAD, fell silent" if active else "DEAD, its numbers taken over"
    return AlertView(
        f"node dead:{node.id}", "critical", f"node {node.name}", cause, ADVICE, since, active, False
    )


def _nobody_lives(
    whole: Snapshot, nodes: Sequence[Node], owners: Mapping[str, UUID], alone_since: datetime
) -> Snapshot:
    last_sign = max((whole.at - timedelta(seconds=n.age_s) for n in nodes), default=alone_since)
    alert = no_engine(whole.campaigns, last_sign)
    return replace(
        whole,
        numbers=tuple(_unattended(n, owners.get(n.id), nodes) for n in whole.numbers),
        alerts=(*((alert,) if alert else ()), *whole.alerts),
    )


def no_engine(campaigns: Sequence[CampaignView], since: datetime) -> AlertView | None:
    """While no node lives: what waits for one; None when nothing does."""
    going = [c for c in campaigns if c.state == "running"]
    pending = sum(c.counts.get(state, 0) for c in going for state in ("pending", "claimed"))
    open_rows = pending + sum(
        c.counts.get(state, 0) for c in going for state in ("sending", "unknown", "assessing")
    )
    scheduled = [c.name for c in campaigns if c.state == "scheduled"]
    if pending:
        what = f"{pending:,} {'row' if pending == 1 else 'rows'} pending"
    elif open_rows:
        what = f"{open_rows:,} {'row' if open_rows == 1 else 'rows'} not settled"
    elif scheduled:
        what = f"{scheduled[0]} is scheduled"
    else:
        return None
    cause = f"runs: {what}: start `tidegate run`"
    return AlertView(NO_ENGINE, "critical", "no engine", cause, "", since, True, False)


def is_of_nodes(alert: AlertView) -> bool:
    """Whether an alert was made here, of nodes that say nothing: no engine can take in that it was acknowledged."""
    return alert.key == NO_ENGINE or alert.key.startswith("node dead:")


def _alerts(all_: Iterable[tuple[AlertView, ...]]) -> tuple[AlertView, ...]:
    """One for each key; what still stands wins over what is over. Deaths of nodes are seen better here."""
    found: dict[str, AlertView] = {}
    for alert in (a for alerts in all_ for a in alerts if not a.key.startswith(NODE_LOST)):
        before = found.get(alert.key)
        if before is None or (alert.active, not alert.acknowledged) > (
            before.active,
            not before.acknowledged,
        ):
            found[alert.key] = alert
    return tuple(found.values())


def _by_engines(snapshots: Iterable[Snapshot]) -> Iterable[EventView]:
    """What people did is in the journal, once for all nodes."""
    return (e for s in snapshots for e in s.events if e.author == "auto")


def _past(pasts: Sequence[Past]) -> Past:
    return Past(
        figures=merged([p.figures for p in pasts]),
        token_wait=worst_spreads(p.token_wait for p in pasts),
        latency=worst_spreads(p.latency for p in pasts),
        claim_time=worst_spreads(p.claim_time for p in pasts),
        commit_time=worst_spreads(p.commit_time for p in pasts),
        sent_to_delivered=worst_spreads(p.sent_to_delivered for p in pasts),
        errors=tuple(_errors(errors) for errors in zip(*(p.errors for p in pasts if p.errors), strict=True)),
    )


def worst_spreads(spreads: Iterable[Spreads]) -> Spreads:
    """Of several durations, for each window the one with the highest p95."""
    return tuple(_worst(column) for column in zip(*(s for s in spreads if s), strict=True))


def _errors(of_nodes: Iterable[tuple[ErrorView, ...]]) -> tuple[ErrorView, ...]:
    found: dict[int, ErrorView] = {}
    for error in (e for errors in of_nodes for e in errors):
        before = found.get(error.code)
        if before is not None:
            trend = tuple(a + b for a, b in zip(before.trend, error.trend, strict=False))
            found[error.code] = replace(error, count=before.count + error.count, trend=trend)
        else:
            found[error.code] = error
    return tuple(sorted(found.values(), key=lambda e: -e.count))


def _summed(series: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(sum(column) for column in columns(series))


def _highest(series: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(max(column) for column in columns(series))


def _worst(values: Iterable[Percentiles | None]) -> Percentiles | None:
    return max((v for v in values if v is not None), key=lambda p: p.p95, default=None)
