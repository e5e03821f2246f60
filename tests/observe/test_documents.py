"""What is committed below docs/ is what the code makes; every alert has its page; Grafana would take the dashboard."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.domain.alert_rules import RULES
from engine.domain.thresholds import DEFAULTS
from engine.observe.catalog import METRICS
from engine.observe.dashboard import dashboard
from engine.observe.documents import DASHBOARD_FILE, PAGE, RULES_FILE, documents
from tests.support.prometheus import needs_prometheus, promtool

ROOT = Path(__file__).parents[2]
HEADINGS = ["What it means", "First look", "What to press", "When it clears"]
OURS = re.compile(r"\btidegate_\w+")


@pytest.mark.parametrize("path", [RULES_FILE, DASHBOARD_FILE, PAGE], ids=str)
def test_what_is_committed_is_current(path: Path) -> None:
    made = documents(ROOT)[path]
    assert (ROOT / path).read_text(encoding="utf-8") == made, "run `python -m engine.observe.documents`"


def test_the_page_names_every_metric_and_every_threshold() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert [name for name in METRICS if f"`{name}`" not in page] == []
    for name in DEFAULTS.__dataclass_fields__:
        assert f"`{name}`" in page or f"`{name.removesuffix('_s')}`" in page, name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_an_alert_has_a_page_that_says_what_it_means_and_what_to_do(rule: Any) -> None:
    page = (ROOT / rule.runbook).read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS
    assert f"`{rule.name}`, {rule.severity}" in page
    assert all(len(text.strip()) > 10 for text in re.split(r"^## .+$", page, flags=re.MULTILINE)[1:])


def test_there_is_no_page_without_an_alert() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/runbooks").glob("*.md")}
    assert pages == {rule.runbook for rule in RULES}


def test_rules_and_panels_ask_only_for_metrics_that_exist() -> None:
    asked = [rule.query(DEFAULTS) for rule in RULES] + [target["expr"] for target in targets()]
    names = {re.sub(r"_(bucket|sum|count)$", "", name) for expr in asked for name in OURS.findall(expr)}
    assert names - set(METRICS) == set()


def test_the_page_shows_every_metric_somewhere() -> None:
    """A metric that no panel and no rule asks for is one that nobody looks at: those are named here, with a reason."""
    seldom = {
        "tidegate_campaign_planned_rows",  # the dashboard's list of campaigns
        "tidegate_number_provider_limit_messages_per_second",
        "tidegate_number_bound",
        "tidegate_number_in_flight_requests",
        "tidegate_number_claimed_rows",
        "tidegate_number_sending_oldest_seconds",
        "tidegate_campaign_accepted_total",
        "tidegate_campaign_attempts_total",
        "tidegate_campaign_possible_duplicates_total",
        "tidegate_campaign_failed_rows",
        "tidegate_campaign_held_rows",
        "tidegate_webhook_bodies_total",
        "tidegate_webhook_foreign_statuses_total",
        "tidegate_node_draining",
    }  # asked for by hand, when something is looked into
    asked = " ".join([rule.query(DEFAULTS) for rule in RULES] + [target["expr"] for target in targets()])
    unused = {name for name in METRICS if not re.search(rf"\b{name}(_bucket)?\b", asked)}
    assert unused == seldom


def test_the_dashboard_begins_with_what_matters_first() -> None:
    titles = [panel["title"] for panel in dashboard()["panels"]]
    assert titles[:9] == [
        "First look",
        "Sends against rate and ceiling",
        "Waiting for a token",
        "API latency",
        "Results by code",
        "Claim duration",
        "Pending by campaign",
        "Sent to delivered",
        "Rows sending for more than two minutes",
    ]


def test_the_dashboard_is_what_grafana_expects() -> None:
    board = dashboard()
    assert (board["uid"], board["title"]) == ("tidegate", "Tidegate")
    assert board["schemaVersion"] >= 36  # from then on data sources are objects
    assert "id" not in board  # Grafana gives it
    variables = {variable["name"]: variable["type"] for variable in board["templating"]["list"]}
    assert variables == {"datasource": "datasource", "number": "query", "campaign": "query"}
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in board["panels"]:
        assert {"id", "type", "title", "gridPos"} <= panel.keys()
        if panel["type"] == "row":
            continue
        assert panel["type"] == "timeseries"
        assert panel["description"].strip().endswith(("?", ".")), panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["targets"]
        references = [target["refId"] for target in panel["targets"]]
        assert references == sorted(set(references))


def test_panels_lie_side_by_side_and_never_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@needs_prometheus
def test_promtool_takes_the_example_configuration() -> None:
    checked = promtool("check", "config", str(ROOT / "docs/prometheus/prometheus.yml"))
    assert checked.returncode == 0, checked.stderr


def targets() -> Iterator[dict[str, Any]]:
    for panel in dashboard()["panels"]:
        yield from panel.get("targets", [])
