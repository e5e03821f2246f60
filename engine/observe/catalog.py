"""Every metric that a node exports: name, kind, labels, what it says and what a change in it means.

Names and units follow Prometheus' conventions. Labels are bounded: numbers, campaigns, codes, nodes and fixed words;
never anything of a recipient. docs/observability.md is made from this table.
"""

from dataclasses import dataclass

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One family. `change`: what it means, for people, when the figure moves."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    change: str

    @property
    def unit(self) -> str:
        """As the name says it, for people."""
        for ending, unit in _UNITS.items():
            if self.name.removesuffix("_total").endswith(ending):
                return unit
        return "count" if self.kind == COUNTER else "1"


_UNITS = {
    "_messages_per_second": "messages/s",
    "_timestamp_seconds": "s since 1970",
    "_seconds": "s",
    "_rows": "rows",
    "_bytes": "bytes",
    "_share": "0..1",
    "_bodies": "bodies",
    "_statuses": "statuses",
    "_requests": "requests",
    "_connections": "connections",
    "_tries": "tries",
    "_sends": "sends",
}

NUMBER_METRICS = (
    Metric(
        "tidegate_sends_total", COUNTER, ("number", "outcome", "code"),
        "Stored results of this node's tries by outcome (accepted, refused, unknown, not_sent, withdrawn) and code.",
        "Sum it over nodes. `accepted` is what people pay for; one growing code names the trouble; `unknown` growing "
        "means that answers do not come back; `not_sent` means that the provider cannot be reached.",
    ),
    Metric(
        "tidegate_throttled_sends_total", COUNTER, ("number",),
        "Of these, refused because the number, its account or its app sends too fast (130429, 80007, 4, 613, any 429).",
        "A burst passes unaided. Steady above 2 %: the grant is lower than the rate.",
    ),
    Metric(
        "tidegate_number_rate_messages_per_second", GAUGE, ("number",),
        "Configured rate: what campaigns may take from the number.",
        "Moves only by an act of a person (the journal says whose).",
    ),
    Metric(
        "tidegate_number_ceiling_messages_per_second", GAUGE, ("number",),
        "What the engine believes is granted right now; never above the rate.",
        "Below the rate: the provider throttles. It grows back by itself when the grant returns.",
    ),
    Metric(
        "tidegate_number_provider_limit_messages_per_second", GAUGE, ("number",),
        "What the provider grants the number, inbound counted in.",
        "The distance to the rate is the headroom for conversations.",
    ),
    Metric(
        "tidegate_number_state", GAUGE, ("number", "state"),
        "1 for the state that the number is in: paused, held, waiting, slowed, active.",
        "`held` needs a person; `waiting` and `slowed` pass by themselves.",
    ),
    Metric(
        "tidegate_number_bound", GAUGE, ("number", "by"),
        "1 for what keeps the number from sending faster: bucket, rows, slots, database, provider, hold, lease.",
        "`bucket` is the normal one: the rate itself. `provider`: it grants less, or asked for silence. "
        "`lease`: that of a silent node must run out first. "
        "`database` or `slots` for long: we are the slowest part.",
    ),
    Metric(
        "tidegate_number_owner", GAUGE, ("number", "node"),
        "1 for the node that holds the number's lease.",
        "A change of node is a take-over; two nodes at once last no longer than a scrape.",
    ),
    Metric(
        "tidegate_number_lease_epoch", GAUGE, ("number",),
        "Epoch of the number's lease; grows at each take-over.",
        "`changes()` over an hour above a few: owners come and go; look at lease_lost and at the database.",
    ),
    Metric(
        "tidegate_leases_lost_total", COUNTER, ("number",),
        "Leases that this node could not renew in time.",
        "Any increase: a stalled process, a slow database, a network cut. Nothing was sent meanwhile.",
    ),
    Metric(
        "tidegate_number_in_flight_requests", GAUGE, ("number",),
        "Requests that have left and are not answered.",
        "Near rate x latency. Climbing at a constant rate: answers get slower.",
    ),
    Metric(
        "tidegate_token_wait_seconds", HISTOGRAM, ("number",),
        "From a row ready in memory to its permit.",
        "About a quarter of a second at full rate; seconds when the ceiling is low; nothing when rows are short.",
    ),
    Metric(
        "tidegate_api_latency_seconds", HISTOGRAM, ("number",),
        "From a request's leaving to its answer.",
        "The provider's speed. Twice the usual p95 costs slots, and near the deadline rows become unknown.",
    ),
    Metric(
        "tidegate_number_claimed_rows", GAUGE, ("number",),
        "Rows reserved for the number of which no request has left.",
        "About a quarter of a second of work; more for long: marks do not come through.",
    ),
    Metric(
        "tidegate_number_sending_rows", GAUGE, ("number", "age"),
        "Rows whose request has left and is not settled, by age: 0-2m, 2-5m, 5-30m, over-30m.",
        "Anything above two minutes is stuck and becomes unknown by itself.",
    ),
    Metric(
        "tidegate_number_sending_oldest_seconds", GAUGE, ("number",),
        "Age of the oldest row in `sending`.",
        "Above the request deadline + 30 s something does not settle.",
    ),
    Metric(
        "tidegate_number_unknown_rows", GAUGE, ("number",),
        "Rows of which nobody knows whether the provider took them.",
        "Falls by evidence (webhooks) or by the campaign's policy. Growing: see unknown_growing.",
    ),
    Metric(
        "tidegate_webhook_silence_seconds", GAUGE, ("number",),
        "For how long at least ten accepted messages have waited for any status; 0 while statuses arrive.",
        "Above a minute or two: webhooks do not reach us, and nobody knows who got the message.",
    ),
)  # fmt: skip

