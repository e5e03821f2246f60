"""`/metrics`: the node's figures as Prometheus reads them, gathered when it asks and never before.

Sending pays for none of it but the counters that the console needs too. A scrape reads the newest snapshot and the
counters in the engine's own loop, so nothing is locked and nothing is half counted.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, make_asgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from engine.domain.past import OTHER_CODE
from engine.domain.snapshot import CampaignView, NumberView, Snapshot
from engine.observe.catalog import COUNTER, GAUGE, METRICS
from engine.observe.figures import DatabaseFigures
from engine.observe.metrics import Histogram, NodeFigures, NumberFigures
from engine.postgres.books import Tallies
from engine.postgres.figures import InFlight

NUMBER_STATES = ("paused", "held", "waiting", "slowed", "active")
BOUNDS = ("bucket", "rows", "slots", "database", "provider", "hold", "lease")
CAMPAIGN_STATES = ("draft", "scheduled", "running", "paused", "held", "finished", "cancelled")
DATABASE_STATES = ("ok", "slow", "away")

_NO_ROWS = InFlight(0, 0, 0, 0, 0.0)


class WebhookCounts(Protocol):
    """What the applier of webhooks has counted since the start."""

    @property
    def bodies(self) -> int: ...
    @property
    def unparsable(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def foreign(self) -> int: ...
    @property
    def unmatched(self) -> int: ...
    @property
    def statuses(self) -> Mapping[str, int]: ...
    @property
    def delay(self) -> Histogram: ...
    @property
    def batch_time(self) -> Histogram: ...


class Node(Protocol):
    """All that a scrape needs of an engine."""

    @property
    def figures(self) -> NodeFigures: ...
    @property
    def database(self) -> DatabaseFigures: ...
    @property
    def webhooks(self) -> WebhookCounts | None: ...
    @property
    def webhook_answers(self) -> Mapping[int, int]: ...
    @property
    def latest(self) -> Snapshot | None: ...

    def number_names(self) -> Mapping[int, str]:
        """Meta's number id by number_id."""

    def campaign_names(self) -> Mapping[int, str]:
        """Name by campaign_id."""


class Page:
    """One scrape: families by name, filled one value at a time; a name or label that no catalog knows is an error."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {name: _family(name) for name in METRICS}

    def put(self, name: str, value: float | None, **labels: object) -> None:
        """One value; None is not known, and left out."""
        if value is None:
            return
        family: Any = self.families[name]
        family.add_metric([str(labels[label]) for label in METRICS[name].labels], value)

    def one_of(self, name: str, label: str, current: str, words: Collection[str], **labels: object) -> None:
        """1 for the word that holds now, 0 for the others."""
        for word in words if current in words else (*words, current):
            self.put(name, float(word == current), **labels, **{label: word})

    def histogram(self, name: str, of: Histogram, **labels: object) -> None:
        """All samples since the start."""
        seen, buckets = 0, []
        for bound, count in zip((*of.bounds, float("inf")), of.counts, strict=True):
            seen += count
            buckets.append(("+Inf" if bound == float("inf") else f"{bound:g}", seen))
        family: Any = self.families[name]
        family.add_metric([str(labels[label]) for label in METRICS[name].labels], buckets, of.total_s)


def _family(name: str) -> Family:
    metric = METRICS[name]
    if metric.kind == GAUGE:
        return GaugeMetricFamily(name, metric.help, labels=metric.labels)
    if metric.kind == COUNTER:
        return CounterMetricFamily(name, metric.help, labels=metric.labels)
    return HistogramMetricFamily(name, metric.help, labels=metric.labels)


class NodeCollector(Collector):
    """Gathers everything of one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._version = _version()

    def collect(self) -> Iterator[Family]:
        """All families; before the first snapshot they are empty."""
        page = Page()
        snapshot = self._node.latest
        if snapshot is not None:
            _put_node(page, self._node, snapshot, self._version)
            _put_webhooks(page, self._node, snapshot)
            for view in snapshot.numbers:
                _put_number(page, view)
            for number_id, name in self._node.number_names().items():
                _put_results(page, name, self._node.figures.number(number_id))
                _put_rows(page, name, self._node.database.in_flight.get(number_id, _NO_ROWS))
            tallies = self._tallies_by_name()
            for campaign in snapshot.campaigns:
                _put_campaign(page, campaign, tallies.get(campaign.name, Tallies()))
        yield from page.families.values()

    def describe(self) -> Iterator[Family]:
        """The names, without values: what a registry compares."""
        yield from Page().families.values()

    def _tallies_by_name(self) -> dict[str, Tallies]:
        names = self._node.campaign_names()
        return {names[c]: tallies for c, tallies in self._node.database.tallies.items() if c in names}


