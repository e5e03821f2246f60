"""All that a screen may see: one frozen value, replaced as a whole about twice a second.

Times are aware datetimes (UTC) or seconds; rates are messages per second; shares are 0..1.
A figure that is not known is None, never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

SERIES_SECONDS = 3600
"""Length of the per-second series that a snapshot carries (one hour, newest last)."""

SERIES_MINUTES = 360
"""Length of the per-minute series beside them: six hours."""

WINDOWS = (60, 300, 900, 3600, 21600)
"""Seconds back that a screen offers; what is kept "for each window" stands in this order."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of a duration, in seconds, over the last 60 s unless it says otherwise; `count` samples."""

    p50: float
    p95: float
    p99: float
    count: int


Points = tuple[tuple[float, ...], ...]
"""A figure's past: for each window at most 30 means of equal steps, oldest first; empty: not known."""

Spreads = tuple[Percentiles | None, ...]
"""A duration's percentiles over each window; empty: not known."""


@dataclass(frozen=True, slots=True)
class NumberPast:
    """What one number did during each window, as its owner remembers it."""

    accepted: Points = ()
    """Per second."""
    refused: Points = ()
    """Per second."""
    ceiling: Points = ()
    token_wait: Points = ()
    """p95, seconds."""
    waits: Spreads = ()
    """Token wait."""
    answers: Spreads = ()
    """The provider's latency."""
    error_share: tuple[float | None, ...] = ()
    """Refused / tries, 0..1."""
    top_error: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberView:
    """One business number, as its owner sees it."""

    id: str
    display: str
    account: str
    owner: str | None
    """Name of the owning node; None where none sends."""
    epoch: int
    state: str
    """The first that applies of: paused, held, waiting, slowed, active."""
    reason: str | None
    until: datetime | None
    """For `waiting`: when it ends."""
    rate: float
    limit: float
    ceiling: float
    accepted_last_second: int
    tries_last_second: int
    sent_per_second: float
    """Accepted messages per second, mean of the last 5 whole seconds."""
    tries_per_second: float
    token_wait: Percentiles | None
    latency: Percentiles | None
    bound_by: str
    """What keeps it from sending faster: bucket, rows, slots, database, provider, hold, or a silent node's lease."""
    in_flight: int
    pending: int
    """Pending rows of the campaigns that it serves."""
    stuck: int
    """Rows in `sending` for more than 120 s."""
    unknown: int
    error_share: float | None
    """Refused answers / all answers, last 5 minutes."""
    top_error: int | None
    last_accepted_s: float | None
    """Seconds since the last accepted message."""
    campaigns: tuple[str, ...] = ()
    accepted_series: tuple[float, ...] = ()
    """Accepted per second, last 60 s, newest last."""
    throttled_share: float | None = None
    """Throughput refusals / tries, last 60 s."""
    granted: float | None = None
    """Accepted messages per second, mean of the last 60 s: while throttled, what the provider really grants."""
    silence_s: float | None = None
    """Seconds for which accepted messages have waited for any status; None while statuses arrive."""
    unknown_growth: int = 0
    """Rows that became unknown, net, within the last ten minutes."""
    lease_lost_s: float | None = None
    """Seconds since this node lost the number's lease; None: never."""
    use: float | None = None
    """Accepted / what the rate allowed in the same 5 s, 0..1: the rate may have changed within them."""
    past: NumberPast = NumberPast()
    away: bool = False
    """Another node sends from it: names alone cannot tell, one that was started anew has the name of the dead one."""