CAMPAIGN_METRICS = (
    Metric(
        "tidegate_campaign_state", GAUGE, ("campaign", "state"),
        "1 for the campaign's state: draft, scheduled, running, paused, held, finished, cancelled.",
        "`held`: the engine stopped it and needs a person.",
    ),
    Metric(
        "tidegate_campaign_rows", GAUGE, ("campaign", "state"),
        "Rows in each of the twelve states, from the books. The same on every node: take the maximum.",
        "The funnel. `sent` growing while `delivered` stands is the incident that a count of sends hides.",
    ),
    Metric(
        "tidegate_campaign_planned_rows", GAUGE, ("campaign",),
        "Rows that imports gave to the campaign.",
        "Equals the sum of the twelve states, always.",
    ),
    Metric(
        "tidegate_campaign_books_balanced", GAUGE, ("campaign",),
        "1 when the twelve states add up to what was planned.",
        "0: an invariant is broken.",
    ),
    Metric(
        "tidegate_campaign_held_rows", GAUGE, ("campaign",),
        "Pending rows of a campaign that is held.",
        "Work that waits for a person.",
    ),
    Metric(
        "tidegate_campaign_accepted_total", COUNTER, ("campaign",),
        "Messages that the provider accepted.",
        "Its rate against the numbers' rates is the use of what is granted.",
    ),
    Metric(
        "tidegate_campaign_tries_total", COUNTER, ("campaign",),
        "Requests that left.",
        "Grows faster than accepted: refusals and throttles cost tries.",
    ),
    Metric(
        "tidegate_campaign_attempts_total", COUNTER, ("campaign",),
        "Definite answers about messages.",
        "Attempts above accepted are refusals of messages; throttles are in tries alone.",
    ),
    Metric(
        "tidegate_campaign_try_budget", GAUGE, ("campaign",),
        "Tries after which the campaign is held.",
        "Compare with tries.",
    ),
    Metric(
        "tidegate_campaign_possible_duplicates_total", COUNTER, ("campaign",),
        "Second requests that left by policy or by a person, without proof that the first was not taken.",
        "0 with the default policy.",
    ),
    Metric(
        "tidegate_campaign_refusals_total", COUNTER, ("campaign", "code"),
        "Refusals by the provider's code, in answers and in webhooks.",
        "Which code a campaign meets; its meaning: docs of the error table, or the console's errors panel.",
    ),
    Metric(
        "tidegate_campaign_failed_rows", GAUGE, ("campaign", "code"),
        "Rows that are failed now, by code.",
        "Falls when a late `delivered` wins, or when a person retries.",
    ),
    Metric(
        "tidegate_campaign_idle_seconds", GAUGE, ("campaign",),
        "Seconds since a row was settled, counted only while the campaign runs and rows are due.",
        "Seconds at most. Minutes: it does not move, whatever runs.",
    ),
    Metric(
        "tidegate_campaign_delivered_share", GAUGE, ("campaign",),
        "Delivered or read, of a sample of the sends that are 15 to 20 minutes old.",
        "Falls when messages are accepted and do not arrive, or when webhooks are lost.",
    ),
    Metric(
        "tidegate_campaign_delivered_norm_share", GAUGE, ("campaign",),
        "The best such share that the campaign has shown to this node, or the one assumed until then.",
        "What the share is compared with.",
    ),
    Metric(
        "tidegate_campaign_eta_seconds", GAUGE, ("campaign",),
        "Seconds until nothing is pending at the pace of the last minute; missing while nothing moves.",
        "Growing while it runs: the pace falls.",
    ),
    Metric(
        "tidegate_campaign_late_rows", GAUGE, ("campaign",),
        "Rows that will miss the deadline even at the full rate, and expire; missing without a deadline.",
        "Above 0: more rate, more numbers, a higher priority or a later deadline; quiet hours are taken off already.",
    ),
    Metric(
        "tidegate_campaign_control_undelivered_seconds", GAUGE, ("campaign",),
        "For how long the control phone that waits longest has had nothing of what was sent to it; 0 when none waits.",
        "Minutes: a phone that is off, or messages that do not arrive. See control_undelivered.",
    ),
    Metric(
        "tidegate_campaign_deadline_timestamp_seconds", GAUGE, ("campaign",),
        "When the campaign's rows expire; missing without a deadline.",
        "Compare with time() + the estimate.",
    ),
)  # fmt: skip

