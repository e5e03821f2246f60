"""Builds the snapshot: the figures of this node's pipelines and of the database, as one frozen value."""

import asyncio
import os
import resource
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter

from engine.clock import now
from engine.control import stops
from engine.domain.bound import bound_by
from engine.domain.forecast import asleep, done_at
from engine.domain.lease import Wait
from engine.domain.recipient import State
from engine.domain.snapshot import (
    SERIES_MINUTES,
    SERIES_SECONDS,
    WINDOWS,
    CampaignView,
    ErrorView,
    NumberView,
    Percentiles,
    Snapshot,
    StuckBand,
)
from engine.observe.figures import DatabaseFigures
from engine.observe.metrics import NodeFigures, NumberFigures
from engine.observe.recall import errors
from engine.observe.ring import Ring
from engine.postgres.books import Tallies
from engine.postgres.breakers import Breaker
from engine.postgres.desired import Campaign, Desired, Number
from engine.postgres.figures import InFlight
from engine.postgres.leases import LeaseRow
from engine.postgres.nodes import Identity
from engine.sending.pipeline import Pipeline

MINUTE = 60
_FIVE_MINUTES = WINDOWS.index(300)

_NOTHING = InFlight(0, 0, 0, 0, 0.0)
_BANDS: tuple[tuple[str, Callable[[InFlight], int]], ...] = (
    ("2-5m", attrgetter("to_5m")),
    ("5-30m", attrgetter("to_30m")),
    (">30m", attrgetter("over_30m")),
)
_WAITING = (State.PENDING, State.CLAIMED, State.SENDING)


class Minutes:
    """Means of whole minutes, the newest SERIES_MINUTES of them."""

    def __init__(self) -> None:
        self.values: deque[float] = deque(maxlen=SERIES_MINUTES)
        self._sum, self._count = 0.0, 0

    def add(self, value: float) -> None:
        """One more second."""
        self._sum, self._count = self._sum + value, self._count + 1
        if self._count == MINUTE:
            self.values.append(self._sum / MINUTE)
            self._sum, self._count = 0.0, 0