@dataclass(frozen=True, slots=True)
class CampaignView:
    """One campaign with its books."""

    name: str
    state: str
    reason: str | None
    planned: int
    counts: Mapping[str, int]
    """Each of the twelve states, by name."""
    accepted: int
    tries: int
    attempts: int
    possible_duplicates: int
    rate: float
    """Sum of the rates of its numbers that are neither paused nor held."""
    eta_s: float | None
    """Seconds until nothing is pending at the pace of the last minute, quiet hours included; None when it does not
    move."""
    started_at: datetime | None
    finished_at: datetime | None
    deadline: datetime | None
    try_budget: int = 0
    """Tries after which it is held; 0: not known."""
    idle_s: float = 0.0
    """Seconds since a row was settled, while it runs and rows are due; else 0."""
    delivered_share: float | None = None
    """Delivered or read, of a sample of its sends older than 15 min; None without enough of them."""
    delivered_norm: float | None = None
    """The best such share that this campaign has shown, or the one assumed until then."""
    late: int | None = None
    """Rows that cannot be met before the deadline as things stand, and will expire; None without a deadline."""
    waits: tuple[str, ...] = ()
    """What rows wait for that does not come by itself in a moment: ends of sentences that begin with "waits for"."""
    controls: tuple["ControlView", ...] = ()
    """Its control phones that wait for a message which has left."""
    past: Mapping[str, Points] = field(default_factory=dict)
    """By the names of engine.domain.recall.OF_A_CAMPAIGN; empty where nothing is kept."""


@dataclass(frozen=True, slots=True)
class ControlView:
    """A control phone that has not got what was sent to it."""

    phone: str
    """Masked."""
    round: int
    state: str
    """Of the latest message, as a row's."""
    waiting_s: float


@dataclass(frozen=True, slots=True)
class HoldView:
    """A stop that needs a person: of a number, account, credential, template or country."""

    scope: str
    key: str
    """Meta's number id; the account; the token's reference; account/name/language; account/country."""
    code: int | None
    reason: str | None
    since: datetime | None
    id: int | None = None
    """By which it can be lifted; None: a number that the engine paused, which is resumed."""


@dataclass(frozen=True, slots=True)
class OldTransaction:
    """Whoever holds a snapshot of our database open for longest."""

    pid: int
    age_s: float
    application: str


@dataclass(frozen=True, slots=True)
class ErrorView:
    """One error code over the last five minutes, unless it says otherwise."""

    code: int
    title: str
    scope: str
    count: int
    trend: tuple[int, ...]
    """Counts per tenth of that time, oldest first, newest last."""


@dataclass(frozen=True, slots=True)
class Past:
    """What the node did during each window."""

    figures: Mapping[str, Points] = field(default_factory=dict)
    """By the names of engine.domain.recall.FIGURES."""
    token_wait: Spreads = ()
    """Of the worst number, as `latency`."""
    latency: Spreads = ()
    claim_time: Spreads = ()
    commit_time: Spreads = ()
    sent_to_delivered: Spreads = ()
    errors: tuple[tuple[ErrorView, ...], ...] = ()
    """For each window; their trends have ten values."""


@dataclass(frozen=True, slots=True)
class StuckBand:
    """Rows in `sending` for longer than 120 s, of one age band."""

    label: str
    """2-5m, 5-30m, >30m."""
    count: int
    by_number: tuple[tuple[str, int], ...]
    oldest_s: float


@dataclass(frozen=True, slots=True)
class AlertView:
    """Something that a person should know; latched until acknowledged."""

    key: str
    """(kind, target) as one word: the same alert keeps its key."""
    severity: str
    """critical or warning."""
    target: str
    cause: str
    advice: str
    since: datetime
    active: bool
    """False: recovered, shown until acknowledged."""
    acknowledged: bool
    runbook: str = ""
    """Path of the page that says what to do, below the repository's root."""
    author: str = "auto"
    """Who is behind it: the engine; for an acknowledged one, who took it on."""
    cleared_at: datetime | None = None
    """When its cause was last there; None while it stands."""


@dataclass(frozen=True, slots=True)
class EventView:
    """One line of the event log: an act of a person or of the engine."""

    at: datetime
    author: str
    text: str