SYSTEM_METRICS = (
    Metric(
        "tidegate_delivery_delay_seconds", HISTOGRAM, (),
        "From a message's sending to its delivery, of the statuses that this node applied.",
        "Depends on phones being on. A shift of the median of minutes is the network or the provider.",
    ),
    Metric(
        "tidegate_webhook_lag_seconds", GAUGE, (),
        "Age of the oldest webhook body that is stored and not applied; 0 when drained.",
        "Growing: statuses come faster than they are applied, or the database is slow.",
    ),
    Metric(
        "tidegate_webhook_inbox_bodies", GAUGE, (),
        "Webhook bodies that are stored and not applied, counted up to 100,000.",
        "As the lag.",
    ),
    Metric(
        "tidegate_webhook_bodies_total", COUNTER, ("result",),
        "Bodies that this node took from the inbox: applied, unparsable, refused (by the database).",
        "`unparsable` or `refused` growing: look at the inbox, the provider changed something.",
    ),
    Metric(
        "tidegate_webhook_answers_total", COUNTER, ("status",),
        "Webhook requests that this node answered, by HTTP status.",
        "401 growing: a wrong app secret, or somebody else knocks. 503: bodies cannot be stored.",
    ),
    Metric(
        "tidegate_statuses_total", COUNTER, ("status",),
        "Statuses about rows of ours that this node applied, after folding.",
        "The pulse of the webhooks: about three a message.",
    ),
    Metric(
        "tidegate_webhook_unmatched_statuses", GAUGE, (),
        "Statuses that name a message of ours which is not stored yet, of the last page looked at.",
        "A moment's handful is normal. Standing: results are not written.",
    ),
    Metric(
        "tidegate_webhook_foreign_statuses_total", COUNTER, (),
        "Statuses of messages that others sent.",
        "Another sender shares the number; its messages count against the limit.",
    ),
    Metric(
        "tidegate_status_batch_duration_seconds", HISTOGRAM, (),
        "Time to take and apply one batch of webhook bodies.",
        "Tens of milliseconds. Growing: the database.",
    ),
    Metric(
        "tidegate_claim_duration_seconds", HISTOGRAM, (),
        "Time of one claim of ready rows.",
        "Milliseconds. Growing with the backlog: vacuum is held back (see the oldest transaction), or a plan changed.",
    ),
    Metric(
        "tidegate_mark_duration_seconds", HISTOGRAM, (),
        "Time to mark one group of rows as sending, before their requests leave.",
        "A commit's time. It delays every send; above some 50 ms sending slows down by itself.",
    ),
    Metric(
        "tidegate_result_batch_duration_seconds", HISTOGRAM, (),
        "Time to write one batch of results.",
        "A commit's time. Growing: the database; results then wait in memory.",
    ),
    Metric(
        "tidegate_results_backlog_rows", GAUGE, (),
        "Answers in this node's memory that are not in the database.",
        "Bounded by the requests in flight. Standing: results cannot be written.",
    ),
    Metric(
        "tidegate_database_state", GAUGE, ("state",),
        "1 for the state of the database as this node sees it: ok, slow, away.",
        "`away` stops sending; nothing is lost.",
    ),
    Metric(
        "tidegate_database_round_trip_seconds", HISTOGRAM, (),
        "Time to read the books, once a second.",
        "Milliseconds. Above a quarter of a second the database counts as slow.",
    ),
    Metric(
        "tidegate_database_pool_connections", GAUGE, ("state",),
        "Connections of this node's pool: used, idle, and max, how many it may open.",
        "All used for long: statements wait for a connection.",
    ),
    Metric(
        "tidegate_database_oldest_transaction_seconds", GAUGE, (),
        "Age of the oldest snapshot that anybody else holds open.",
        "Minutes: vacuum removes nothing, claims get slower. The console names the pid.",
    ),
    Metric(
        "tidegate_held", GAUGE, ("scope", "key"),
        "1 for each stop that needs a person: of a number, account, credential, template or country.",
        "It goes when the hold is lifted.",
    ),
    Metric(
        "tidegate_alert_active", GAUGE, ("alert", "subject", "severity"),
        "1 for each alert that the node's own console shows as active.",
        "The same rules as Prometheus' own; a lasting difference means that one of them is not up to date.",
    ),
    Metric(
        "tidegate_node_info", GAUGE, ("node", "host", "version"),
        "1, with the node's name.",
        "One for each node.",
    ),
    Metric(
        "tidegate_node_draining", GAUGE, (),
        "1 while the node is on its way out.",
        "Longer than the grace: a request or the database does not let go.",
    ),
    Metric(
        "tidegate_loop_lag_seconds", HISTOGRAM, (),
        "How late the engine's loop wakes whoever waits for a moment.",
        "Milliseconds. p99 above 50 ms: the process is short of CPU.",
    ),
)  # fmt: skip

METRICS: dict[str, Metric] = {m.name: m for m in (*NUMBER_METRICS, *CAMPAIGN_METRICS, *SYSTEM_METRICS)}
