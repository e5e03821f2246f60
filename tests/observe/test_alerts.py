"""Alerts: told when they have lasted, latched until acknowledged, over when they have been gone, and logged once."""

from datetime import datetime, timedelta

import structlog.testing

from engine.domain.alert_rules import Condition
from engine.domain.snapshot import AlertView
from engine.observe.alerts import Alerts
from tests.support.quiet import AT, NUMBER, a_number, quiet

HELD = Condition("number_held:1", "critical", "…0042", "HELD", "Look.", 0.0, "docs/runbooks/number-held.md")
SLOW = Condition("database_slow:database", "warning", "database", "slow", "Look.", 30.0)


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def standing(alerts: tuple[AlertView, ...]) -> list[tuple[str, bool, bool]]:
    return [(a.key, a.active, a.acknowledged) for a in alerts]


def test_a_condition_that_needs_no_time_is_an_alert_at_once() -> None:
    (alert,) = Alerts().see([HELD], at(0))
    assert (alert.key, alert.active, alert.acknowledged, alert.since) == (HELD.key, True, False, at(0))
    assert alert.runbook == HELD.runbook


def test_a_condition_that_must_last_is_an_alert_only_then_and_counts_from_its_beginning() -> None:
    alerts = Alerts()
    assert alerts.see([SLOW], at(0)) == ()
    assert alerts.see([SLOW], at(29)) == ()
    (alert,) = alerts.see([SLOW], at(30))
    assert alert.since == at(0)


def test_a_condition_that_comes_and_goes_never_lasts() -> None:
    alerts = Alerts()
    for second in range(0, 120, 2):
        assert alerts.see([SLOW], at(second)) == ()
        assert alerts.see([], at(second + 1)) == ()


def test_an_alert_stays_active_through_a_short_calm_and_needs_not_last_again() -> None:
    alerts = Alerts()
    for second in (0, 30):
        alerts.see([SLOW], at(second))
    (alert,) = alerts.see([], at(39))
    assert alert.active
    (alert,) = alerts.see([SLOW], at(40))
    assert (alert.active, alert.since) == (True, at(0))


def test_a_recovered_alert_stays_until_somebody_has_seen_it() -> None:
    alerts = Alerts()
    alerts.see([HELD], at(0))
    assert standing(alerts.see([], at(11))) == [(HELD.key, False, False)]
    assert standing(alerts.see([], at(5000))) == [(HELD.key, False, False)]
    assert alerts.acknowledge(HELD.key) == 1
    assert alerts.see([], at(5001)) == ()


def test_an_acknowledged_alert_stays_while_it_is_active_and_goes_with_its_condition() -> None:
    alerts = Alerts()
    alerts.see([HELD], at(0))
    assert alerts.acknowledge(None) == 1
    assert alerts.acknowledge(None) == 0
    assert standing(alerts.see([HELD], at(5))) == [(HELD.key, True, True)]
    assert alerts.see([], at(16)) == ()


def test_an_alert_that_comes_back_after_its_recovery_is_new_and_not_acknowledged() -> None:
    alerts = Alerts()
    alerts.see([HELD], at(0))
    alerts.see([], at(11))
    assert standing(alerts.see([HELD], at(20))) == [(HELD.key, True, False)]
    assert alerts.see([HELD], at(21))[0].since == at(20)


def test_unacknowledged_and_critical_alerts_come_first() -> None:
    alerts = Alerts()
    for second in (0, 30):
        seen = alerts.see([SLOW, HELD], at(second))
    assert [a.key for a in seen] == [HELD.key, SLOW.key]
    alerts.acknowledge(HELD.key)
    assert [a.key for a in alerts.see([SLOW, HELD], at(31))] == [SLOW.key, HELD.key]


def test_an_alert_is_one_line_of_the_log_when_it_begins_and_one_when_it_is_over() -> None:
    alerts = Alerts()
    with structlog.testing.capture_logs() as lines:
        for second in range(5):
            alerts.see([HELD], at(second))
        for second in range(5, 30):
            alerts.see([], at(second))
    assert [(line["event"], line["log_level"], line["alert"]) for line in lines] == [
        ("alert", "error", HELD.key),
        ("alert is over", "info", HELD.key),
    ]


def test_a_judged_snapshot_keeps_a_standing_alert_by_its_lower_threshold() -> None:
    alerts = Alerts()
    loud, softer = (quiet(numbers=(a_number(silence_s=s),)) for s in (121.0, 110.0))
    assert standing(alerts.judge(softer, at(0))) == []
    assert standing(alerts.judge(loud, at(1))) == [(f"webhook_silent:{NUMBER}", True, False)]
    for second in range(2, 60):
        seen = alerts.judge(softer, at(second))
    assert standing(seen) == [(f"webhook_silent:{NUMBER}", True, False)]
