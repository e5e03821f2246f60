"""What a headless run says: a summary line every few seconds, and at its end the books, never a bare success."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from engine import clock
from engine.commands.campaign import report_json
from engine.config import RunOptions
from engine.domain.control import ControlStanding
from engine.domain.count import counted, proven_later
from engine.domain.recipient import OPEN, State
from engine.domain.snapshot import CampaignView, Snapshot
from engine.node import Engine
from engine.postgres import asides, books, controls
from engine.postgres.campaigns import CampaignReport
from engine.postgres.faults import DATABASE_FAULTS

SUMMARY_EVERY = 5.0
LOOK = 0.5
MARGIN = timedelta(minutes=1)
"""For the difference between the database's clock and ours, and for a run that was started again at once."""

FAILED_TOO_OFTEN = 3
NEEDS_A_PERSON = 4

log = structlog.get_logger()


@dataclass(slots=True)
class Outcome:
    """How a run ended: its exit code (see behaviour: 0, 1, 3, 4) and the text of its final report."""

    code: int = 0
    report: str = ""
    reasons: list[str] = field(default_factory=list)


async def summaries(engine: Engine) -> None:
    """One line every few seconds, for ever."""
    while True:
        await asyncio.sleep(SUMMARY_EVERY)
        snapshot = engine.latest
        if snapshot is not None:
            log.info("summary", plain=progress(snapshot), **summary(snapshot))


def summary(snapshot: Snapshot) -> dict[str, object]:
    """The figures of one summary line."""
    counts = _totals(snapshot)
    numbers = snapshot.numbers
    return {
        "accepted_per_second": round(sum(n.sent_per_second for n in numbers), 1),
        "tries_per_second": round(sum(n.tries_per_second for n in numbers), 1),
        "in_flight": snapshot.in_flight,
        **{state.word: counts[state.word] for state in State},
        "inbox": snapshot.inbox_backlog,
        "database": snapshot.database,
        "numbers": {n.display: f"{n.state}, bound by {n.bound_by}" for n in numbers if n.campaigns},
    }


def progress(snapshot: Snapshot) -> str:
    """The same for a person at a terminal."""
    counts, campaigns = _totals(snapshot), snapshot.campaigns
    planned, accepted = sum(c.planned for c in campaigns), sum(c.accepted for c in campaigns)
    share = f" ({accepted / planned:.0%})" if planned else ""
    arrived = counts[State.DELIVERED.word] + counts[State.READ.word]
    rate = sum(n.sent_per_second for n in snapshot.numbers)
    parts = [
        f"{accepted:,} of {planned:,} accepted{share}",
        f"{rate:.0f}/s",
        f"{snapshot.in_flight} in flight",
        f"{arrived:,} delivered",
    ]
    for state in (State.FAILED, State.UNKNOWN):
        if counts[state.word]:
            parts.append(f"{counts[state.word]:,} {state.word}")
    if snapshot.database != "ok":
        parts.append(f"the database is {snapshot.database}")
    parts += [f"{n.display} {n.state}" for n in snapshot.numbers if n.state in ("paused", "held", "waiting")]
    return ", ".join(parts)


async def until_finished(engine: Engine, options: RunOptions, outcome: Outcome) -> None:
    """Drain the node when nothing is running or scheduled any more, or when only holds have remained for too long."""
    time = asyncio.get_running_loop().time
    since = clock.now() - MARGIN
    over_since: float | None = None
    stuck_since: float | None = None
    while True:
        await asyncio.sleep(LOOK)
        snapshot = engine.latest
        if snapshot is None or not engine.follower.healthy:
            continue
        working = [c for c in snapshot.campaigns if c.state in ("running", "scheduled")]
        stopped = [c for c in snapshot.campaigns if c.state in ("held", "paused")]
        aside = await _aside(engine) if working else {}
        waits_for_person = [c for c in working if _waits_for_person(c, snapshot, aside.get(c.name, 0))]
        if not working and not stopped:
            over_since = over_since or time()
            if time() - over_since >= options.linger:
                await _judge(engine, outcome, since)
                engine.drain("everything is finished")
        elif len(waits_for_person) == len(working):
            over_since, stuck_since = None, stuck_since or time()
            if time() - stuck_since >= options.patience:
                outcome.code = NEEDS_A_PERSON
                outcome.reasons += [f"{c.name}: {_why(c)}" for c in stopped + waits_for_person]
                outcome.reasons += [
                    f"{name}: {counted(rows, 'row')} kept aside" for name, rows in aside.items()
                ]
                engine.drain("only holds remain")
        else:
            over_since = stuck_since = None


