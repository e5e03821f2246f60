"""What a scenario may say, and the sentence for one that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import engine.simulator
from engine.simulator.scenario import Scenario, ScenarioError, access, load, parse

DEMO = Path(engine.simulator.__file__).with_name("demo.json")


@pytest.mark.parametrize(
    ("scenario", "key"),
    [
        ({"nubmers": {}}, "nubmers"),
        ({"rules": [{"do": "explode"}]}, "$.rules[0].do"),
        ({"rules": [{"do": "error"}]}, "code"),
        ({"rules": [{"do": "slow", "match": {"share": 2}}]}, "$.rules[0].match.share"),
        ({"rules": [{"do": "slow", "match": {"every": 0}}]}, "$.rules[0].match.every"),
        ({"rules": [{"do": "close_before_reading", "match": {"to_ends_with": "1"}}]}, "to_ends_with"),
        ({"rules": [{"do": "close_before_reading", "accepted": True}]}, "accepted"),
        ({"rules": [{"do": "error", "code": 1, "headers": {"a": "b\r\nc: d"}}]}, "headers"),
        ({"numbers": {"1": {"limit": "many"}}}, "$.numbers[...].limit"),
        ({"latency": {"median_ms": 300, "p95_ms": 200}}, "p95_ms"),
        ({"statuses": {"sent_s": [2, 1]}}, "sent_s"),
        ({"webhook": "localhost:8080"}, "webhook"),
        ({"webhook": "http://:80/webhook"}, "webhook"),
        ({"webhook": "http://somewhere:99999/"}, "webhook"),
        ({"app_secret": ""}, "app_secret"),
        ({"tokens": [""]}, "tokens"),
    ],
)
def test_a_scenario_that_cannot_be_used_names_its_file_and_key(
    scenario: dict[str, Any], key: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(scenario))
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert key in str(caught.value)


def test_a_missing_file_and_broken_json_are_told_apart(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ScenarioError, match=r"broken\.json is not valid JSON"):
        load(broken)
    with pytest.raises(ScenarioError, match=r"none\.json cannot be read: No such file"):
        load(tmp_path / "none.json")


def test_without_numbers_any_number_is_served_and_with_them_only_these() -> None:
    anyone = Scenario().number("777")
    assert anyone
    assert (anyone.limit, anyone.window_ms) == (80, 1000)
    some = parse(b'{"numbers": {"1": {"limit": 5}}}', "it")
    assert some.number("777") is None
    known = some.number("1")
    assert known
    assert known.limit == 5
    both = parse(b'{"numbers": {"1": {"limit": 5}}, "any_number": {"limit": 9}}', "it").number("777")
    assert both
    assert both.limit == 9


def test_secrets_come_from_the_scenario_then_the_run_before_then_the_environment_then_defaults() -> None:
    environment = {"TIDEGATE_APP_SECRET": "from-environment", "TIDEGATE_SIMULATOR_TOKEN": "t1"}
    first = access(Scenario(), environment)
    assert (first.app_secret, first.tokens) == (b"from-environment", frozenset({"t1"}))
    second = access(Scenario(app_secret="own", tokens=["t2"]), environment, first)
    assert (second.app_secret, second.tokens) == (b"own", frozenset({"t2"}))
    assert access(Scenario(), environment, second) == second
    assert access(Scenario(), {}).app_secret == b"simulator-secret"


def test_a_webhook_in_the_environment_must_be_an_address() -> None:
    with pytest.raises(ScenarioError, match="TIDEGATE_SIMULATOR_WEBHOOK"):
        access(Scenario(), {"TIDEGATE_SIMULATOR_WEBHOOK": "nowhere"})


def test_no_secret_shows_when_a_scenario_is_printed() -> None:
    scenario = Scenario(app_secret="hush", tokens=["hush"], webhook="http://hush")
    assert "hush" not in f"{scenario!r} {scenario} {access(scenario, {})!r}"


def test_the_demo_runs_three_numbers_and_names_no_secret_and_no_address() -> None:
    demo = load(DEMO)
    assert [number.limit for number in demo.numbers.values()] == [80, 80, 20]
    assert (
        access(demo, {"TIDEGATE_SIMULATOR_WEBHOOK": "http://127.0.0.1:1/w"}).webhook == "http://127.0.0.1:1/w"
    )
