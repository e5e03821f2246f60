"""The page of metrics: well-formed, complete, bounded, and true to the figures that it is made from."""

import asyncio
import math
import re
from typing import Any, cast

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

from engine.domain.past import MOST_CODES
from engine.observe.catalog import METRICS
from engine.observe.metrics import JOURNEY, NETWORK, QUICK, Histogram
from engine.observe.prometheus import NodeCollector, Page, metrics_app
from tests.support.prometheus import needs_prometheus, promtool
from tests.support.quiet import NUMBER, a_campaign, a_number, counts, quiet
from tests.support.scraped import NUMBER_ID, FakeNode, eventful


def page(node: FakeNode) -> str:
    registry = CollectorRegistry()
    registry.register(NodeCollector(node))
    return generate_latest(registry).decode()


def samples(node: FakeNode) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page(node))
        for sample in family.samples
    }


def value(node: FakeNode, name: str, **labels: str) -> float | None:
    return samples(node).get((name, frozenset(labels.items())))


def test_every_metric_of_the_catalog_is_on_the_page_of_an_eventful_night() -> None:
    said = {name for name, _ in samples(eventful())}
    expected = {m.name + ("_count" if m.kind == "histogram" else "") for m in METRICS.values()}
    assert expected - said == set()


def test_the_page_holds_nothing_that_the_catalog_does_not_know() -> None:
    with pytest.raises(KeyError):
        Page().put("tidegate_invented_total", 1)
    with pytest.raises(KeyError):
        Page().put("tidegate_sends_total", 1, number=NUMBER)


def test_before_the_first_snapshot_there_are_names_and_no_values() -> None:
    assert samples(FakeNode(None)) == {}
    assert "# HELP tidegate_sends_total" in page(FakeNode(None))


def test_a_figure_that_is_not_known_is_missing_and_not_zero() -> None:
    node = FakeNode(quiet(campaigns=(a_campaign(delivered_share=None, eta_s=None),), webhook_lag_s=None))
    names = {name for name, _ in samples(node)}
    assert names.isdisjoint(
        {
            "tidegate_campaign_delivered_share",
            "tidegate_campaign_eta_seconds",
            "tidegate_campaign_deadline_timestamp_seconds",
            "tidegate_webhook_lag_seconds",
            "tidegate_statuses_total",
        }
    )


def test_the_figures_are_those_of_the_node() -> None:
    node = eventful()
    assert value(node, "tidegate_sends_total", number=NUMBER, outcome="accepted", code="") == 1
    assert value(node, "tidegate_sends_total", number=NUMBER, outcome="refused", code="130429") == 1
    assert value(node, "tidegate_throttled_sends_total", number=NUMBER) == 1
    assert value(node, "tidegate_number_sending_rows", number=NUMBER, age="0-2m") == 11
    assert value(node, "tidegate_number_sending_rows", number=NUMBER, age="5-30m") == 1
    assert value(node, "tidegate_campaign_rows", campaign="reminder", state="read") == 2000
    assert value(node, "tidegate_campaign_failed_rows", campaign="reminder", code="131026") == 2
    assert value(node, "tidegate_database_pool_connections", state="used") == 2
    assert value(node, "tidegate_database_oldest_transaction_seconds") == 17
    assert value(node, "tidegate_webhook_bodies_total", result="applied") == 29
    assert value(node, "tidegate_held", scope="account", key="WABA1") == 1


def test_only_active_alerts_are_active() -> None:
    node = eventful()
    assert value(node, "tidegate_alert_active", alert="number_held", subject="1", severity="critical") == 1
    assert [
        labels
        for name, labels in samples(node)
        if name == "tidegate_alert_active" and "webhook_lag" in str(labels)
    ] == []


def test_exactly_one_state_holds_at_a_time_also_one_that_is_new() -> None:
    for state in ("held", "active", "dreaming"):
        node = FakeNode(quiet(numbers=(a_number(state=state),)))
        holding = {
            dict(labels)["state"]
            for (name, labels), held in samples(node).items()
            if name == "tidegate_number_state" and held
        }
        assert holding == {state}