def _put_node(page: Page, node: Node, snapshot: Snapshot, release: str) -> None:
    page.put("tidegate_node_info", 1, node=snapshot.node, host=snapshot.host, version=release)
    page.put("tidegate_node_draining", float(snapshot.draining))
    page.histogram("tidegate_loop_lag_seconds", node.figures.loop_lag)
    page.histogram("tidegate_claim_duration_seconds", node.figures.claim_time)
    page.histogram("tidegate_mark_duration_seconds", node.figures.mark_time)
    page.histogram("tidegate_result_batch_duration_seconds", node.figures.result_time)
    page.put("tidegate_results_backlog_rows", snapshot.results_backlog)
    page.one_of("tidegate_database_state", "state", snapshot.database, DATABASE_STATES)
    page.histogram("tidegate_database_round_trip_seconds", node.database.round_trip)
    for state, count in zip(("used", "idle", "max"), node.database.pool, strict=True):
        page.put("tidegate_database_pool_connections", count, state=state)
    oldest = snapshot.oldest_transaction
    page.put("tidegate_database_oldest_transaction_seconds", oldest.age_s if oldest else 0.0)
    for hold in snapshot.holds:
        page.put("tidegate_held", 1, scope=hold.scope, key=hold.key)
    for alert in snapshot.alerts:
        if alert.active:
            kind, _, subject = alert.key.partition(":")
            page.put("tidegate_alert_active", 1, alert=kind, subject=subject, severity=alert.severity)


def _put_webhooks(page: Page, node: Node, snapshot: Snapshot) -> None:
    page.put("tidegate_webhook_lag_seconds", snapshot.webhook_lag_s)
    page.put("tidegate_webhook_inbox_bodies", snapshot.inbox_backlog)
    for code, count in node.webhook_answers.items():
        page.put("tidegate_webhook_answers_total", count, status=code)
    counts = node.webhooks
    if counts is None:
        return
    page.put("tidegate_webhook_bodies_total", counts.bodies - counts.unparsable, result="applied")
    page.put("tidegate_webhook_bodies_total", counts.unparsable, result="unparsable")
    page.put("tidegate_webhook_bodies_total", counts.refused, result="refused")
    for status, count in counts.statuses.items():
        page.put("tidegate_statuses_total", count, status=status)
    page.put("tidegate_webhook_unmatched_statuses", counts.unmatched)
    page.put("tidegate_webhook_foreign_statuses_total", counts.foreign)
    page.histogram("tidegate_delivery_delay_seconds", counts.delay)
    page.histogram("tidegate_status_batch_duration_seconds", counts.batch_time)


def _put_number(page: Page, n: NumberView) -> None:
    number = n.id
    page.put("tidegate_number_rate_messages_per_second", n.rate, number=number)
    page.put("tidegate_number_ceiling_messages_per_second", n.ceiling, number=number)
    page.put("tidegate_number_provider_limit_messages_per_second", n.limit, number=number)
    page.one_of("tidegate_number_state", "state", n.state, NUMBER_STATES, number=number)
    page.one_of("tidegate_number_bound", "by", n.bound_by, BOUNDS, number=number)
    page.put("tidegate_number_lease_epoch", n.epoch, number=number)
    if n.owner is not None:
        page.put("tidegate_number_owner", 1, number=number, node=n.owner)
    page.put("tidegate_number_in_flight_requests", n.in_flight, number=number)
    page.put("tidegate_webhook_silence_seconds", n.silence_s or 0.0, number=number)


