"""Alerts: conditions that were seen, latched until a person acknowledges them, also after they have passed."""

from collections.abc import Sequence
from datetime import datetime

from engine.domain.alert_rules import Condition
from engine.domain.snapshot import AlertView

CALM = 10.0
"""Seconds that a condition must be gone before its alert counts as recovered: no flicker."""


class Alerts:
    """At most one for each (kind, target)."""

    def __init__(self) -> None:
        self._latched: dict[str, AlertView] = {}
        self._last_seen: dict[str, datetime] = {}

    def see(self, conditions: Sequence[Condition], now: datetime) -> tuple[AlertView, ...]:
        """Take in what is the case now; all alerts, unacknowledged and critical ones first."""
        for c in conditions:
            self._last_seen[c.key] = now
            before = self._latched.get(c.key)
            since = before.since if before and before.active else now
            acknowledged = before.acknowledged if before and before.active else False
            self._latched[c.key] = AlertView(
                c.key, c.severity, c.target, c.cause, c.advice, since, True, acknowledged
            )
        for key, alert in list(self._latched.items()):
            if (now - self._last_seen[key]).total_seconds() > CALM:
                self._recover(alert)
        return tuple(
            sorted(self._latched.values(), key=lambda a: (a.acknowledged, a.severity != "critical", a.since))
        )

    def acknowledge(self, key: str | None) -> int:
        """One, or all with None; how many."""
        chosen = [a for a in self._latched.values() if key in (None, a.key) and not a.acknowledged]
        for alert in chosen:
            if alert.active:
                self._latched[alert.key] = _with(alert, active=True, acknowledged=True)
            else:
                del self._latched[alert.key]
        return len(chosen)

    def _recover(self, alert: AlertView) -> None:
        if alert.acknowledged:
            del self._latched[alert.key]
        else:
            self._latched[alert.key] = _with(alert, active=False, acknowledged=False)


def _with(a: AlertView, *, active: bool, acknowledged: bool) -> AlertView:
    return AlertView(a.key, a.severity, a.target, a.cause, a.advice, a.since, active, acknowledged)