def test_books_that_do_not_add_up_are_zero_and_held_rows_are_the_pending_ones_of_a_held_campaign() -> None:
    bad = FakeNode(quiet(campaigns=(a_campaign(planned=4001, state="held"),)))
    assert value(bad, "tidegate_campaign_books_balanced", campaign="reminder") == 0
    assert value(bad, "tidegate_campaign_held_rows", campaign="reminder") == 2000
    good = FakeNode(quiet(campaigns=(a_campaign(counts=counts(pending=4000)),)))
    assert value(good, "tidegate_campaign_books_balanced", campaign="reminder") == 1
    assert value(good, "tidegate_campaign_held_rows", campaign="reminder") == 0


@pytest.mark.parametrize("bounds", [QUICK, NETWORK, JOURNEY])
def test_a_histogram_counts_each_sample_below_or_at_its_bound_once(bounds: tuple[float, ...]) -> None:
    durations = [0.0, *bounds, *(bound * 1.001 for bound in bounds), 1e6]
    node = FakeNode(quiet())
    node.figures.claim_time = histogram = Histogram(bounds)
    for second, duration in enumerate(durations):
        histogram.add(float(second), duration)
    buckets = {
        dict(labels)["le"]: count
        for (name, labels), count in samples(node).items()
        if name == "tidegate_claim_duration_seconds_bucket"
    }
    for bound in (*bounds, math.inf):
        written = "+Inf" if bound == math.inf else f"{bound:g}"
        assert buckets[written] == sum(duration <= bound for duration in durations)
    assert value(node, "tidegate_claim_duration_seconds_count") == len(durations)
    assert value(node, "tidegate_claim_duration_seconds_sum") == pytest.approx(sum(durations))


def test_a_provider_that_invents_codes_does_not_grow_the_page_without_end() -> None:
    node = FakeNode(quiet())
    figures = node.figures.number(NUMBER_ID)
    for code in range(10 * MOST_CODES):
        figures.stored(1.0, "refused", code, throttled=False)
    sends = {labels: n for (name, labels), n in samples(node).items() if name == "tidegate_sends_total"}
    assert len(sends) == MOST_CODES + 1
    assert sum(sends.values()) == 10 * MOST_CODES
    assert (
        value(node, "tidegate_sends_total", number=NUMBER, outcome="refused", code="other") == 9 * MOST_CODES
    )


def test_labels_are_bounded_and_no_label_is_a_persons() -> None:
    allowed = {
        *(
            "number",
            "campaign",
            "code",
            "node",
            "host",
            "version",
            "state",
            "outcome",
            "by",
            "age",
            "scope",
            "key",
        ),
        *("alert", "subject", "severity", "result", "status"),
    }
    assert {label for metric in METRICS.values() for label in metric.labels} <= allowed
    assert re.search(r"\+\d{8,}", page(eventful())) is None


def test_names_follow_the_conventions() -> None:
    for metric in METRICS.values():
        assert metric.name.startswith("tidegate_")
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.help.endswith("."), metric.name
        assert metric.change.endswith("."), metric.name


@needs_prometheus
def test_promtool_has_nothing_to_say_against_the_page() -> None:
    checked = promtool("check", "metrics", stdin=page(eventful()))
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


async def test_the_application_answers_a_scrape_in_the_format_that_was_asked_for() -> None:
    app = metrics_app(cast("Any", eventful()))
    for accept, kind in (
        ("text/plain", "text/plain"),
        ("application/openmetrics-text", "application/openmetrics-text"),
    ):
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any], sent: list[dict[str, Any]] = sent) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": "GET", "path": "/metrics", "query_string": b"",
            "headers": [(b"accept", accept.encode())],
        }  # fmt: skip
        async with asyncio.timeout(60):
            await app(scope, receive, send)
        headers = {bytes(k).decode().lower(): bytes(v).decode() for k, v in sent[0]["headers"]}
        assert sent[0]["status"] == 200
        assert headers["content-type"].startswith(kind)
        assert b"process_resident_memory_bytes" in sent[1]["body"]