class Series:
    """What the charts draw: one value a second for an hour, and one a minute for six."""

    def __init__(self) -> None:
        self.accepted = Ring()
        self.tries = Ring()
        self.rate = Ring()
        self.token_wait = Ring()
        self.token_wait_median = Ring()
        self.minutes = {ring: Minutes() for ring in ("accepted", "rate", "token_wait", "token_wait_median")}
        self._last = 0

    def sample(self, at: float, figures: NodeFigures, rate: float) -> None:
        """Once a second: the second that has just ended."""
        if int(at) == self._last:
            return
        self._last = int(at)
        numbers = list(figures.numbers.values())
        self.accepted.put(at - 1, sum(n.accepted.last(at, 1)[0] for n in numbers))
        self.tries.put(at - 1, sum(n.tries.last(at, 1)[0] for n in numbers))
        self.rate.put(at - 1, rate)
        waits = sorted(p.p95 for n in numbers if (p := n.token_wait.percentiles(at)) is not None)
        if waits:
            self.token_wait.put(at - 1, waits[-1])
            self.token_wait_median.put(at - 1, waits[len(waits) // 2])
        for name, minutes in self.minutes.items():
            minutes.add(getattr(self, name).last(at, 1)[0])

    def of_minutes(self, name: str) -> tuple[float, ...]:
        """The kept minutes of one ring, oldest first."""
        return tuple(self.minutes[name].values)


@dataclass(frozen=True, slots=True)
class _Owner:
    """Who sends from a number: this node through its pipeline, another that is `away`, or nobody yet."""

    name: str | None
    epoch: int
    pipeline: Pipeline | None = None
    away: bool = False
    wait: Wait | None = None


class Viewer:
    """Turns the engine's parts into views. Belongs to the engine's thread."""

    def __init__(
        self, node: Identity | None, author: str, figures: NodeFigures, database: DatabaseFigures
    ) -> None:
        """`node`: whose picture it is; None: nobody's, the database's alone."""
        self.series = Series()
        self._node = node
        self._author = author
        self._figures = figures
        self._database = database
        self._started = asyncio.get_running_loop().time()
        self._host = socket.gethostname()
        self._waited: dict[int, tuple[int, str]] = {}

    def snapshot(
        self,
        seq: int,
        desired: Desired,
        leases: Mapping[int, LeaseRow],
        pipelines: Mapping[int, Pipeline],
        waits: Mapping[int, Wait],
        *,
        draining: bool,
        read_only: bool,
    ) -> Snapshot:
        """The node as it stands; alerts, acts and events are added by the engine."""
        at = asyncio.get_running_loop().time()
        numbers = tuple(
            self._number(
                number, desired, self._owner(leases.get(key), pipelines.get(key), waits.get(key)), at
            )
            for key, number in desired.numbers.items()
        )
        going = ("active", "slowed", "waiting")
        mine = [n for n in numbers if n.owner is not None and not n.away]
        sending = sum(n.rate for n in mine if n.state in going)
        self.series.sample(at, self._figures, sending if any(n.campaigns for n in numbers) else 0.0)
        long = min(SERIES_SECONDS - 1, max(1, int(at - self._started)))
        database = self._database
        return Snapshot(
            at=now(),
            seq=seq,
            node=self._node.name if self._node is not None else "",
            host=self._host,
            pid=os.getpid(),
            uptime_s=at - self._started,
            author=self._author,
            read_only=read_only,
            draining=draining,
            numbers=numbers,
            campaigns=tuple(
                self._campaign(c, desired, numbers)
                for c in desired.campaigns.values()
                if c.control_of is None
            ),
            errors=self._errors(at),
            stuck=self._stuck(desired),
            unknown=sum(counts[State.UNKNOWN] for counts in database.counts.values()),
            accepted_series=self.series.accepted.last(at, long),
            tries_series=self.series.tries.last(at, long),
            rate_series=self.series.rate.last(at, long),
            token_wait_series=self.series.token_wait.last(at, long),
            token_wait_median_series=self.series.token_wait_median.last(at, long),
            accepted_minutes=self.series.of_minutes("accepted"),
            rate_minutes=self.series.of_minutes("rate"),
            token_wait_minutes=self.series.of_minutes("token_wait"),
            token_wait_median_minutes=self.series.of_minutes("token_wait_median"),
            token_wait=_worst([n.token_wait for n in numbers]),
            claim_time=self._figures.claim_time.percentiles(at),
            commit_time=self._figures.commit_time.percentiles(at),
            latency=_worst([n.latency for n in numbers]),
            webhook_lag_s=database.inbox.oldest if database.database != "away" else None,
            inbox_backlog=database.inbox.bodies,
            database=database.database,
            version=desired.version,
            in_flight=sum(p.in_flight for p in pipelines.values()),
            memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )

    def _owner(self, lease: LeaseRow | None, pipeline: Pipeline | None, wait: Wait | None) -> _Owner:
        """By id, not by name: a node that was started anew has the name of the dead one."""
        epoch = lease.epoch if lease is not None else 0
        held = lease if lease is not None and not lease.released else None
        node = self._node
        if node is not None and (pipeline is not None or (held is not None and held.owner == node.id)):
            return _Owner(node.name, epoch, pipeline=pipeline)
        if held is None or wait is not None:
            return _Owner(None, epoch, wait=wait)
        return _Owner(held.node, epoch, away=True)

    def _number(self, number: Number, desired: Desired, owner: _Owner, at: float) -> NumberView:
        key, pipeline = number.number_id, owner.pipeline
        figures = self._figures.number(key)
        over = stops.number_stop(number, {(b.scope, b.key): b for b in desired.breakers})
        state, reason, until_s = _state(number, owner, over)
        rows = self._database.in_flight.get(key, _NOTHING)
        served = [
            c
            for c in desired.campaigns.values()
            if key in c.numbers and c.state == "running" and c.control_of is None
        ]
        top, share = _errors_of(figures, at)
        ceiling = pipeline.rate if pipeline else min(number.rate, number.ceiling or number.rate)
        return NumberView(
            id=number.id,
            display=number.display,
            account=number.account,
            owner=owner.name,
            away=owner.away,
            epoch=owner.epoch,
            state=state,
            reason=reason,
            until=now() + timedelta(seconds=until_s) if until_s else None,
            rate=number.rate,
            limit=number.limit,
            ceiling=ceiling,
            accepted_last_second=round(figures.accepted.last(at, 1)[0]),
            tries_last_second=round(figures.tries.last(at, 1)[0]),
            sent_per_second=figures.accepted.mean(at, 5),
            tries_per_second=figures.tries.mean(at, 5),
            token_wait=figures.token_wait.percentiles(at),
            latency=figures.latency.percentiles(at),
            bound_by="lease"
            if owner.wait is not None
            else bound_by(
                pipeline.closed() if pipeline else None,
                self._waited_for(key, figures, at) if served else "rows",
                ceiling,
                number.rate,
            ),
            in_flight=pipeline.in_flight if pipeline else 0,
            pending=sum(self._waiting(c.campaign_id) for c in served),
            stuck=rows.stuck,
            unknown=rows.unknown,
            error_share=share,
            top_error=top,
            last_accepted_s=at - figures.last_accepted if figures.last_accepted is not None else None,
            campaigns=tuple(c.name for c in served),
            accepted_series=figures.accepted.last(at, 60),
        )

    def _waited_for(self, key: int, figures: NumberFigures, at: float) -> str:
        second, word = self._waited.get(key, (0, "rows"))
        if int(at) != second:
            word = figures.waited_most()
            self._waited[key] = (int(at), word)
        return word

    def _waiting(self, campaign_id: int) -> int:
        return self._database.counts.get(campaign_id, {}).get(State.PENDING, 0)

    def _campaign(
        self, campaign: Campaign, desired: Desired, numbers: tuple[NumberView, ...]
    ) -> CampaignView:
        key = campaign.campaign_id
        counts = self._database.counts.get(key, dict.fromkeys(State, 0))
        tallies = self._database.tallies.get(key, Tallies())
        waiting = sum(counts[state] for state in _WAITING)
        ids = {desired.numbers[n].id for n in campaign.numbers if n in desired.numbers}
        rate = sum(n.rate for n in numbers if n.id in ids and n.state not in ("paused", "held"))
        return CampaignView(
            name=campaign.name,
            state=stops.shown(campaign, desired),
            reason=campaign.reason,
            planned=self._database.planned.get(key, 0),
            counts={state.word: n for state, n in counts.items()},
            accepted=tallies.accepted,
            tries=tallies.tries,
            attempts=tallies.attempts,
            possible_duplicates=tallies.possible_duplicates,
            rate=rate,
            eta_s=self._eta_s(campaign, waiting, rate),
            started_at=campaign.started_at,
            finished_at=campaign.finished_at,
            deadline=campaign.deadline,
        )

    def _eta_s(self, campaign: Campaign, waiting: int, rate: float) -> float | None:
        """At the pace of the last minute; where everybody is asleep at the rate, from the morning on."""
        at = now()
        sleeps = asleep(campaign.quiet, campaign.zones, at)
        pace = rate if sleeps else self._database.pace(campaign.campaign_id)
        if campaign.state != "running" or not waiting or not pace or pace <= 0:
            return None
        end = done_at(waiting / pace, campaign.quiet, campaign.zones, at)
        return None if end is None else (end - at).total_seconds()

    def _errors(self, at: float) -> tuple[ErrorView, ...]:
        codes = (figures.codes for figures in self._figures.numbers.values())
        return errors((*codes, self._figures.webhook_codes), at, _FIVE_MINUTES)

    def _stuck(self, desired: Desired) -> tuple[StuckBand, ...]:
        bands = []
        rows = self._database.in_flight
        for label, of in _BANDS:
            by_number = [
                (desired.numbers[k].id, of(r)) for k, r in rows.items() if of(r) and k in desired.numbers
            ]
            if by_number:
                oldest = max(r.oldest for r in rows.values())
                bands.append(StuckBand(label, sum(n for _, n in by_number), tuple(by_number), oldest))
        return tuple(bands)


def _no_rate(number: Number) -> str | None:
    return "its rate is 0" if number.rate <= 0 else None


def _state(number: Number, owner: _Owner, over: Breaker | None) -> tuple[str, str | None, float]:
    """The first that applies of paused, held, waiting, slowed, active; its reason; and how long it still lasts."""
    pipeline, wait = owner.pipeline, owner.wait
    if number.paused or (pipeline is not None and pipeline.paused_here) or number.rate <= 0:
        by_engine = number.paused and number.paused_by == "auto"
        return ("held" if by_engine else "paused"), number.pause_reason or _no_rate(number), 0.0
    if over is not None and over.state == "held":
        return "held", over.reason, 0.0
    if over is not None and over.until is not None:
        return "waiting", over.reason, (over.until - now()).total_seconds()
    if pipeline is not None and pipeline.held is not None:
        return "held", pipeline.held, 0.0
    if pipeline is not None and pipeline.silent_for > 0:
        return "waiting", "the provider asked for silence", pipeline.silent_for
    if wait is not None:
        return "waiting", f"silent node {wait.node} still has its lease", wait.seconds
    rate = pipeline.rate if pipeline else number.ceiling
    if rate is not None and rate < number.rate:
        return "slowed", f"throttled to {rate:.3g}/s of {number.rate:g}/s", 0.0
    return "active", None, 0.0


def _errors_of(figures: NumberFigures, at: float) -> tuple[int | None, float | None]:
    trends = figures.codes.trends(at)
    top = max(trends, key=lambda code: sum(trends[code]), default=None)
    answered = sum(figures.tries.last(at, 300))
    return top, (sum(figures.refused.last(at, 300)) / answered if answered else None)


def _worst(all_of_them: list[Percentiles | None]) -> Percentiles | None:
    known = [p for p in all_of_them if p is not None]
    return max(known, key=lambda p: p.p95) if known else None
