"""The dashboard's panels: for each a question, its PromQL and its unit. Drawn by `engine.observe.dashboard`."""

from collections.abc import Sequence
from dataclasses import dataclass

RATE = "$__rate_interval"
N, C = 'number=~"$number"', 'campaign=~"$campaign"'


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: `lines` are pairs of PromQL and legend; `unit` is Grafana's; `question` is what it answers."""

    title: str
    question: str
    unit: str
    lines: tuple[tuple[str, str], ...]
    stacked: bool = False


def _quantiles(metric: str, by: str = "", where: str = "") -> tuple[tuple[str, str], ...]:
    """p50, p95 and p99 of a histogram over all nodes."""
    labels = f"le, {by}" if by else "le"
    legend = f" {{{{{by}}}}}" if by else ""
    rate = f"sum by ({labels}) (rate({metric}_bucket{{{where}}}[{RATE}]))"
    return tuple((f"histogram_quantile({q}, {rate})", f"p{q[2:]}{legend}") for q in ("0.50", "0.95", "0.99"))


FIRST = (
    Panel(
        "Sends against rate and ceiling",
        "Is each number used as far as it is configured, and as far as the provider lets it?",
        "short",
        (
            (
                f'sum by (number) (rate(tidegate_sends_total{{{N},outcome="accepted"}}[{RATE}]))',
                "{{number}} accepted",
            ),
            (f"max by (number) (tidegate_number_rate_messages_per_second{{{N}}})", "{{number}} rate"),
            (f"min by (number) (tidegate_number_ceiling_messages_per_second{{{N}}})", "{{number}} ceiling"),
        ),
    ),
    Panel(
        "Waiting for a token",
        "How long do ready rows wait for their permit? About a quarter of a second at full rate.",
        "s",
        _quantiles("tidegate_token_wait_seconds", where=N),
    ),
    Panel(
        "API latency",
        "How fast does the provider answer?",
        "s",
        _quantiles("tidegate_api_latency_seconds", where=N),
    ),
    Panel(
        "Results by code",
        "What is refused, and what has no answer?",
        "reqps",
        (
            (
                f'sum by (outcome, code) (rate(tidegate_sends_total{{{N},outcome!="accepted"}}[{RATE}]))',
                "{{outcome}} {{code}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "Claim duration",
        "Does finding ready rows get slower?",
        "s",
        _quantiles("tidegate_claim_duration_seconds"),
    ),
    Panel(
        "Pending by campaign",
        "How much work is left?",
        "short",
        ((f'max by (campaign) (tidegate_campaign_rows{{{C},state="pending"}})', "{{campaign}}"),),
    ),
    Panel(
        "Sent to delivered",
        "How long until a message is on a phone?",
        "s",
        _quantiles("tidegate_delivery_delay_seconds"),
    ),
    Panel(
        "Rows sending for more than two minutes",
        "Is anything stuck between us and the provider?",
        "short",
        (
            (f'max by (number, age) (tidegate_number_sending_rows{{{N},age!="0-2m"}})', "{{number}} {{age}}"),
            (f"max by (number) (tidegate_number_unknown_rows{{{N}}})", "{{number}} unknown"),
        ),
    ),
)

ALARMS = (
    Panel(
        "Active alerts",
        "What does the engine itself find wrong?",
        "short",
        (
            ("count by (alert, severity) (tidegate_alert_active)", "{{severity}} {{alert}}"),
            ("count(tidegate_alert_active) or vector(0)", "all"),
        ),
    ),
    Panel(
        "Stops that need a person",
        "What is held?",
        "short",
        (
            ("max by (scope, key) (tidegate_held)", "{{scope}} {{key}}"),
            (f'max by (number) (tidegate_number_state{{{N},state="held"}})', "number {{number}}"),
            (f'max by (campaign) (tidegate_campaign_state{{{C},state="held"}})', "campaign {{campaign}}"),
        ),
    ),
)

CAMPAIGNS = (
    Panel(
        "Rows by state",
        "Where do the rows stand? The sum is what was planned.",
        "short",
        ((f"sum by (state) (max by (campaign, state) (tidegate_campaign_rows{{{C}}}))", "{{state}}"),),
        stacked=True,
    ),
    Panel(
        "Delivered share of older sends",
        "Do accepted messages reach people as usual?",
        "percentunit",
        (
            (f"max by (campaign) (tidegate_campaign_delivered_share{{{C}}})", "{{campaign}}"),
            (f"max by (campaign) (tidegate_campaign_delivered_norm_share{{{C}}})", "{{campaign}} norm"),
        ),
    ),
    Panel(
        "Estimate and deadline",
        "Will it end in time?",
        "s",
        (
            (f"min by (campaign) (tidegate_campaign_eta_seconds{{{C}}})", "{{campaign}} left"),
            (
                f"max by (campaign) (tidegate_campaign_deadline_timestamp_seconds{{{C}}}) - time()",
                "{{campaign}} until the deadline",
            ),
        ),
    ),
    Panel(
        "Rows that will be late, and control phones",
        "How many will miss the deadline? Does a phone of our own wait for what was sent to it?",
        "short",
        (
            (f"max by (campaign) (tidegate_campaign_late_rows{{{C}}})", "{{campaign}} late rows"),
            (
                f"max by (campaign) (tidegate_campaign_control_undelivered_seconds{{{C}}})",
                "{{campaign}} control phone waits s",
            ),
        ),
    ),
    Panel(
        "Tries of the budget",
        "Are tries burnt on refusals?",
        "percentunit",
        (
            (
                f"max by (campaign) (tidegate_campaign_tries_total{{{C}}})"
                f" / max by (campaign) (tidegate_campaign_try_budget{{{C}}} > 0)",
                "{{campaign}}",
            ),
        ),
    ),
    Panel(
        "Refusals by code",
        "What does a campaign meet, in answers and in webhooks?",
        "cps",
        (
            (
                f"max by (campaign, code) (rate(tidegate_campaign_refusals_total{{{C}}}[{RATE}]))",
                "{{campaign}} {{code}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "Idle, and the books",
        "Does it move while rows are due? Do the twelve states add up (1)?",
        "short",
        (
            (f"min by (campaign) (tidegate_campaign_idle_seconds{{{C}}})", "{{campaign}} idle s"),
            (f"min by (campaign) (tidegate_campaign_books_balanced{{{C}}})", "{{campaign}} books balance"),
        ),
    ),
)

WEBHOOKS = (
    Panel(
        "Statuses applied",
        "Is the pulse there? About three for each message.",
        "cps",
        ((f"sum by (status) (rate(tidegate_statuses_total[{RATE}]))", "{{status}}"),),
        stacked=True,
    ),
    Panel(
        "Lag and inbox",
        "Are statuses applied as fast as they come?",
        "short",
        (
            ("max(tidegate_webhook_lag_seconds)", "lag s"),
            ("max(tidegate_webhook_inbox_bodies)", "bodies waiting"),
            ("max(tidegate_webhook_unmatched_statuses)", "unmatched statuses"),
        ),
    ),
    Panel(
        "Silence",
        "For how long has a sending number heard nothing?",
        "s",
        ((f"max by (number) (tidegate_webhook_silence_seconds{{{N}}})", "{{number}}"),),
    ),
    Panel(
        "Answers to webhooks",
        "Do we take what is posted? 401: wrong secret; 503: not stored.",
        "reqps",
        ((f"sum by (status) (rate(tidegate_webhook_answers_total[{RATE}]))", "{{status}}"),),
    ),
)

DATABASE = (
    Panel(
        "Statements",
        "Is the database as fast as it was?",
        "s",
        (
            (_quantiles("tidegate_mark_duration_seconds")[1][0], "marks p95"),
            (_quantiles("tidegate_result_batch_duration_seconds")[1][0], "batch of results p95"),
            (_quantiles("tidegate_status_batch_duration_seconds")[1][0], "batch of statuses p95"),
            (_quantiles("tidegate_database_round_trip_seconds")[1][0], "books p95"),
        ),
    ),
    Panel(
        "Oldest transaction",
        "Does somebody keep vacuum from working?",
        "s",
        (("max(tidegate_database_oldest_transaction_seconds)", "oldest snapshot"),),
    ),
    Panel(
        "Pool",
        "Do statements wait for a connection?",
        "short",
        (("max by (instance, state) (tidegate_database_pool_connections)", "{{instance}} {{state}}"),),
    ),
    Panel(
        "State and backlog",
        "Slow or away? Are answers waiting in memory?",
        "short",
        (
            ("max by (state) (tidegate_database_state)", "{{state}}"),
            ("sum(tidegate_results_backlog_rows)", "results in memory"),
        ),
    ),
)

NODES = (
    Panel(
        "Up",
        "Which nodes answer?",
        "short",
        (('up{job="tidegate"}', "{{instance}}"), ("max by (node) (tidegate_node_info)", "{{node}}")),
    ),
    Panel(
        "Owners",
        "Who sends from which number? How often does that change?",
        "short",
        (
            (f"max by (number, node) (tidegate_number_owner{{{N}}})", "{{number}} on {{node}}"),
            (f"changes(tidegate_number_lease_epoch{{{N}}}[1h])", "{{number}} take-overs"),
        ),
    ),
    Panel(
        "Loop lag",
        "Is the process short of CPU?",
        "s",
        _quantiles("tidegate_loop_lag_seconds", by="instance")[2:],
    ),
    Panel(
        "CPU and memory",
        "What does a node use?",
        "short",
        (
            (f'rate(process_cpu_seconds_total{{job="tidegate"}}[{RATE}])', "{{instance}} cores"),
            ('process_resident_memory_bytes{job="tidegate"} / 1e6', "{{instance}} MB"),
        ),
    ),
)

ROWS: tuple[tuple[str, Sequence[Panel]], ...] = (
    ("First look", FIRST),
    ("Alerts and stops", ALARMS),
    ("Campaigns", CAMPAIGNS),
    ("Webhooks", WEBHOOKS),
    ("Database", DATABASE),
    ("Nodes", NODES),
)
