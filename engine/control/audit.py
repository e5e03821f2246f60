"""`tidegate audit`: the invariants 1, 2, 3 and 5, proved from rows, tries and stamps in one snapshot."""

import heapq
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from engine.domain.count import counted
from engine.domain.recipient import State
from engine.domain.windows import Send, Windows
from engine.postgres import audit, books
from engine.postgres.audit import Batch
from engine.postgres.pool import Connection, Pool

LISTED = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant: whether it holds, what was looked at, and what to look at when it does not."""

    invariant: int
    name: str
    holds: bool
    text: str
    offenders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberWindows:
    """Two seconds of one number, by its campaign sends: the fullest, which used the largest `share` of what its rate
    allowed then (`worst` of `allowed`), and the busiest, which held the most sends. `sends`: of campaigns and of
    conversations."""

    number: str
    sends: int
    worst: int
    allowed: int
    share: float
    at: datetime | None
    busiest: int
    busiest_allowed: int
    busiest_at: datetime | None
    breaches: int
    first: str | None


@dataclass(slots=True)
class Audit:
    """All that was found."""

    at: datetime
    checks: list[Check] = field(default_factory=list)
    windows: list[NumberWindows] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every invariant holds."""
        return all(check.holds for check in self.checks)


class UnknownCampaignError(Exception):
    """There is no campaign of that name."""


async def run(pool: Pool, campaign: str | None = None) -> Audit:
    """Look at everything, or at one campaign; windows are a number's and always looked at whole.

    Reads every row and every try once: minutes for tens of millions, flat memory, no lock.
    """
    async with audit.snapshot(pool) as db:
        found = await audit.campaigns(db, campaign)
        if campaign is not None and not found:
            raise UnknownCampaignError(campaign)
        only = found[0][0] if campaign is not None else None
        done = Audit(await db.fetchval("SELECT now()"))
        names = {campaign_id: name for campaign_id, name, _ in found}
        done.checks.append(await _once(db, only, names))
        done.checks.append(await _balanced(db, only, found))
        done.checks.append(await _counted(db, only, names))
        windows = await _windows(audit.sends(db))
        done.windows = windows
        done.checks.append(_within(windows))
        done.checks.append(await _accounted(db, only, found))
    return done


async def _once(db: Connection, only: int | None, names: dict[int, str]) -> Check:
    twice = await audit.taken_twice(db, only, LISTED)
    offenders = tuple(f"row {id_} of {names.get(c, c)}: {taken} requests taken" for id_, c, taken in twice)
    text = f"{len(twice)}{'+' if len(twice) == LISTED else ''} rows" if twice else "no row"
    return Check(
        1, "taken at most once", not twice, f"{text} with more requests taken than were decided", offenders
    )


async def _balanced(db: Connection, only: int | None, found: list[tuple[int, str, int]]) -> Check:
    counted, booked = await audit.recount(db, only), await books.balance_by_lane(db, only)
    home = await audit.lanes(db, only)
    names = {campaign_id: name for campaign_id, name, _ in found}
    offenders = [
        f"{names.get(home.get(lane, 0), '?')}, lane {lane}, {State(letter).word}: "
        f"{counted.get((lane, letter), 0)} rows, {booked.get((lane, letter), 0)} in the books"
        for lane, letter in sorted(counted.keys() | booked.keys())
        if counted.get((lane, letter), 0) != booked.get((lane, letter), 0)
    ]
    total: dict[int, int] = {}
    for (lane, _), n in counted.items():
        total[home[lane]] = total.get(home[lane], 0) + n
    for campaign_id, name, planned in found:
        if total.get(campaign_id, 0) != planned:
            offenders.append(f"{name}: {total.get(campaign_id, 0)} rows, {planned} planned")
    rows = sum(counted.values())
    return Check(
        2,
        "books balance",
        not offenders,
        f"{rows:,} {'row' if rows == 1 else 'rows'} recounted by lane and state",
        tuple(offenders),
    )


