"""What one tick hands to the widgets: a frozen snapshot, how fresh it is, and what the viewer chose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from console.format import UTF8, Glyphs, clean, masked
from console.rows import ORDERS, Order, Rows
from engine.domain.snapshot import ActView, AlertView, CampaignView, NumberView, Snapshot

STALE_AFTER_S = 2.0
PACE_S = 5
"""Seconds that a pace is a mean of."""
WINDOWS: tuple[tuple[str, int], ...] = (("1m", 60), ("5m", 300), ("15m", 900), ("1h", 3600), ("6h", 21600))
ENDED = ("finished", "cancelled")
ACTIVE = ("running", "held", "paused")
_RANK = (*ACTIVE, "scheduled", "draft", *ENDED)


@dataclass(frozen=True, slots=True)
class Freshness:
    """LIVE, STALE or FROZEN (or NONE before the first snapshot), with the age of what is shown, in seconds."""

    word: str
    age_s: float


def freshness(at: datetime, now: datetime, unchanged_s: float, frozen: bool) -> Freshness:
    """The larger of the age by the clock and the time since the last change: a dead engine cannot look live."""
    seconds = max(0.0, (now - at).total_seconds(), unchanged_s)
    if frozen:
        return Freshness("FROZEN", seconds)
    return Freshness("LIVE" if seconds <= STALE_AFTER_S else "STALE", seconds)


@dataclass(frozen=True, slots=True)
class Headline:
    """The campaign that row 1 speaks of, its state in capitals, and what the others do."""

    name: str
    word: str
    others: str


def headline(snapshot: Snapshot, ended: str | None, glyphs: Glyphs = UTF8) -> Headline:
    """A running campaign first, then the one that needs a person most, then the last one that ended: it stays until
    another runs, whatever drafts there are. The process's own end wins over all."""
    ranked = headed(snapshot) + [c for c in open_campaigns(snapshot) if c.state not in ACTIVE]
    name = clean(ranked[0].name, glyphs) if ranked else "no campaign"
    word = ranked[0].state.upper() if ranked else "IDLE"
    if snapshot.draining:
        word = "DRAINING"
    if nobody_lives(snapshot):
        word = "NO NODE"
    if ended is not None:
        word = "STOPPED"
    counts: dict[str, int] = {}
    for campaign in ranked[1:]:
        counts[campaign.state] = counts.get(campaign.state, 0) + 1
    return Headline(name, word, " ".join(f"+{n} {state}" for state, n in counts.items()))


def headed(snapshot: Snapshot) -> list[CampaignView]:
    """Those that rows 1 to 4 speak of: all that are started and not over, else the last one that ended; without
    either nothing."""
    active = [c for c in open_campaigns(snapshot) if c.state in ACTIVE]
    ended = [c for c in snapshot.campaigns if c.state in ENDED and c.started_at is not None]
    return active or sorted(ended, key=_ended_at)[-1:]


def _ended_at(campaign: CampaignView) -> tuple[float, str]:
    return (campaign.finished_at.timestamp() if campaign.finished_at is not None else 0.0, campaign.name)


def _rank(campaign: CampaignView) -> tuple[int, str]:
    return (_RANK.index(campaign.state) if campaign.state in _RANK else len(_RANK), campaign.name)


def open_campaigns(snapshot: Snapshot) -> list[CampaignView]:
    """Campaigns that have not ended, in the order of the headline."""
    return sorted((c for c in snapshot.campaigns if c.state not in ENDED), key=_rank)


@dataclass(frozen=True, slots=True)
class Totals:
    """Over the campaigns that the headline speaks of (over all, when none was ever started)."""

    sent: int
    planned: int
    pending: int
    unknown: int
    failed: int
    delivered: int
    """Delivered or read."""
    stuck: int
    eta_s: float | None
    sent_per_s: float
    tries_per_s: float
    rate: float
    """Configured, of the numbers that may send and that this screen sees sending."""
    use: float | None
    """Sent / what was configured in the same seconds: after a pause the one falls as the other does."""