@dataclass(frozen=True, slots=True)
class ActView:
    """An operator's act on its way: sent, then acknowledged, then in effect (or refused)."""

    id: str
    text: str
    """RATE …0017 100→80"""
    stage: str
    """sent, acknowledged, in effect, refused."""
    ack_ms: float | None
    """From the submit to the acknowledgement."""
    detail: str
    """Why it was refused; or the result, in a few words."""
    undo: bool
    """Whether u may take it back now."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """One process of the engine, as a viewer of many sees it."""

    name: str
    host: str
    pid: int
    age_s: float
    """Of what it published last."""
    alive: bool
    """False: it has been silent for so long that nothing it said is shown as true any more."""
    draining: bool
    numbers: tuple[str, ...]
    """Meta's ids of the numbers that it owns, or owned."""
    sent_per_second: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class ReconcilePreview:
    """What a reconcile would do (or did), for one campaign or all."""

    to_sent: int
    to_pending: int
    """Resent by policy: each a possible duplicate."""
    stay_unknown: int
    waiting: int
    """Their window has not passed yet."""
    stuck_to_unknown: int
    note: str
    conditions: tuple[str, ...] = ()
    """What else the rows wait for, a sentence for each number and condition."""
    first: datetime | None = None
    """When the first window of the rows that wait for one ends, and the last."""
    last: datetime | None = None
    then: tuple[tuple[str, int], ...] = ()
    """Those rows by their policy, which acts when no evidence came by then."""

    @property
    def unknown(self) -> int:
        """All rows in unknown that were looked at."""
        return self.to_sent + self.to_pending + self.stay_unknown + self.waiting


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one node, or of all nodes when attached, at one moment."""

    at: datetime
    seq: int
    node: str
    host: str
    pid: int
    uptime_s: float
    author: str
    """Whom acts from this screen are journalled to: user@peer."""
    read_only: bool
    draining: bool
    numbers: tuple[NumberView, ...] = ()
    campaigns: tuple[CampaignView, ...] = ()
    errors: tuple[ErrorView, ...] = ()
    stuck: tuple[StuckBand, ...] = ()
    unknown: int = 0
    last_reconcile: str | None = None
    """03:02 118→0"""
    alerts: tuple[AlertView, ...] = ()
    events: tuple[EventView, ...] = ()
    """Newest first; those of the last six hours, at most 500 (50 when attached)."""
    acts: tuple[ActView, ...] = ()
    """Newest first, at most 20."""
    accepted_series: tuple[float, ...] = ()
    """Accepted per second over all numbers, newest last, at most SERIES_SECONDS."""
    tries_series: tuple[float, ...] = ()
    rate_series: tuple[float, ...] = ()
    """Configured rate (sum over numbers that may send), per second, aligned with accepted_series."""
    token_wait_series: tuple[float, ...] = ()
    """p95 of the worst number, per second, seconds (0 where nothing waited)."""
    token_wait_median_series: tuple[float, ...] = ()
    accepted_minutes: tuple[float, ...] = ()
    """Means of whole minutes of the series above, newest last, at most SERIES_MINUTES."""
    rate_minutes: tuple[float, ...] = ()
    token_wait_minutes: tuple[float, ...] = ()
    token_wait_median_minutes: tuple[float, ...] = ()
    token_wait: Percentiles | None = None
    claim_time: Percentiles | None = None
    commit_time: Percentiles | None = None
    """Of mark and result statements."""
    latency: Percentiles | None = None
    sent_to_delivered: Percentiles | None = None
    webhook_lag_s: float | None = None
    """Age of the oldest webhook body that is stored and not applied yet; 0 when drained."""
    inbox_backlog: int = 0
    database: str = "ok"
    """ok, slow, away."""
    in_flight: int = 0
    loop_lag_s: float = 0.0
    memory_mb: float = 0.0
    reconcile: Mapping[str, ReconcilePreview] = field(default_factory=dict)
    """Answers to reconcile acts, by act id."""
    holds: tuple[HoldView, ...] = ()
    oldest_transaction: OldTransaction | None = None
    blocker: OldTransaction | None = None
    """Whoever held the lock that our commits have waited for of late."""
    results_backlog: int = 0
    """Answers in memory that are not in the database yet."""
    version: int = -1
    """Of the desired state that the node follows: every act raises it."""
    attached: bool = False
    """A viewer's picture of many nodes; `node` then says how many of them live, host and pid are the viewer's."""
    nodes: tuple[NodeView, ...] = ()
    """When attached: all nodes, the dead ones too; empty for a single engine's own snapshot."""
    lost: tuple[NodeView, ...] = ()
    """Other nodes that died with numbers in their hands, which stand still until another takes them."""
    past: Past = Past()
