"""Settling `unknown`: first whatever nobody can answer for any more becomes unknown, then policies are applied.

A policy waits for three things: the row's window has passed, the inbox is drained beyond it, and statuses are
arriving for the row's number. Otherwise a proof may still be on its way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from engine import clock
from engine.author import ENGINE
from engine.domain.count import counted
from engine.domain.snapshot import ReconcilePreview
from engine.postgres import journal, reconcile
from engine.postgres.pool import Pool

PAGE = 500

_A_PERSON = "for evidence, or for a person: `--campaign NAME --as resend|assume_sent`"


@dataclass(frozen=True, slots=True)
class Limits:
    """In seconds. `floor`: no window is shorter. `deadline`: of one request."""

    floor: float
    deadline: float

    @property
    def stuck(self) -> float:
        """After so long a request without an answer has none."""
        return self.deadline + 30.0


@dataclass(slots=True)
class _Counts:
    to_sent: int = 0
    to_pending: int = 0
    stay: int = 0
    waiting: int = 0
    stuck: int = 0
    conditions: list[str] = field(default_factory=list)
    first: datetime | None = None
    last: datetime | None = None
    then: dict[str, int] = field(default_factory=dict)

    @property
    def moved(self) -> int:
        return self.to_sent + self.to_pending + self.stuck

    def in_window(self, row: reconcile.Judged) -> None:
        """A row whose window has not passed."""
        self.first = min(self.first or row.until, row.until)
        self.last = max(self.last or row.until, row.until)
        self.then[row.policy] = self.then.get(row.policy, 0) + 1

    @property
    def text(self) -> str:
        return (
            f"{self.to_sent} to sent, {self.to_pending} to pending, {self.stay} stay unknown, "
            f"{self.waiting} waiting, {self.stuck} from sending to unknown"
        )


@dataclass(slots=True)
class _Pages:
    """What one number's unknown rows wait for beside their windows."""

    unheard: int = 0
    stay: int = 0

    def add(self, rows: list[reconcile.Judged], now: datetime, counts: _Counts) -> None:
        for row in rows:
            if row.verdict == "unknown":
                self.stay += 1
            elif row.verdict == "waiting" and row.until <= now:
                self.unheard += 1
            elif row.verdict == "waiting":
                counts.in_window(row)

    def conditions(self, number: str, calm: reconcile.Calm, policy: str | None) -> list[str]:
        """A sentence for each condition."""
        found = []
        if self.unheard:
            why = (
                "until the inbox is drained: bodies wait there for more than a minute"
                if not calm.drained
                else "until statuses arrive for this number: none came in the last minute"
            )
            found.append(f"{number}: {counted(self.unheard, 'row')} wait, {why}.")
        if self.stay:
            until = "for evidence alone: sent once more already" if policy == "resend" else _A_PERSON
            found.append(f"{number}: {counted(self.stay, 'row')} unknown until further notice, {until}.")
        return found


class UnknownCampaignError(Exception):
    """There is no campaign of that name."""


async def run(
    pool: Pool,
    limits: Limits,
    *,
    campaign: str | None = None,
    policy: str | None = None,
    dry_run: bool = True,
    author: str = ENGINE,
    origin: str = "engine",
    page: int = PAGE,
    journalled: Callable[[int], object] | None = None,
) -> ReconcilePreview:
    """Settle what may be settled, of one campaign or all; with `dry_run` only count. `policy`: a person's word
    (resend, assume_sent), in place of the campaign's.

    Every page is a transaction with exact books. What moved is journalled, and always when a person asked:
    `journalled` is then told the entry's id.
    """
    campaign_id = await reconcile.campaign_id(pool, campaign) if campaign is not None else None
    if campaign is not None and campaign_id is None:
        raise UnknownCampaignError(campaign)
    counts = _Counts()
    calm = await reconcile.calm(pool)
    why = f"by {author}: no status came within the campaign's window" + (f", {policy}" if policy else "")
    for number_id, id_ in await reconcile.all_numbers(pool):
        counts.stuck += await _doubt(pool, number_id, limits.stuck, campaign_id, dry_run=dry_run, page=page)
        heard = calm.drained and id_ in calm.heard
        after = 0
        pages = _Pages()
        while rows := await reconcile.judge(
            pool, number_id, after, page, limits.floor, heard, campaign_id, policy
        ):
            after = rows[-1].id
            pages.add(rows, clock.now(), counts)
            await _apply(pool, rows, counts, why, dry_run=dry_run)
        counts.conditions += pages.conditions(id_, calm, policy)
    if not dry_run and (counts.moved or origin != "engine"):
        told = f"as {policy}" if policy else None
        entry = journal.Entry(author, origin, "reconcile", campaign or "all", told, result=counts.text)
        entry_id = await journal.write(pool, entry)
        if journalled is not None:
            journalled(entry_id)
    note = _note(calm, counts)
    return ReconcilePreview(
        counts.to_sent,
        counts.to_pending,
        counts.stay,
        counts.waiting,
        counts.stuck,
        note,
        tuple(counts.conditions),
        counts.first,
        counts.last,
        tuple(sorted(counts.then.items())),
    )


async def _doubt(
    pool: Pool, number_id: int, older_than: float, campaign_id: int | None, *, dry_run: bool, page: int
) -> int:
    if dry_run:
        return await reconcile.count_stuck(pool, number_id, older_than, campaign_id)
    total = 0
    while moved := await reconcile.doubt_stuck(pool, number_id, older_than, campaign_id, page):
        total += moved
    return total


async def _apply(
    pool: Pool, rows: list[reconcile.Judged], counts: _Counts, why: str, *, dry_run: bool
) -> None:
    counts.waiting += sum(row.verdict == "waiting" for row in rows)
    counts.stay += sum(row.verdict == "unknown" for row in rows)
    moving = [row for row in rows if row.verdict in ("sent", "pending")]
    if dry_run:
        counts.to_sent += sum(row.verdict == "sent" for row in moving)
        counts.to_pending += sum(row.verdict == "pending" for row in moving)
    elif moving:
        sent, pending = await reconcile.settle(pool, moving, why)
        counts.to_sent += sent
        counts.to_pending += pending


def _note(calm: reconcile.Calm, counts: _Counts) -> str:
    if not counts.waiting:
        return "Rows that stay wait for evidence or for a person." if counts.stay else ""
    if not calm.drained:
        return "Webhook bodies older than a minute wait to be applied: they may settle these rows."
    return "Waiting rows: their window has not passed, or no status came for their number in the last minute."