def totals(snapshot: Snapshot) -> Totals:
    """Sums for the progress lines; an ETA is that of the last campaign to end, None when one stands still."""
    campaigns = headed(snapshot) or list(snapshot.campaigns)
    moving = [c.eta_s for c in campaigns if c.state == "running"]
    known = [eta for eta in moving if eta is not None]
    seen = [n for n in snapshot.numbers if not elsewhere(n, snapshot)]
    sent = sum(n.sent_per_second for n in snapshot.numbers)
    recent = snapshot.rate_series[-PACE_S:]
    configured = sum(recent) / len(recent) if recent else 0.0
    return Totals(
        sent=sum(c.accepted for c in campaigns),
        planned=sum(c.planned for c in campaigns),
        pending=sum(c.counts.get("pending", 0) for c in campaigns),
        unknown=snapshot.unknown,
        failed=sum(c.counts.get("failed", 0) for c in campaigns),
        delivered=sum(c.counts.get("delivered", 0) + c.counts.get("read", 0) for c in campaigns),
        stuck=sum(b.count for b in snapshot.stuck),
        eta_s=max(known) if known and len(known) == len(moving) else None,
        sent_per_s=sent,
        tries_per_s=sum(n.tries_per_second for n in snapshot.numbers),
        rate=sum(n.rate for n in seen if n.state not in ("paused", "held")),
        use=min(1.0, sent / configured) if configured else None,
    )


def differs(sent: float, tries: float) -> bool:
    """Whether tries are more than what is accepted; a few answers that are just on their way do not count."""
    return tries - sent >= max(0.5, sent * 0.03)


def elsewhere(number: NumberView, snapshot: Snapshot) -> bool:
    """Whether another node sends from it: this one then knows neither its pace nor its waits."""
    return number.away and not snapshot.attached


def unattended(number: NumberView) -> bool:
    """Whether no living node sends from it: nobody knows its pace or its waits."""
    return number.bound_by in ("no node", "lease")


def nobody_lives(snapshot: Snapshot) -> bool:
    """Whether an attached viewer sees no living node: what is shown are rows of the database."""
    return snapshot.attached and not any(node.alive for node in snapshot.nodes)


def ranked_alerts(snapshot: Snapshot) -> list[AlertView]:
    """What needs a person first: not acknowledged, still active, critical, newest."""
    return sorted(
        snapshot.alerts,
        key=lambda a: (a.acknowledged, not a.active, a.severity != "critical", -a.since.timestamp(), a.key),
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """All that a widget gets. `snapshot` is None before the engine's first."""

    snapshot: Snapshot | None
    now: datetime
    freshness: Freshness
    ended: str | None = None
    glyphs: Glyphs = UTF8
    rows: Rows = field(default_factory=lambda: Rows((), 0, 0))
    labels: Mapping[str, str] = field(default_factory=dict)
    """Number id -> masked name."""
    cursor: str | None = None
    order: Order = ORDERS[0]
    filter: str = ""
    window: int = 1
    """Index into WINDOWS."""
    staged: Mapping[str, float] = field(default_factory=dict)
    alert: str | None = None
    """Key of the alert that `a` acknowledges."""
    act: ActView | None = None
    """The newest act from this screen, known here before the engine speaks of it."""
    notice: str = ""
    fault: str = ""
    waiting_s: float = 0.0
    """Before the first snapshot: for how long."""

    def number(self, number_id: str | None) -> NumberView | None:
        """By id, also when the filter hides it."""
        if self.snapshot is None:
            return None
        return next((n for n in self.snapshot.numbers if n.id == number_id), None)

    def label(self, number_id: str) -> str:
        """The masked name of a number."""
        return self.labels.get(number_id, clean(number_id, self.glyphs))

    def text(self, outside: str) -> str:
        """Text from outside for one line: harmless, and with phone numbers masked."""
        return masked(outside, self.labels, self.glyphs)

    @property
    def span(self) -> str:
        """The chosen window in a word: 5m."""
        return WINDOWS[self.window][0]


def act_line(act: ActView, frame: Frame) -> str:
    """act#a42 RATE …0017 100→80 ack 18ms → in effect ✓"""
    glyphs = frame.glyphs
    ack = f"ack {act.ack_ms:.0f}ms" if act.ack_ms is not None else "ack"
    steps = {
        "sent": f"sent {glyphs.arrow} ?",
        "acknowledged": f"{ack} {glyphs.arrow} ?",
        "in effect": f"{ack} {glyphs.arrow} in effect {glyphs.tick}",
        "refused": f"REFUSED {glyphs.cross}",
    }
    stage = steps.get(act.stage) or frame.text(act.stage)
    detail = f" {frame.text(act.detail)}" if act.detail else ""
    return f"act#{frame.text(act.id)} {frame.text(act.text)} {stage}{detail}"
