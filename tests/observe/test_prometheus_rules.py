"""The alert rules in Prometheus' own hands: promtool plays series with and without each trouble.

Each case is a quiet night with one change, and exactly one alert (or none) must fire at the end of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.domain.alert_rules import RULES
from engine.domain.thresholds import DEFAULTS
from engine.observe.rules import as_yaml, main
from tests.support.prometheus import needs_prometheus, promtool

N, C = '{number="1"}', '{campaign="reminder"}'
STEPS = 120
"""Quarter minutes: half an hour. A series `a+bxn` grows by b every 15 s."""

QUIET: dict[str, str] = {
    'up{job="tidegate",instance="eng1:9464"}': f"1x{STEPS}",
    'tidegate_sends_total{number="1",outcome="accepted",code=""}': f"0+1200x{STEPS}",
    f"tidegate_throttled_sends_total{N}": f"0x{STEPS}",
    f"tidegate_number_rate_messages_per_second{N}": f"80x{STEPS}",
    f"tidegate_number_ceiling_messages_per_second{N}": f"80x{STEPS}",
    f"tidegate_webhook_silence_seconds{N}": f"0x{STEPS}",
    "tidegate_webhook_lag_seconds": f"0x{STEPS}",
    'tidegate_number_sending_rows{number="1",age="0-2m"}': f"24x{STEPS}",
    'tidegate_number_sending_rows{number="1",age="2-5m"}': f"0x{STEPS}",
    'tidegate_number_sending_rows{number="1",age="5-30m"}': f"0x{STEPS}",
    f"tidegate_number_unknown_rows{N}": f"40x{STEPS}",
    f"tidegate_leases_lost_total{N}": f"2x{STEPS}",
    'tidegate_campaign_state{campaign="reminder",state="running"}': f"1x{STEPS}",
    'tidegate_campaign_state{campaign="reminder",state="held"}': f"0x{STEPS}",
    'tidegate_campaign_rows{campaign="reminder",state="pending"}': f"200000-1200x{STEPS}",
    'tidegate_campaign_rows{campaign="reminder",state="delivered"}': f"0+1200x{STEPS}",
    'tidegate_campaign_rows{campaign="reminder",state="failed"}': f"0+12x{STEPS}",
    f"tidegate_campaign_delivered_share{C}": f"0.9x{STEPS}",
    f"tidegate_campaign_delivered_norm_share{C}": f"0.95x{STEPS}",
    f"tidegate_campaign_idle_seconds{C}": f"1x{STEPS}",
    f"tidegate_campaign_control_undelivered_seconds{C}": f"0x60 15+1x{STEPS}",
    f"tidegate_campaign_tries_total{C}": f"0+1210x{STEPS}",
    f"tidegate_campaign_try_budget{C}": f"600000x{STEPS}",
    f"tidegate_campaign_eta_seconds{C}": f"600x{STEPS}",
    f"tidegate_campaign_deadline_timestamp_seconds{C}": f"7200x{STEPS}",
    f"tidegate_campaign_books_balanced{C}": f"1x{STEPS}",
    'tidegate_database_state{state="ok"}': f"1x{STEPS}",
    'tidegate_database_state{state="slow"}': f"0x{STEPS}",
    'tidegate_database_state{state="away"}': f"0x{STEPS}",
    "tidegate_database_oldest_transaction_seconds": f"12x{STEPS}",
}

STEADY_THROTTLE = {
    f"tidegate_throttled_sends_total{N}": f"0+60x{STEPS}",
    'tidegate_sends_total{number="1",outcome="accepted",code=""}': f"0+375x{STEPS}",
    'tidegate_sends_total{number="1",outcome="refused",code="130429"}': f"0+60x{STEPS}",
}
FIRES: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "a steady flow of 130429": ("number_throttled", "1", STEADY_THROTTLE),
    "a grant that the engine has found, and seldom oversteps": (
        "number_throttled", "1",
        {
            f"tidegate_throttled_sends_total{N}": f"0+1x{STEPS}",
            f"tidegate_number_ceiling_messages_per_second{N}": f"25x{STEPS}",
        },
    ),
    "a number under a breaker": ("number_held", "9", {'tidegate_held{scope="number",key="9"}': f"1x{STEPS}"}),
    "an account without payment": (
        "scope_held", "account/WABA1", {'tidegate_held{scope="account",key="WABA1"}': f"1x{STEPS}"},
    ),
    "webhooks that stopped": ("webhook_silent", "1", {f"tidegate_webhook_silence_seconds{N}": f"0x100 15+15x{STEPS}"}),
    "rows that are stuck": (
        "rows_stuck", "1", {'tidegate_number_sending_rows{number="1",age="5-30m"}': f"0x100 41x{STEPS}"},
    ),
    "rows that become unknown": ("unknown_growing", "1", {f"tidegate_number_unknown_rows{N}": f"40x100 41+3x{STEPS}"}),
    "a lease that was lost": ("lease_lost", "1", {f"tidegate_leases_lost_total{N}": f"2x110 3x{STEPS}"}),
    "a held campaign": (
        "campaign_held", "reminder", {'tidegate_campaign_state{campaign="reminder",state="held"}': f"1x{STEPS}"},
    ),
    "every fifth message fails": (
        "campaign_failing", "reminder",
        {'tidegate_campaign_rows{campaign="reminder",state="failed"}': f"0+300x{STEPS}"},
    ),
    # The incident: sends at full rate, everything accepted, nobody gets anything.
    "accepted at full rate, and delivered no more": (
        "campaign_undelivered", "reminder",
        {
            f"tidegate_campaign_delivered_share{C}": f"0.9x80 0.9-0.03x{STEPS}",
            'tidegate_campaign_rows{campaign="reminder",state="sent"}': f"0x60 0+1200x{STEPS}",
            'tidegate_campaign_rows{campaign="reminder",state="delivered"}': f"0+1200x60 72000x{STEPS}",
        },
    ),
    "a run that runs and settles nothing": (
        "campaign_idle", "reminder", {f"tidegate_campaign_idle_seconds{C}": f"1x100 15+15x{STEPS}"},
    ),
    "a control phone that gets nothing": (
        "control_undelivered", "reminder",
        {f"tidegate_campaign_control_undelivered_seconds{C}": f"0x90 15+15x{STEPS}"},
    ),
    "tries of four fifths": ("try_budget", "reminder", {f"tidegate_campaign_tries_total{C}": f"0+4100x{STEPS}"}),
    "an end behind the deadline": (
        "deadline_at_risk", "reminder", {f"tidegate_campaign_eta_seconds{C}": f"6000x{STEPS}"},
    ),
    "books that do not add up": (
        "books_unbalanced", "reminder", {f"tidegate_campaign_books_balanced{C}": f"1x118 0x{STEPS}"},
    ),
    "a database that is away": (
        "database_away", "database", {'tidegate_database_state{state="away"}': f"0x115 1x{STEPS}"},
    ),
    "a database that is slow": (
        "database_slow", "database", {'tidegate_database_state{state="slow"}': f"0x110 1x{STEPS}"},
    ),
    "a forgotten transaction": (
        "snapshot_open", "database", {"tidegate_database_oldest_transaction_seconds": f"0+15x{STEPS}"},
    ),
    "statuses that pile up": ("webhook_lag", "webhooks", {"tidegate_webhook_lag_seconds": f"0x100 0+15x{STEPS}"}),
    "a node that does not answer": (
        "node_lost", "eng1:9464", {'up{job="tidegate",instance="eng1:9464"}': f"1x110 0x{STEPS}"},
    ),
}  # fmt: skip

KEEPS_QUIET: dict[str, Mapping[str, str]] = {
    "a quiet night": {},
    "a low ceiling that nobody refuses any more": {
        f"tidegate_number_ceiling_messages_per_second{N}": f"25x{STEPS}"
    },
    "one burst of 130429": {f"tidegate_throttled_sends_total{N}": f"0x110 400x{STEPS}"},
    "a slow answer or two": {'tidegate_number_sending_rows{number="1",age="2-5m"}': f"0x118 1x{STEPS}"},
    "statuses that are behind are no silence of the provider's": {
        f"tidegate_webhook_silence_seconds{N}": f"0x{STEPS}",
        "tidegate_webhook_lag_seconds": f"59x{STEPS}",
    },
    "a campaign whose numbers a person has paused": {
        'tidegate_campaign_state{campaign="reminder",state="running"}': f"1x60 0x{STEPS}",
        'tidegate_campaign_state{campaign="reminder",state="paused"}': f"0x60 1x{STEPS}",
    },
    "few rows, all failed": {
        'tidegate_campaign_rows{campaign="reminder",state="delivered"}': f"0x{STEPS}",
        'tidegate_campaign_rows{campaign="reminder",state="failed"}': f"0x100 49x{STEPS}",
    },
    "unknown rows that were there before": {f"tidegate_number_unknown_rows{N}": f"900x{STEPS}"},
    "a spent budget of what is finished": {
        f"tidegate_campaign_tries_total{C}": f"600000x{STEPS}",
        'tidegate_campaign_state{campaign="reminder",state="running"}': f"0x{STEPS}",
        'tidegate_campaign_state{campaign="reminder",state="finished"}': f"1x{STEPS}",
    },
    "a campaign without a deadline": {f"tidegate_campaign_deadline_timestamp_seconds{C}": "_"},
    "another node whose view is behind": {
        'tidegate_campaign_idle_seconds{campaign="reminder",instance="eng2:9464"}': f"500x{STEPS}",
    },
}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "tidegate.rules.yml").write_text(as_yaml())
    return tmp_path


def played(changes: Mapping[str, str], fires: tuple[str, str] | None) -> dict[str, Any]:
    """A promtool unit test in which `fires` (kind, subject), and nothing else, is active at the end."""
    series = [{"series": name, "values": values} for name, values in (QUIET | dict(changes)).items()]
    query = 'count by (alertname, subject, severity) (ALERTS{alertstate="firing"})'
    rule = next((r for r in RULES if fires and r.kind == fires[0]), None)
    labels = (
        f'{{alertname="{rule.name}", severity="{rule.severity}", subject="{fires[1]}"}}'
        if rule and fires
        else ""
    )
    return {
        "interval": "15s",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": "30m",
                "exp_samples": [{"labels": labels, "value": 1}] if labels else [],
            }
        ],
    }


def run(directory: Path, tests: list[dict[str, Any]]) -> str:
    """promtool's complaint; empty when it has none."""
    path = directory / "test.yml"
    whole = {"rule_files": ["tidegate.rules.yml"], "evaluation_interval": "15s", "tests": tests}
    path.write_text(json.dumps(whole))  # JSON is YAML
    ended = promtool("test", "rules", str(path))
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


