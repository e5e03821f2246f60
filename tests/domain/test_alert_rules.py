"""Each rule finds its trouble and no other's; thresholds are edges with a hysteresis; a cause names who and why."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from engine.domain.alert import EASE
from engine.domain.alert_rules import RULES, conditions
from engine.domain.snapshot import ControlView, HoldView, NodeView, OldTransaction, Snapshot
from engine.domain.thresholds import DEFAULTS, Thresholds, thresholds
from tests.support.quiet import AT, DISPLAY, NUMBER, a_campaign, a_number, counts, quiet


def number(**fields: object) -> Snapshot:
    return quiet(numbers=(a_number(**fields),))


def campaign(**fields: object) -> Snapshot:
    return quiet(campaigns=(a_campaign(**fields),))


TROUBLES: dict[str, tuple[Snapshot, str, str]] = {
    "database_away": (quiet(database="away", webhook_lag_s=None), "database", "does not answer"),
    "database_slow": (
        quiet(database="slow", blocker=OldTransaction(4242, 2.4, "maintenance")), "database",
        "Postgres is slow: our commits wait for a lock of pid 4242 (maintenance)",
    ),
    "snapshot_open": (
        quiet(oldest_transaction=OldTransaction(4242, 301.0, "psql")), "database", "pid 4242 (psql) has held",
    ),
    "webhook_lag": (quiet(webhook_lag_s=61.0), "webhooks", "61 s"),
    "number_throttled": (
        number(throttled_share=0.021, granted=25.0), NUMBER, "the provider grants about 25/s of 80/s",
    ),
    "number_held": (
        quiet(holds=(HoldView("number", NUMBER, 131048, "131048 spam rate limit", AT),)), NUMBER, "131048 spam",
    ),
    "scope_held": (
        quiet(holds=(HoldView("account", "WABA1", 131042, "131042 payment", AT),)), "account/WABA1", "131042 payment",
    ),
    "webhook_silent": (number(silence_s=121.0), NUMBER, "heard of no status for 121 s"),
    "rows_stuck": (number(stuck=1), NUMBER, "1 row sending"),
    "unknown_growing": (number(unknown=40, unknown_growth=21), NUMBER, "21 rows became unknown"),
    "lease_lost": (number(lease_lost_s=12.0), NUMBER, "eng1 lost its lease 12 s ago"),
    "campaign_held": (campaign(state="held", reason="the try budget is spent"), "reminder", "budget is spent"),
    "campaign_failing": (
        campaign(counts=counts(pending=3000, read=890, failed=110)), "reminder", "11.0% failed (110 of 1,000",
    ),
    "campaign_undelivered": (campaign(delivered_share=0.47), "reminder", "47% are delivered, usual are 95%"),
    "control_undelivered": (
        campaign(controls=(ControlView("+551…01", 2, "sent", 301.0), ControlView("+551…02", 2, "sent", 60.0))),
        "reminder",
        "control phone +551…01 has got nothing for 5 min, round 2 is sent",
    ),
    "campaign_idle": (campaign(idle_s=121.0), "reminder", "no progress for 121 s"),
    "try_budget": (campaign(tries=9_601), "reminder", "9,601 tries of a budget of 12,000"),
    "deadline_at_risk": (
        campaign(eta_s=720.0, deadline=AT + timedelta(minutes=10)), "reminder", "2 min after its deadline",
    ),
    "node_lost": (
        quiet(lost=(NodeView("eng2", "bastion", 4712, 7.4, False, False, (NUMBER,), 0.0, 0.0),)), "eng2",
        "DEAD, no sign for 7 s: 1 number stands still",
    ),
    "books_unbalanced": (campaign(planned=4001), "reminder", "planned 4,001, counted 4,000"),
}  # fmt: skip

EDGES: dict[str, Snapshot] = {
    "throttled at the threshold": number(throttled_share=DEFAULTS.throttled_share),
    "a low ceiling that nobody refuses any more": number(throttled_share=0.0, ceiling=25.0),
    "no tries at all": number(throttled_share=None, granted=None),
    "silent at the threshold": number(silence_s=DEFAULTS.silence_s),
    "few settled rows, all failed": campaign(counts=counts(pending=3951, failed=49)),
    "delivered exactly half of the norm": campaign(delivered_share=0.475),
    "no sends that are old enough": campaign(delivered_share=None, delivered_norm=None),
    "budget not known": campaign(try_budget=0, tries=9_999),
    "spent budget of a finished campaign": campaign(state="finished", tries=12_000),
    "just in time": campaign(eta_s=600.0, deadline=AT + timedelta(minutes=10)),
    "late, but paused by a person": campaign(
        state="paused", eta_s=700.0, deadline=AT + timedelta(minutes=10)
    ),
    "paused by a person, by its numbers": campaign(
        state="paused", reason="number +55…0042 is paused by root"
    ),
    "an old lease loss": number(lease_lost_s=DEFAULTS.lease_s),
    "a short transaction": quiet(oldest_transaction=OldTransaction(1, DEFAULTS.transaction_s, "")),
}


def test_an_end_behind_the_deadline_tells_how_many_rows_miss_it_whatever_is_done() -> None:
    late = campaign(eta_s=720.0, deadline=AT + timedelta(minutes=10), late=1_234)
    [found] = conditions(late)
    assert found.cause.endswith("at this pace; even at its full rate 1,234 rows will miss it")


def test_a_quiet_night_has_no_condition() -> None:
    assert conditions(quiet()) == []


@pytest.mark.parametrize("kind", TROUBLES)
def test_a_trouble_is_found_by_its_own_rule_alone_and_says_what_is_wrong(kind: str) -> None:
    snapshot, subject, said = TROUBLES[kind]
    found = conditions(snapshot)
    assert [c.key for c in found] == [f"{kind}:{subject}"]
    assert said in found[0].cause
    assert found[0].advice
    assert found[0].runbook == f"docs/runbooks/{kind.replace('_', '-')}.md"


def test_every_rule_has_a_trouble_here() -> None:
    assert {rule.kind for rule in RULES} == set(TROUBLES)


def test_an_earlier_run_of_this_node_is_no_lost_node() -> None:
    earlier = NodeView("eng1", "bastion", 4710, 7.4, False, False, (NUMBER,), 0.0, 0.0)
    assert conditions(quiet(lost=(earlier,))) == []


def test_a_lost_node_is_told_at_once_by_the_living_and_by_prometheus_after_a_while() -> None:
    told, _, _ = TROUBLES["node_lost"]
    assert [c.lasts_s for c in conditions(told)] == [0.0]
    assert next(r for r in RULES if r.kind == "node_lost").lasts_s(DEFAULTS) == DEFAULTS.stuck_for_s


@pytest.mark.parametrize("edge", EDGES)
def test_what_is_no_trouble_is_not_told(edge: str) -> None:
    assert conditions(EDGES[edge]) == []


def test_statuses_that_are_stored_and_not_applied_are_a_lag_and_no_silence() -> None:
    snapshot = quiet(numbers=(a_number(silence_s=300.0),), webhook_lag_s=DEFAULTS.silence_s + 1)
    assert [c.key for c in conditions(snapshot)] == ["webhook_lag:webhooks"]


def test_all_troubles_at_once_are_all_told_the_critical_ones_first() -> None:
    throttled = a_number(throttled_share=0.5, silence_s=500.0, stuck=3)
    snapshot = quiet(database="slow", numbers=(throttled,), campaigns=(a_campaign(state="held"),))
    severities = [c.severity for c in conditions(snapshot)]
    assert severities == ["critical"] * 2 + ["warning"] * 3


def test_a_grant_that_is_found_and_seldom_overstepped_is_told_by_the_ceiling() -> None:
    (found,) = conditions(number(throttled_share=0.004, granted=24.0, ceiling=25.0))
    assert found.cause == "throttled (0.4% of tries): the provider grants about 24/s of 80/s"


def test_a_held_number_is_named_as_people_know_it() -> None:
    (found,) = conditions(TROUBLES["number_held"][0])
    assert found.target == DISPLAY


@pytest.mark.parametrize(
    ("kind", "field", "threshold"),
    [
        ("number_throttled", "throttled_share", DEFAULTS.throttled_share),
        ("webhook_silent", "silence_s", DEFAULTS.silence_s),
        ("unknown_growing", "unknown_growth", DEFAULTS.unknown_growth),
    ],
)
def test_a_standing_alert_lets_go_only_well_below_its_threshold(
    kind: str, field: str, threshold: float
) -> None:
    key = f"{kind}:{NUMBER}"
    between, below = number(**{field: threshold * 0.9}), number(**{field: threshold * EASE})
    assert conditions(between) == []
    assert [c.key for c in conditions(between, DEFAULTS, {key})] == [key]
    assert conditions(below, DEFAULTS, {key}) == []


def test_a_standing_alert_about_too_little_lets_go_only_well_above_its_threshold() -> None:
    key = "campaign_undelivered:reminder"
    between = campaign(delivered_share=0.5)
    assert conditions(between) == []
    assert [c.key for c in conditions(between, DEFAULTS, {key})] == [key]
    assert conditions(campaign(delivered_share=0.6), DEFAULTS, {key}) == []


def test_other_thresholds_make_other_alerts() -> None:
    strict = replace(DEFAULTS, silence_s=10.0)
    assert [c.key for c in conditions(number(silence_s=11.0), strict)] == [f"webhook_silent:{NUMBER}"]


def test_a_rule_that_waits_says_for_how_long() -> None:
    (found,) = conditions(
        TROUBLES["number_throttled"][0], replace(DEFAULTS, throttled_for_s=7.0, throttled_share=0.01)
    )
    assert found.lasts_s == 7.0


def test_thresholds_are_read_from_a_table_or_a_line_by_their_short_names() -> None:
    assert thresholds("silence=5m, failed_share=5%") == thresholds({"silence_s": 300, "failed": 0.05})
    assert thresholds("") == Thresholds()
    assert thresholds({"throttled_for": "3m"}).throttled_for_s == 180.0


def test_thresholds_are_shown_by_what_was_changed_and_can_be_read_again() -> None:
    assert str(DEFAULTS) == "defaults"
    assert str(thresholds("silence=5m, failed_share=5%")) == "failed_share=0.05, silence_s=300"
    assert thresholds(str(thresholds("silence=5m"))) == thresholds("silence=5m")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("silence", "'silence' is no name=value, such as silence=5m"),
        ("quiet=5m", "'quiet' is no threshold; there are calm, "),
        ("silence=soon", "silence_s: write a length of time such as"),
        ("failed_share=many", "failed_share: write a number, such as"),
        ("failed_share=200%", "failed_share: 200% is out of range"),
    ],
)
def test_a_threshold_that_cannot_be_used_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        thresholds(text)
