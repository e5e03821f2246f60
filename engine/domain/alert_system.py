"""Alert rules about what everything stands on: the database, the webhook inbox, the nodes."""

from collections.abc import Iterator

from engine.domain.alert import CRITICAL, WARNING, Finding, Look, Rule
from engine.domain.count import counted


def _away(look: Look) -> Iterator[Finding]:
    if look.snapshot.database == "away":
        yield Finding("database", "database", "Postgres does not answer; sending has stopped")


def _slow(look: Look) -> Iterator[Finding]:
    if look.snapshot.database == "slow":
        cause, blocker = "Postgres is slow", look.snapshot.blocker
        if blocker is not None:
            who = f" ({blocker.application})" if blocker.application else ""
            cause = f"Postgres is slow: our commits wait for a lock of pid {blocker.pid}{who}"
        yield Finding("database", "database", cause)


def _transaction(look: Look) -> Iterator[Finding]:
    oldest = look.snapshot.oldest_transaction
    if oldest is not None and look.over(
        "snapshot_open:database", oldest.age_s, look.thresholds.transaction_s
    ):
        who = f" ({oldest.application})" if oldest.application else ""
        yield Finding(
            "database", "database", f"pid {oldest.pid}{who} has held a snapshot open for {oldest.age_s:.0f} s"
        )


def _lag(look: Look) -> Iterator[Finding]:
    lag = look.snapshot.webhook_lag_s or 0.0
    if look.over("webhook_lag:webhooks", lag, look.thresholds.webhook_lag_s):
        yield Finding("webhooks", "webhooks", f"statuses wait {lag:.0f} s to be applied")


def _node_lost(look: Look) -> Iterator[Finding]:
    """A node that is gone cannot say so: the others do, until they have its numbers; Prometheus, until it is back."""
    for node in look.snapshot.lost:
        if node.name == look.snapshot.node:  # an earlier run of this very node
            continue
        left = counted(len(node.numbers), "number")
        verb = "stands" if len(node.numbers) == 1 else "stand"
        cause = f"DEAD, no sign for {node.age_s:.0f} s: {left} {verb} still until another node takes over"
        yield Finding(node.name, f"node {node.name}", cause)


SYSTEM_RULES = (
    Rule(
        "database_away",
        CRITICAL,
        "Postgres does not answer. Sending has stopped, nothing is lost.",
        "It resumes by itself when Postgres is back. Look at the server.",
        _away,
        'max(tidegate_database_state{state="away"}) == 1',
        "database",
        "Postgres does not answer.",
        "database_away_for_s",
    ),
    Rule(
        "database_slow",
        WARNING,
        "Postgres takes longer than a quarter of a second for the books, or again and again than one for commits.",
        "Is a pid named? pg_stat_activity says what it does; pg_terminate_backend ends it. Else load, disks, vacuum.",
        _slow,
        'max(tidegate_database_state{state="slow"}) == 1',
        "database",
        "Postgres is slow.",
        "database_slow_for_s",
    ),
    Rule(
        "snapshot_open",
        WARNING,
        "Somebody holds one snapshot of the database open: vacuum removes nothing, and the hot table swells.",
        "Find the pid in pg_stat_activity; end its transaction (pg_terminate_backend) if nobody needs it.",
        _transaction,
        "max(tidegate_database_oldest_transaction_seconds) > %(transaction_s)g",
        "database",
        "A transaction has held its snapshot open for {{ $value | humanizeDuration }}.",
    ),
    Rule(
        "webhook_lag",
        WARNING,
        "Statuses are stored faster than they are applied: the books and the console are behind.",
        "Look at the database; run tidegate receive on another machine.",
        _lag,
        "max(tidegate_webhook_lag_seconds) > %(webhook_lag_s)g",
        "webhooks",
        "The oldest stored status has waited {{ $value | humanizeDuration }} to be applied.",
    ),
    Rule(
        "node_lost",
        CRITICAL,
        "A node gives no sign: it died, hangs, or the network is cut. Others take its numbers over.",
        "Start it again; look at its log's last lines. Its rows in flight become unknown: R settles them.",
        _node_lost,
        'up{job="tidegate"} == 0',
        "{{ $labels.instance }}",
        "The node at {{ $labels.instance }} does not answer.",
        "stuck_for_s",
        seasoned=True,
    ),
)