async def _counted(db: Connection, only: int | None, names: dict[int, str]) -> Check:
    """Counters that the rows themselves can prove: tries, attempts, and failed rows by code."""
    summed, failed, tallies = (
        await audit.counters(db, only),
        await audit.failed(db, only),
        await books.tallies(db, only),
    )
    offenders = []
    for campaign_id, name in names.items():
        tally = tallies.get(campaign_id, books.Tallies())
        tries, attempts = summed.get(campaign_id, (0, 0))
        codes = tally.errors.keys() | {code for c, code in failed if c == campaign_id}
        pairs = [("tries", tries, tally.tries), ("attempts", attempts, tally.attempts)]
        pairs += [
            (f"failed with {code}", failed.get((campaign_id, code), 0), tally.errors.get(code, 0))
            for code in sorted(codes)
        ]
        offenders += [
            f"{name}, {what}: {rows} by the rows, {kept} counted"
            for what, rows, kept in pairs
            if rows != kept
        ]
        if tally.accepted > tally.tries:
            offenders.append(f"{name}: {tally.accepted} accepted of {tally.tries} tries")
    tried = sum(tries for tries, _ in summed.values())
    return Check(
        2, "counters agree", not offenders, f"{tried:,} tries, attempts, failures by code", tuple(offenders)
    )


async def _accounted(db: Connection, only: int | None, found: list[tuple[int, str, int]]) -> Check:
    rows, data = await audit.unaccounted(db, only, LISTED)
    offenders = [f"row {id_}: no data of its campaign with a line number" for id_ in rows]
    offenders += [f"data {id_}: no row" for id_ in data]
    imported = await audit.imported(db)
    imports = 0
    for _, name, planned in found:
        times, n = imported.get(name, (0, 0))
        imports += times
        if n != planned:
            offenders.append(f"{name}: imports in the journal add {n}, planned is {planned}")
    text = f"{counted(imports, 'import')}, every row with its data and line"
    return Check(5, "every input row accounted for", not offenders, text, tuple(offenders))


def _within(windows: list[NumberWindows]) -> Check:
    broken = [w for w in windows if w.breaches]
    offenders = tuple(f"number {w.number}: {w.breaches} windows, first {w.first}" for w in broken)
    sends = sum(w.sends for w in windows)
    return Check(
        3,
        "ceiling holds",
        not broken,
        f"{counted(sends, 'send')} of {counted(len(windows), 'number')}",
        offenders,
    )


async def _windows(batches: AsyncIterator[Batch]) -> list[NumberWindows]:
    """Merge overlapping batches into one order of time, and check each number as it streams by."""
    done: list[NumberWindows] = []
    check, number, epoch = Windows(), "", 0
    number_id: int | None = None
    waiting: list[tuple[int, int, Send]] = []
    nth = 0
    async for batch in batches:
        first = batch.base_mono_us + batch.us[0]
        if batch.number_id != number_id:
            _drain(waiting, check, None)
            if number_id is not None:
                done.append(_result(number, check))
            check, number_id = Windows(), batch.number_id
            number, epoch = batch.id or f"(removed, number_id {batch.number_id})", batch.epoch
        elif batch.epoch != epoch:
            _drain(waiting, check, None)
            epoch = batch.epoch
        else:
            _drain(waiting, check, first)
        for send in _sends(batch):
            nth += 1
            heapq.heappush(waiting, (send.mono, nth, send))
    _drain(waiting, check, None)
    if number_id is not None:
        done.append(_result(number, check))
    return done


def _drain(waiting: list[tuple[int, int, Send]], check: Windows, before: int | None) -> None:
    """What lies before the next batch's first stamp can no longer be overtaken."""
    while waiting and (before is None or waiting[0][0] < before):
        check.add(heapq.heappop(waiting)[2])


def _sends(batch: Batch) -> Iterator[Send]:
    base_db = (batch.base_db - _EPOCH) // _MICROSECOND
    for us in batch.us:
        yield Send(
            batch.epoch,
            batch.base_mono_us + us,
            base_db + us,
            batch.err_us,
            batch.campaign,
            batch.rate,
            batch.limit,
        )


def _result(number: str, check: Windows) -> NumberWindows:
    first = check.first
    text = None
    if first is not None:
        at = (_EPOCH + timedelta(microseconds=first.at)).isoformat()
        text = f"at {at}: {first.count} of {first.allowed} ({first.kind})"
    return NumberWindows(
        number=number,
        sends=check.sends,
        worst=check.worst,
        allowed=check.worst_allowed,
        share=check.share,
        at=_moment(check.worst_at),
        busiest=check.busiest,
        busiest_allowed=check.busiest_allowed,
        busiest_at=_moment(check.busiest_at),
        breaches=check.breaches,
        first=text,
    )


def _moment(us: int | None) -> datetime | None:
    return _EPOCH + timedelta(microseconds=us) if us is not None else None