def _put_results(page: Page, number: str, figures: NumberFigures) -> None:
    for (outcome, code), count in figures.results.items():
        word = "" if code is None else "other" if code == OTHER_CODE else code
        page.put("tidegate_sends_total", count, number=number, outcome=outcome, code=word)
    page.put("tidegate_throttled_sends_total", figures.throttled_total, number=number)
    page.put("tidegate_leases_lost_total", figures.leases_lost, number=number)
    page.histogram("tidegate_token_wait_seconds", figures.token_wait, number=number)
    page.histogram("tidegate_api_latency_seconds", figures.latency, number=number)


def _put_rows(page: Page, number: str, rows: InFlight) -> None:
    page.put("tidegate_number_claimed_rows", rows.claimed, number=number)
    page.put("tidegate_number_unknown_rows", rows.unknown, number=number)
    page.put("tidegate_number_sending_oldest_seconds", rows.oldest, number=number)
    bands = {"0-2m": rows.fresh, "2-5m": rows.to_5m, "5-30m": rows.to_30m, "over-30m": rows.over_30m}
    for age, count in bands.items():
        page.put("tidegate_number_sending_rows", count, number=number, age=age)


def _put_campaign(page: Page, c: CampaignView, tallies: Tallies) -> None:
    campaign = c.name
    page.one_of("tidegate_campaign_state", "state", c.state, CAMPAIGN_STATES, campaign=campaign)
    for state, count in c.counts.items():
        page.put("tidegate_campaign_rows", count, campaign=campaign, state=state)
    balanced = sum(c.counts.values()) == c.planned
    held = c.counts.get("pending", 0) if c.state == "held" else 0
    page.put("tidegate_campaign_planned_rows", c.planned, campaign=campaign)
    page.put("tidegate_campaign_books_balanced", float(balanced), campaign=campaign)
    page.put("tidegate_campaign_held_rows", held, campaign=campaign)
    page.put("tidegate_campaign_accepted_total", c.accepted, campaign=campaign)
    page.put("tidegate_campaign_tries_total", c.tries, campaign=campaign)
    page.put("tidegate_campaign_attempts_total", c.attempts, campaign=campaign)
    page.put("tidegate_campaign_try_budget", c.try_budget, campaign=campaign)
    page.put("tidegate_campaign_possible_duplicates_total", c.possible_duplicates, campaign=campaign)
    page.put("tidegate_campaign_idle_seconds", c.idle_s, campaign=campaign)
    page.put("tidegate_campaign_delivered_share", c.delivered_share, campaign=campaign)
    page.put("tidegate_campaign_delivered_norm_share", c.delivered_norm, campaign=campaign)
    page.put("tidegate_campaign_eta_seconds", c.eta_s, campaign=campaign)
    page.put("tidegate_campaign_late_rows", c.late, campaign=campaign)
    waiting = max((one.waiting_s for one in c.controls), default=0.0)
    page.put("tidegate_campaign_control_undelivered_seconds", waiting, campaign=campaign)
    if c.deadline is not None:
        name = "tidegate_campaign_deadline_timestamp_seconds"
        page.put(name, c.deadline.timestamp(), campaign=campaign)
    for code, count in tallies.refusals.items():
        page.put("tidegate_campaign_refusals_total", count, campaign=campaign, code=code)
    for code, count in tallies.errors.items():
        page.put("tidegate_campaign_failed_rows", count, campaign=campaign, code=code)


def metrics_app(node: Node) -> Callable[..., Any]:
    """The ASGI application that answers a scrape, in the format that the scraper asks for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(node))
    ProcessCollector(registry=registry)  # process_resident_memory_bytes, process_cpu_seconds_total, …
    # Compressing costs more CPU than a loopback or a rack's network does.
    app: Callable[..., Any] = make_asgi_app(registry, disable_compression=True)
    return app


def _version() -> str:
    try:
        return version("tidegate")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"
