"""Alert rules about campaigns: their outcomes, not whether something runs."""

from collections.abc import Iterator
from datetime import timedelta

from engine.domain.alert import CRITICAL, WARNING, Finding, Look, Rule
from engine.domain.count import counted
from engine.domain.recipient import State

SETTLED = (State.SENT, State.DELIVERED, State.READ, State.FAILED)
"""Rows of which Meta has said something."""

_SETTLED_ROWS = (
    'max by (campaign, state) (tidegate_campaign_rows{state=~"' + "|".join(s.word for s in SETTLED) + '"})'
)

CAMPAIGN = "{{ $labels.campaign }}"


def _held(look: Look) -> Iterator[Finding]:
    for c in look.snapshot.campaigns:
        if c.state == "held":
            yield Finding(c.name, c.name, f"HELD {c.reason or ''}".strip())


def _failing(look: Look) -> Iterator[Finding]:
    for c in look.snapshot.campaigns:
        settled = sum(c.counts.get(state.word, 0) for state in SETTLED)
        failed = c.counts.get(State.FAILED.word, 0)
        if settled < look.thresholds.failed_least:
            continue
        if look.over(f"campaign_failing:{c.name}", failed / settled, look.thresholds.failed_share):
            yield Finding(
                c.name, c.name, f"{failed / settled:.1%} failed ({failed:,} of {settled:,} settled)"
            )


def _undelivered(look: Look) -> Iterator[Finding]:
    for c in look.snapshot.campaigns:
        if c.delivered_share is None or c.delivered_norm is None:
            continue
        least = c.delivered_norm * look.thresholds.delivered_drop_share
        if look.under(f"campaign_undelivered:{c.name}", c.delivered_share, least):
            minutes = look.thresholds.delivered_after_s / 60
            yield Finding(
                c.name,
                c.name,
                f"of the sends older than {minutes:g} min {c.delivered_share:.0%} are delivered, "
                f"usual are {c.delivered_norm:.0%}",
            )


def _control(look: Look) -> Iterator[Finding]:
    for c in look.snapshot.campaigns:
        late = [one for one in c.controls if one.waiting_s > look.thresholds.control_s]
        if late:
            told = "; ".join(
                f"control phone {one.phone} has got nothing for {_time(one.waiting_s)}, "
                f"round {one.round} is {one.state}"
                for one in late[:3]
            )
            yield Finding(c.name, c.name, told + (f"; and {len(late) - 3} more" if len(late) > 3 else ""))


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _idle(look: Look) -> Iterator[Finding]:
    for c in look.snapshot.campaigns:
        if look.over(f"campaign_idle:{c.name}", c.idle_s, look.thresholds.idle_s):
            yield Finding(c.name, c.name, f"no progress for {c.idle_s:.0f} s, and rows are due")


def _budget(look: Look) -> Iterator[Finding]:
    for c in look.snapshot.campaigns:
        if c.state not in ("running", "paused", "held") or c.try_budget <= 0:
            continue
        if look.over(f"try_budget:{c.name}", c.tries / c.try_budget, look.thresholds.try_budget_share):
            yield Finding(c.name, c.name, f"{c.tries:,} tries of a budget of {c.try_budget:,}")


def _deadline(look: Look) -> Iterator[Finding]:
    for c in look.snapshot.campaigns:
        if c.state != "running" or c.deadline is None or c.eta_s is None:
            continue
        over = (look.snapshot.at + timedelta(seconds=c.eta_s) - c.deadline).total_seconds()
        if over > 0:
            missed = f"; even at its full rate {counted(c.late, 'row')} will miss it" if c.late else ""
            cause = f"will end {over / 60:.0f} min after its deadline at this pace{missed}"
            yield Finding(c.name, c.name, cause)


def _books(look: Look) -> Iterator[Finding]:
    for c in look.snapshot.campaigns:
        counted = sum(c.counts.values())
        if counted != c.planned:
            yield Finding(
                c.name, c.name, f"the books do not balance: planned {c.planned:,}, counted {counted:,}"
            )


