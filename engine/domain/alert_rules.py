"""When a person should be told, why, and what to do: one rule set for the console, the log and Prometheus.

alert_numbers, alert_campaigns, alert_system  ──► RULES ──► conditions(snapshot)  ──► console and log
                                                      └──► engine.observe.rules   ──► Prometheus' YAML
"""

from collections.abc import Collection

from engine.domain.alert import CRITICAL, Condition, Look, Rule
from engine.domain.alert_campaigns import CAMPAIGN_RULES
from engine.domain.alert_numbers import NUMBER_RULES
from engine.domain.alert_system import SYSTEM_RULES
from engine.domain.snapshot import Snapshot
from engine.domain.thresholds import DEFAULTS, Thresholds

RULES: tuple[Rule, ...] = (*SYSTEM_RULES, *NUMBER_RULES, *CAMPAIGN_RULES)


def conditions(
    snapshot: Snapshot, thresholds: Thresholds = DEFAULTS, standing: Collection[str] = frozenset()
) -> list[Condition]:
    """All that is wrong in a snapshot; the critical first. `standing`: keys of alerts that are active already."""
    look = Look(snapshot, thresholds, standing)
    found = [
        Condition(
            rule.key(finding.subject),
            rule.severity,
            finding.target,
            finding.cause,
            rule.advice,
            0.0 if rule.seasoned else rule.lasts_s(thresholds),
            rule.runbook,
        )
        for rule in RULES
        for finding in rule.check(look)
    ]
    return sorted(found, key=lambda c: c.severity != CRITICAL)


__all__ = ["RULES", "Condition", "Rule", "conditions"]
