"""When a person should be told, why, and what to do: one pure rule set over the snapshot."""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.domain.snapshot import CampaignView, NumberView, Snapshot

THROTTLED = 130429
INBOX_LAG = 60.0
"""Seconds that a stored webhook body may wait before it is worth a word."""

UNKNOWN_GROWS = 50


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is the case now. `key` stays the same while it lasts."""

    key: str
    severity: str
    target: str
    cause: str
    advice: str


def conditions(snapshot: Snapshot) -> list[Condition]:
    """All that is wrong in a snapshot; the critical first."""
    found = [*_database(snapshot), *_inbox(snapshot)]
    for number in snapshot.numbers:
        found += _number(number)
    for campaign in snapshot.campaigns:
        found += _campaign(campaign)
    return sorted(found, key=lambda c: c.severity != "critical")


def _database(snapshot: Snapshot) -> Iterator[Condition]:
    if snapshot.database == "away":
        yield Condition(
            "database:away",
            "critical",
            "database",
            "Postgres does not answer; sending has stopped",
            "It resumes by itself when Postgres is back. Look at the server.",
        )
    elif snapshot.database == "slow":
        yield Condition(
            "database:slow", "warning", "database", "Postgres is slow", "Look at its load and locks."
        )


def _inbox(snapshot: Snapshot) -> Iterator[Condition]:
    if (snapshot.webhook_lag_s or 0.0) > INBOX_LAG:
        yield Condition(
            "webhook:lag",
            "warning",
            "webhooks",
            f"Statuses wait {snapshot.webhook_lag_s:.0f} s to be applied",
            "Look at the database; add receivers.",
        )


def _number(number: NumberView) -> Iterator[Condition]:
    if number.state == "held":
        yield Condition(
            f"held:{number.id}",
            "critical",
            number.display,
            f"HELD {number.reason or ''}".strip(),
            "Look at the reason, mend it, then resume (r).",
        )
    if number.top_error == THROTTLED and (number.error_share or 0.0) > 0.02:
        yield Condition(
            f"throttled:{number.id}",
            "warning",
            number.display,
            f"130429: the provider grants about {number.sent_per_second:.0f}/s of {number.rate:g}/s",
            "Lower the rate (-), or ask Meta for more throughput.",
        )
    if number.stuck:
        yield Condition(
            f"stuck:{number.id}",
            "warning",
            number.display,
            f"{number.stuck} rows sending for more than 2 min",
            "They become unknown by themselves; reconcile (R) shows what follows.",
        )
    if number.unknown >= UNKNOWN_GROWS:
        yield Condition(
            f"unknown:{number.id}",
            "warning",
            number.display,
            f"{number.unknown} rows unknown",
            "Are webhooks arriving? Then reconcile (R).",
        )


def _campaign(campaign: CampaignView) -> Iterator[Condition]:
    if campaign.state == "held":
        yield Condition(
            f"campaign:{campaign.name}",
            "critical",
            campaign.name,
            f"HELD {campaign.reason or ''}".strip(),
            "Mend the cause, then resume the campaign.",
        )
    if sum(campaign.counts.values()) != campaign.planned:
        yield Condition(
            f"books:{campaign.name}",
            "critical",
            campaign.name,
            f"The books do not balance: planned {campaign.planned}, counted {sum(campaign.counts.values())}",
            "Run tidegate audit.",
        )