async def _aside(engine: Engine) -> dict[str, int]:
    """Rows of each campaign that wait for a person's word; what is not known counts as none."""
    try:
        return await asides.by_campaign(engine.db)
    except DATABASE_FAULTS:
        return {}


def _waits_for_person(campaign: CampaignView, snapshot: Snapshot, aside: int) -> bool:
    """Running, but nothing can move it: all its numbers are stopped, or only rows for a person are left."""
    if campaign.state == "scheduled":
        return False
    moving = sum(campaign.counts[state.word] for state in OPEN - {State.UNKNOWN}) - aside
    if moving <= 0 and (aside or campaign.counts[State.UNKNOWN.word]):
        return True
    numbers = [n for n in snapshot.numbers if campaign.name in n.campaigns]
    return all(n.state in ("paused", "held") for n in numbers)


def _why(campaign: CampaignView) -> str:
    unknown = campaign.counts[State.UNKNOWN.word]
    if campaign.reason is None and unknown:
        return f"waits for evidence, its policy, or `tidegate reconcile`: {counted(unknown, 'unknown row')}"
    return campaign.reason or campaign.state


async def _judge(engine: Engine, outcome: Outcome, since: datetime) -> None:
    """Of what ended in this run; last week's failures are no news."""
    for report in await engine.commands.list_campaigns():
        campaign = report.campaign
        if campaign.finished_at is not None and campaign.finished_at < since:
            continue
        share = report.counts[State.FAILED] / campaign.planned if campaign.planned else 0.0
        if share > campaign.max_failed:
            outcome.code = FAILED_TOO_OFTEN
            outcome.reasons.append(f"{campaign.name}: {share:.1%} failed, allowed {campaign.max_failed:.1%}")


async def final_report(engine: Engine, outcome: Outcome) -> str:
    """The books of every campaign, as a table of text; says so when they do not balance."""
    try:
        while await books.fold(engine.db):
            pass
        reports = await engine.commands.list_campaigns()
        standing = [await controls.standing(engine.db, report.campaign.campaign_id) for report in reports]
    except DATABASE_FAULTS as error:
        return f"The database is away ({type(error).__name__}): the books are in it, and safe."
    lines = [
        line for report, phones in zip(reports, standing, strict=True) for line in lines_of(report, phones)
    ]
    return "\n".join([*lines, *outcome.reasons]) or "No campaign yet."


def lines_of(report: CampaignReport, phones: ControlStanding | None) -> list[str]:
    """One campaign: its state, its books, its tries, its control phones, and what failed."""
    row, tallies = report.campaign, report.tallies
    counts = {state.word: report.counts[state] for state in State}
    balance = "balance" if sum(counts.values()) == row.planned else "DO NOT BALANCE: run tidegate audit"
    proven = proven_later(tallies.accepted, tallies.attempts)
    return [
        f"{row.name}: {row.word}; planned {row.planned:,}",
        "  " + "  ".join(f"{word} {n:,}" for word, n in counts.items() if n),
        f"  tries {tallies.tries:,}  attempts {tallies.attempts:,}  accepted {tallies.accepted:,}"
        + (f" ({proven})" if proven else "")
        + f"  possible duplicates {tallies.possible_duplicates:,}; the books {balance}",
        *([f"  {phones.in_words()}"] if phones is not None else []),
        *(f"  {line}" for line in report_errors(report_json(report))),
    ]


def report_errors(data: dict[str, object]) -> list[str]:
    """A line for each code of rows that are failed now."""
    errors = data["errors"]
    assert isinstance(errors, list)
    return [f"failed with {e['code']} {e['title']}: {e['count']:,}" for e in errors]


def _totals(snapshot: Snapshot) -> dict[str, int]:
    return {state.word: sum(c.counts[state.word] for c in snapshot.campaigns) for state in State}
