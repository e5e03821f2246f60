"""Alerts: conditions that have lasted, latched until a person acknowledges them, also after they have passed.

One key is pending while its condition has not lasted long enough, then active, then recovered once the condition has
been gone for a while. Each step that people should know of is a line in the log.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from engine.domain.alert_rules import Condition, conditions
from engine.domain.snapshot import AlertView, Snapshot
from engine.domain.thresholds import DEFAULTS, Thresholds

log = structlog.get_logger()


class Alerts:
    """At most one for each (kind, target)."""

    def __init__(self, thresholds: Thresholds = DEFAULTS) -> None:
        self._thresholds = thresholds
        self._latched: dict[str, AlertView] = {}
        self._first_seen: dict[str, datetime] = {}
        self._last_seen: dict[str, datetime] = {}

    def judge(self, snapshot: Snapshot, now: datetime) -> tuple[AlertView, ...]:
        """Take in what is wrong in a snapshot; all alerts, as by `see`."""
        return self.see(conditions(snapshot, self._thresholds, self._standing()), now)

    def see(self, found: Sequence[Condition], now: datetime) -> tuple[AlertView, ...]:
        """Take in what is the case now; all alerts, unacknowledged and critical ones first."""
        self._forget_pending({c.key for c in found})
        for condition in found:
            first = self._first_seen.setdefault(condition.key, now)
            self._last_seen[condition.key] = now
            if condition.key in self._standing() or (now - first).total_seconds() >= condition.lasts_s:
                self._raise(condition, first)
        for alert in list(self._latched.values()):
            gone_s = (now - self._last_seen[alert.key]).total_seconds()
            if alert.active and gone_s > self._thresholds.calm_s:
                self._recover(alert)
        return tuple(
            sorted(self._latched.values(), key=lambda a: (a.acknowledged, a.severity != "critical", a.since))
        )

    def acknowledge(self, key: str | None, author: str = "auto") -> int:
        """One, or all with None, by `author`; how many."""
        chosen = [a for a in self._latched.values() if key in (None, a.key) and not a.acknowledged]
        for alert in chosen:
            if alert.active:
                self._latched[alert.key] = replace(alert, acknowledged=True, author=author)
            else:
                del self._latched[alert.key]
        return len(chosen)

    def _standing(self) -> Collection[str]:
        return {key for key, alert in self._latched.items() if alert.active}

    def _forget_pending(self, seen: Collection[str]) -> None:
        """What has not lasted starts anew when it comes back; what stands is forgotten when it recovers."""
        standing = self._standing()
        for key in [k for k in self._first_seen if k not in seen and k not in standing]:
            del self._first_seen[key]

    def _raise(self, c: Condition, first: datetime) -> None:
        before = self._latched.get(c.key)
        standing = before is not None and before.active
        self._latched[c.key] = AlertView(
            c.key,
            c.severity,
            c.target,
            c.cause,
            c.advice,
            before.since if before and standing else first,
            True,
            before.acknowledged if before and standing else False,
            c.runbook,
            before.author if before and standing else "auto",
        )
        if not standing:
            level = log.error if c.severity == "critical" else log.warning
            level("alert", alert=c.key, cause=c.cause, advice=c.advice, runbook=c.runbook)

    def _recover(self, alert: AlertView) -> None:
        del self._first_seen[alert.key]
        log.info("alert is over", alert=alert.key, cause=alert.cause)
        if alert.acknowledged:
            del self._latched[alert.key]
        else:
            self._latched[alert.key] = replace(alert, active=False, cleared_at=self._last_seen[alert.key])