@needs_prometheus
def test_promtool_takes_the_rule_file(rules: Path) -> None:
    checked = promtool("check", "rules", str(rules / "tidegate.rules.yml"))
    assert checked.returncode == 0, checked.stderr
    assert f"{len(RULES)} rules found" in checked.stdout


@needs_prometheus
@pytest.mark.parametrize("what", FIRES)
def test_a_trouble_fires_its_own_alert_and_no_other(rules: Path, what: str) -> None:
    kind, subject, changes = FIRES[what]
    assert run(rules, [played(changes, (kind, subject))]) == ""


@needs_prometheus
@pytest.mark.parametrize("what", KEEPS_QUIET)
def test_what_is_no_trouble_fires_nothing(rules: Path, what: str) -> None:
    assert run(rules, [played(KEEPS_QUIET[what], None)]) == ""


def test_every_rule_has_a_trouble_here() -> None:
    assert {kind for kind, _, _ in FIRES.values()} == {rule.kind for rule in RULES}


@needs_prometheus
def test_the_summary_of_a_throttled_number_says_what_is_really_granted(rules: Path) -> None:
    rule = next(r for r in RULES if r.kind == "number_throttled")
    test = played(STEADY_THROTTLE, None) | {
        "promql_expr_test": [],
        "alert_rule_test": [
            {
                "alertname": rule.name,
                "eval_time": "30m",
                "exp_alerts": [
                    {
                        "exp_labels": {
                            "severity": rule.severity,
                            "kind": rule.kind,
                            "subject": "1",
                            "number": "1",
                        },
                        "exp_annotations": {
                            "summary": "Number 1: 13.79% of its tries are refused for throughput; "
                            "granted are about 25 messages/s.",
                            "description": f"{rule.meaning} {rule.advice}",
                            "runbook_url": rule.runbook,
                        },
                    }
                ],
            }
        ],
    }
    assert run(rules, [test]) == ""


def test_the_rules_follow_the_thresholds_that_they_are_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["rules", "--set", "silence=5m, throttled_for=2.5s", "--runbooks", "https://wiki/"]
    )
    assert main() == 0
    printed = capsys.readouterr().out
    assert "tidegate_webhook_silence_seconds) > 300" in printed
    assert "for: 2500ms" in printed
    assert '"https://wiki/docs/runbooks/webhook-silent.md"' in printed
    assert f"tidegate_webhook_silence_seconds) > {DEFAULTS.silence_s:g}" in as_yaml()


def test_a_threshold_that_is_none_ends_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["rules", "--set", "quiet=5m"])
    assert main() == 2
    assert capsys.readouterr().err.startswith("--set cannot be used: 'quiet' is no threshold; there are ")