CAMPAIGN_RULES = (
    Rule(
        "campaign_held",
        CRITICAL,
        "The engine stopped a campaign and needs a person.",
        "Read the reason, mend the cause. Is there a hold (page h)? Enter lifts it. Else r on its page: c, Enter.",
        _held,
        'max by (campaign) (tidegate_campaign_state{state="held"}) == 1',
        CAMPAIGN,
        "Campaign " + CAMPAIGN + " is held and needs a person.",
    ),
    Rule(
        "campaign_failing",
        WARNING,
        "More of a campaign's rows fail than should: it runs, and people do not get their message.",
        "Open the campaign: which code? Audience, template or number? Pause it while you look.",
        _failing,
        'max by (campaign) (tidegate_campaign_rows{state="failed"})\n'
        f"  / sum by (campaign) ({_SETTLED_ROWS})\n"
        "  > %(failed_share)g\n"
        f"and on (campaign) sum by (campaign) ({_SETTLED_ROWS}) >= %(failed_least)g",
        CAMPAIGN,
        "Campaign " + CAMPAIGN + ": {{ $value | humanizePercentage }} of its settled rows have failed.",
    ),
    Rule(
        "campaign_undelivered",
        CRITICAL,
        "Messages are accepted and do not reach people: far fewer are delivered than this campaign's norm.",
        "Pause the campaign. Are webhooks arriving? Which codes fail? Is the account in order at Meta?",
        _undelivered,
        "max by (campaign) (tidegate_campaign_delivered_share)\n"
        "  < %(delivered_drop_share)g * max by (campaign) (tidegate_campaign_delivered_norm_share)",
        CAMPAIGN,
        "Campaign " + CAMPAIGN + ": only {{ $value | humanizePercentage }} of its older sends are delivered.",
    ),
    Rule(
        "control_undelivered",
        CRITICAL,
        "A control phone did not get the campaign's message: what the audience gets may be just as little.",
        "Is the phone on? If it is: pause the campaign, then look at webhooks, codes and the account at Meta.",
        _control,
        "max by (campaign) (tidegate_campaign_control_undelivered_seconds) > %(control_s)g",
        CAMPAIGN,
        "Campaign "
        + CAMPAIGN
        + ": a control phone has waited {{ $value | humanizeDuration }} for what was sent to it.",
    ),
    Rule(
        "campaign_idle",
        CRITICAL,
        "A campaign runs, rows of it are due, and none gets settled.",
        "What bounds its numbers (the word on their line)? Is a node running? Is the provider answering?",
        _idle,
        "min by (campaign) (tidegate_campaign_idle_seconds) > %(idle_s)g",
        CAMPAIGN,
        "Campaign "
        + CAMPAIGN
        + " has settled nothing for {{ $value | humanizeDuration }} although rows are due.",
    ),
    Rule(
        "try_budget",
        WARNING,
        "A campaign has used most of the tries that it may make; at the end of its budget it is held.",
        "What is refused again and again? Mend it, or raise the budget.",
        _budget,
        "max by (campaign) (tidegate_campaign_tries_total)\n"
        "  / max by (campaign) (tidegate_campaign_try_budget > 0) > %(try_budget_share)g\n"
        'and on (campaign) max by (campaign) (tidegate_campaign_state{state=~"running|paused|held"}) == 1',
        CAMPAIGN,
        "Campaign " + CAMPAIGN + " has used {{ $value | humanizePercentage }} of its try budget.",
    ),
    Rule(
        "deadline_at_risk",
        WARNING,
        "At the pace of the last minute a campaign ends after its deadline; what is left then expires.",
        "Raise the rate (= or +), give it more numbers or a higher priority, or move the deadline.",
        _deadline,
        "time() + min by (campaign) (tidegate_campaign_eta_seconds)\n"
        "  > max by (campaign) (tidegate_campaign_deadline_timestamp_seconds)",
        CAMPAIGN,
        "Campaign " + CAMPAIGN + " will not be done by its deadline at the present pace.",
        "deadline_for_s",
    ),
    Rule(
        "books_unbalanced",
        CRITICAL,
        "The counters of a campaign do not add up to what was planned: an invariant is broken.",
        "Pause the campaign and run tidegate audit.",
        _books,
        "min by (campaign) (tidegate_campaign_books_balanced) == 0",
        CAMPAIGN,
        "The books of campaign " + CAMPAIGN + " do not balance.",
    ),
)
