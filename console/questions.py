"""Which acts ask first, what the dialog says (live facts), and what must not change while it is open."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from console.format import Glyphs, clean, eta, masked, number, percent, rate
from console.frame import open_campaigns, totals
from console.rates import must_ask
from engine.domain.act import (
    Act,
    CancelCampaign,
    LiftHold,
    PauseAll,
    ResumeAll,
    ResumeCampaign,
    ResumeNumber,
    RetryFailed,
    SetRate,
    StopEngine,
)
from engine.domain.snapshot import HoldView, NumberView, Snapshot

Facts = Callable[[Snapshot], list[str]]


@dataclass(frozen=True, slots=True)
class Question:
    """A y/n question about one act. `mark` of the snapshot must be the same at the answer as at the question, once what
    this screen did before is done."""

    title: str
    act: Act
    facts: Facts
    mark: Callable[[Snapshot], Hashable]
    with_reason: Callable[[str], Act] | None = None
    """The act with a reason for the journal; None: it takes none, and y alone does it."""


@dataclass(frozen=True, slots=True)
class TypedQuestion:
    """Asks for a name out of `names`, then for a reason; `act` takes the reason."""

    title: str
    names: tuple[str, ...]
    act: Callable[[str], Act]
    facts: Facts


def question(act: Act, snapshot: Snapshot, label: Callable[[str], str], glyphs: Glyphs) -> Question | None:
    """The question to ask before `act`, or None when it may happen at once (L0)."""
    if isinstance(act, ResumeAll):
        return Question("RESUME ALL", act, _resume_all_facts, _paused)
    if isinstance(act, ResumeCampaign):
        name = clean(act.campaign, glyphs)
        return Question(
            f"RESUME CAMPAIGN {name}",
            act,
            lambda s: _resume_campaign_facts(s, act.campaign, glyphs),
            lambda s: _of_campaign(s, act.campaign),
        )
    if isinstance(act, LiftHold):
        title = f"LIFT THE HOLD OF {masked(act.target, {}, glyphs)}"
        return Question(
            title,
            act,
            lambda s: _hold_facts(s, act.hold, glyphs),
            lambda s: _hold(s, act.hold),
            lambda reason: LiftHold(act.hold, act.target, reason),
        )
    if not isinstance(act, ResumeNumber | SetRate):
        return None
    target = find(snapshot, act.number)
    if target is None:
        return None
    name = label(act.number)
    if isinstance(act, SetRate):
        if not must_ask(target, act.rate):
            return None
        title = f"RATE {name} {rate(target.rate)}{glyphs.arrow}{rate(act.rate)}"
        return Question(title, act, lambda s: _rate_facts(s, act, glyphs), lambda s: _mark(s, act.number))
    if target.state == "paused":
        return None
    title = f"RESUME {name} AFTER A HOLD"
    return Question(
        title,
        act,
        lambda s: _resume_facts(s, act.number, glyphs),
        lambda s: _mark(s, act.number),
        lambda reason: ResumeNumber(act.number, reason),
    )


def stop_question(snapshot: Snapshot, glyphs: Glyphs) -> TypedQuestion:
    """Q."""
    node = f"{clean(snapshot.node, glyphs)} on {clean(snapshot.host, glyphs)}, process {snapshot.pid}"
    return TypedQuestion(f"STOP THE ENGINE: {node}", typed_names(snapshot), StopEngine, _stop_facts)


def cancel_question(name: str, glyphs: Glyphs) -> TypedQuestion:
    """x on a campaign."""
    return TypedQuestion(
        f"CANCEL CAMPAIGN {clean(name, glyphs)}: for ever",
        (name,),
        lambda reason: CancelCampaign(name, reason),
        lambda s: [
            *_campaign_facts(s, name, glyphs),
            "Pending rows are cancelled; what has left stays open until settled.",
        ],
    )


def retry_question(name: str, glyphs: Glyphs) -> TypedQuestion:
    """F on a campaign."""
    return TypedQuestion(
        f"RETRY THE FAILED ROWS OF {clean(name, glyphs)}",
        (name,),
        lambda reason: RetryFailed(name, reason),
        lambda s: [
            *_campaign_facts(s, name, glyphs),
            "Rows whose failure may pass are sent once more; people without WhatsApp are not.",
        ],
    )


def pause_all_question(snapshot: Snapshot, glyphs: Glyphs) -> TypedQuestion:
    """P."""
    return TypedQuestion(
        "PAUSE EVERYTHING", typed_names(snapshot), PauseAll, lambda s: _pause_all_facts(s, glyphs)
    )


def typed_names(snapshot: Snapshot) -> tuple[str, ...]:
    """`all`, and the campaign's name when there is only one: with several, a name would promise too little."""
    campaigns = open_campaigns(snapshot) or snapshot.campaigns
    return (campaigns[0].name, "all") if len(campaigns) == 1 else ("all",)


def find(snapshot: Snapshot, number_id: str) -> NumberView | None:
    """A number by id."""
    return next((n for n in snapshot.numbers if n.id == number_id), None)


def _hold(snapshot: Snapshot, hold: int) -> HoldView | None:
    return next((h for h in snapshot.holds if h.id == hold), None)


