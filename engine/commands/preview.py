"""What would go out, before it does: the exact request of a row, and a dry run over the whole audience."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine import clock
from engine.commands.act import Acts, Refused
from engine.domain.forecast import done_at, late_behind
from engine.domain.message import Token, masked, template_message
from engine.domain.quiet import Quiet, is_quiet, open_seconds
from engine.postgres import audience_imports, campaigns, previews, reach
from engine.postgres.audience_imports import Totals
from engine.postgres.previews import Lane

UNDELIVERED_MARKETING = "US"
"""Meta delivers no marketing template to numbers with an area code of the United States (since April 2025)."""


@dataclass(frozen=True, slots=True)
class RequestPreview:
    """The request that a row's next try would be. `body` is what would be sent, but for `to`, which is masked."""

    row: int
    line: int
    state: str
    aside: str
    number: str | None
    body: dict[str, object]


@dataclass(frozen=True, slots=True)
class AudiencePreview:
    """A dry run. `waiting` rows have not left; they are exactly `would_send`, or expired, suppressed, aside, or held.

    Of those that would be sent, `late` will miss their deadline and expire, and `never_delivered` are marketing to US
    numbers. `rate` in messages/s over the campaign's numbers that are not paused, as if they had nothing else to send.
    """

    campaign: str
    state: str
    imports: Totals
    planned: int
    waiting: int
    would_send: int
    suppressed: int
    expired: int
    aside: int
    held: int
    late: int
    never_delivered: int
    doubts: tuple[str, ...]
    rate: float
    seconds: float | None
    eta: datetime | None
    deadline: datetime | None
    quiet: int = 0
    """Of those that would be sent: it is quiet where they live, now."""
    reach_limit: int | None = None
    """How many different people an account of its numbers may reach within 24 h, when somebody has said so."""
    reached: int = 0
    """How many it has reached in the last 24 h."""


class PreviewCommands(Acts):
    """campaign preview. Changes nothing, so nothing is journalled."""

    async def preview_request(
        self, name: str, row: int | None = None, line: int | None = None, *, show_phone: bool = False
    ) -> RequestPreview:
        """Of the row with this id, or in this line of its file, or the first. Raises Refused when there is none."""
        subject = await self._subject(name)
        sample = await previews.sample(self._pool, subject.campaign_id, row, line)
        if sample is None:
            which = (
                f"no row {row}"
                if row is not None
                else f"no row of line {line}"
                if line is not None
                else "no rows"
            )
            raise Refused(
                f"Campaign {name} has {which}: import its audience, or look with `tidegate rows list`."
            )
        token = Token(subject.random_id, sample.id, sample.tries + 1)
        to = sample.phone if show_phone else masked(sample.phone)
        body = template_message(to, subject.template, sample.params, token)
        return RequestPreview(sample.id, sample.line, sample.state.word, sample.aside, subject.number, body)

    async def preview_audience(self, name: str) -> AudiencePreview:
        """Of everybody. Raises Refused when there is no such campaign."""
        subject = await self._subject(name)
        marketing = subject.category == "marketing"
        now = clock.now()
        async with (
            self._pool.acquire() as db,
            db.transaction(isolation="repeatable_read", readonly=True),  # figures of one moment
        ):
            [row] = await campaigns.view(db, name)
            lanes = await previews.lanes(db, subject.campaign_id, marketing=marketing)
            totals = await audience_imports.totals(db, subject.campaign_id)
            doubts = await audience_imports.doubts(db, subject.campaign_id)
            reachable = [
                account
                for name_ in await reach.of_campaign(db, subject.campaign_id)
                for account in await reach.accounts(db, name_)
            ]
        free = [lane for lane in lanes if _free(lane) and not _over(lane, now)]
        sends = [(lane, lane.waiting - lane.suppressed) for lane in free]
        would_send = sum(rows for _, rows in sends)
        never = sum(rows for lane, rows in sends if marketing and lane.country == UNDELIVERED_MARKETING)
        quiet = row.quiet
        left = [(_seconds(lane, quiet, now), rows) for lane, rows in sends]
        missed = late_behind(left, (), row.rate) if row.rate > 0 else 0
        seconds = (would_send - missed) / row.rate if row.rate > 0 else None
        return AudiencePreview(
            campaign=name,
            state=row.word,
            imports=totals,
            planned=row.planned,
            waiting=sum(lane.waiting for lane in lanes),
            would_send=would_send,
            suppressed=sum(lane.suppressed for lane in free),
            expired=sum(lane.waiting for lane in lanes if not _aside(lane) and _over(lane, now)),
            aside=sum(lane.waiting for lane in lanes if _aside(lane)),
            held=sum(lane.waiting for lane in _held(lanes, now)),
            quiet=sum(n for lane, n in sends if quiet is not None and is_quiet(quiet, lane.zones, now)),
            late=missed,
            never_delivered=never,
            doubts=tuple(f"in {doubt.file} {doubt.reason}" for doubt in doubts),
            rate=row.rate,
            seconds=seconds,
            eta=None if seconds is None else done_at(seconds, quiet, row.zones, now),
            deadline=subject.deadline,
            reach_limit=_sum([account.limit for account in reachable]),
            reached=_sum([account.reached for account in reachable]) or 0,
        )

    async def _subject(self, name: str) -> previews.Subject:
        subject = await previews.subject(self._pool, name)
        if subject is None:
            raise Refused(f"There is no campaign {name}: `tidegate campaign list` shows those that exist.")
        return subject


def _over(lane: Lane, now: datetime) -> bool:
    return lane.deadline is not None and lane.deadline <= now


def _sum(figures: Sequence[int | None]) -> int | None:
    """None when one of them is not known: its account has no limit, so that they have none together."""
    known = [n for n in figures if n is not None]
    return sum(known) if known and len(known) == len(figures) else None


def _held(lanes: Sequence[Lane], now: datetime) -> list[Lane]:
    return [lane for lane in lanes if not _aside(lane) and not _free(lane) and not _over(lane, now)]


def _aside(lane: Lane) -> bool:
    """Whether its rows wait for a person's word; a canary's only go first."""
    return lane.aside not in ("", "canary")


def _free(lane: Lane) -> bool:
    """Whether its rows go out by themselves, sooner or later."""
    return not _aside(lane) and lane.hold in (None, "quiet", "canary")


def _seconds(lane: Lane, quiet: Quiet | None, now: datetime) -> float | None:
    """Left for sending before its deadline, outside its quiet hours."""
    if lane.deadline is None:
        return None
    if quiet is None:
        return max(0.0, (lane.deadline - now).total_seconds())
    return open_seconds(quiet, lane.zones, now, lane.deadline)