def _hold_facts(snapshot: Snapshot, hold: int, glyphs: Glyphs) -> list[str]:
    held = _hold(snapshot, hold)
    if held is None:
        return ["this hold is lifted already"]
    since = f", since {held.since:%m-%d %H:%M:%S}Z" if held.since is not None else ""
    return [
        f"code {held.code or '-'}{since}",
        masked(held.reason or "", {}, glyphs),
        "Mend the cause first: the next refusal of the same kind holds it again.",
    ]


def _mark(snapshot: Snapshot, number_id: str) -> Hashable:
    """What a person decides by. Not how it happens to be going: its ceiling moves, leases change hands."""
    n = find(snapshot, number_id)
    if n is None:
        return None
    stop = (n.state, n.reason) if n.state == "held" else n.state if n.state == "paused" else "going"
    return stop, n.rate, n.limit


def _paused(snapshot: Snapshot) -> Hashable:
    """Whose pauses C may lift. Campaigns follow their numbers by themselves, and holds stay as they are."""
    return frozenset(n.id for n in snapshot.numbers if n.state == "paused")


def _of_campaign(snapshot: Snapshot, name: str) -> Hashable:
    found = next((c for c in snapshot.campaigns if c.name == name), None)
    return found and (found.state, found.reason if found.state == "held" else None)


def _now_facts(n: NumberView, glyphs: Glyphs) -> list[str]:
    errors = f"errors {percent(n.error_share, 1)} of answers in 5 min"
    return [
        f"now: {n.state.upper()}" + (f" ({clean(n.reason, glyphs)})" if n.reason else ""),
        f"sends {rate(n.sent_per_second)}/s, rate {rate(n.rate)}, ceiling {rate(n.ceiling)}, limit {rate(n.limit)}",
        f"{errors}" + (f", most {n.top_error}" if n.top_error is not None else ""),
        f"pending {number(n.pending)}, stuck {n.stuck}, unknown {n.unknown}, in flight {n.in_flight}",
    ]


def _rate_facts(snapshot: Snapshot, act: SetRate, glyphs: Glyphs) -> list[str]:
    n = find(snapshot, act.number)
    if n is None:
        return ["this number is gone"]
    up = f"+{percent(act.rate / n.rate - 1)}" if n.rate else "from 0"
    full = " This is the provider's limit: nothing is left for conversations." if act.rate >= n.limit else ""
    return [*_now_facts(n, glyphs), f"y sets {rate(act.rate)}/s ({up}).{full}"]


def _resume_facts(snapshot: Snapshot, number_id: str, glyphs: Glyphs) -> list[str]:
    n = find(snapshot, number_id)
    if n is None:
        return ["this number is gone"]
    return [
        *_now_facts(n, glyphs),
        f"y sends again at once, up to {rate(min(n.rate, n.ceiling) or n.rate)}/s.",
    ]


def _resume_all_facts(snapshot: Snapshot) -> list[str]:
    paused = sum(1 for n in snapshot.numbers if n.state == "paused")
    held = sum(1 for n in snapshot.numbers if n.state == "held")
    return [
        f"{paused} numbers are paused, {held} are held.",
        f"pending {number(totals(snapshot).pending)}",
        "y lifts what P (pause everything) stopped, and nothing else; holds stay.",
    ]


def _campaign_facts(snapshot: Snapshot, name: str, glyphs: Glyphs) -> list[str]:
    c = next((c for c in snapshot.campaigns if c.name == name), None)
    if c is None:
        return ["this campaign is gone"]
    why = f" ({clean(c.reason, glyphs)})" if c.reason else ""
    return [
        f"now: {c.state.upper()}{why}",
        f"accepted {number(c.accepted)} of {number(c.planned)}, failed {number(c.counts.get('failed', 0))}",
        f"pending {number(c.counts.get('pending', 0))}, possible duplicates {c.possible_duplicates}",
    ]


def _resume_campaign_facts(snapshot: Snapshot, name: str, glyphs: Glyphs) -> list[str]:
    return [*_campaign_facts(snapshot, name, glyphs), "y sends again at once."]


def _stop_facts(snapshot: Snapshot) -> list[str]:
    t = totals(snapshot)
    return [
        f"sends {rate(t.sent_per_s)}/s now, {snapshot.in_flight} in flight, pending {number(t.pending)}",
        "It starts no new request, lets those in flight finish, writes all results, then ends.",
        "Pending rows stay and go on at the next run."
        + (" It is draining already." if snapshot.draining else ""),
    ]


def _pause_all_facts(snapshot: Snapshot, glyphs: Glyphs) -> list[str]:
    t = totals(snapshot)
    campaigns = open_campaigns(snapshot)
    names = ", ".join(clean(c.name, glyphs) for c in campaigns[:4]) + (
        " and more" if len(campaigns) > 4 else ""
    )
    return [
        f"{len(campaigns)} open campaigns: {names or 'none'}",
        f"sends {rate(t.sent_per_s)}/s now from {len(snapshot.numbers)} numbers, ETA {eta(t.eta_s)}",
        "No request starts any more; those in flight finish. C lifts it again.",
    ]
