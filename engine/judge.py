"""Looks at every answer of this node: trips what an error stops, holds runs that go wrong, probes what may be mended.

The decisions are pure (engine.domain), the facts are rows (breaker, campaign), and pipelines follow the rows.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog

from engine.clock import now
from engine.control import stops
from engine.control.follower import Follower
from engine.domain.breaker import Stop, country_key, over_number, probe_time, template_key
from engine.domain.errors import STOPS, Scope
from engine.domain.health import Health, budget_spent
from engine.domain.outcome import ACCOUNT_WAIT, Accepted, Answer, Refused, hold_reason
from engine.observe.figures import DatabaseFigures
from engine.postgres import breakers, holds
from engine.postgres.breakers import Breaker
from engine.postgres.desired import Campaign, Number
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.sending.pipeline import Pipeline
from engine.sending.work import Work

PROBE_SECONDS = 60.0
"""How long one probe may take before another node may try."""

PROBE_AGAIN = timedelta(minutes=15)
"""After a probe that was refused."""

log = structlog.get_logger()


class Judge:
    """One for a node."""

    def __init__(
        self,
        db: Pool,
        follower: Follower,
        figures: DatabaseFigures,
        pipelines: Callable[[], Iterable[Pipeline]],
        token_of: Callable[[str], object],
        event: Callable[[str], None],
    ) -> None:
        """`token_of`: the present token of a reference, in a form that can be compared. `event`: a line to show."""
        self._db = db
        self._follower = follower
        self._figures = figures
        self._pipelines = pipelines
        self._token_of = token_of
        self._event = event
        self._health: dict[int, Health] = {}
        self._tripping: set[tuple[Scope, str]] = set()
        self._refused_tokens: dict[str, object] = {}
        self._running: set[asyncio.Task[None]] = set()

    def judge(self, work: Work, answer: Answer) -> None:
        """Take in one answer about one row."""
        health = self._health.setdefault(work.campaign.campaign_id, Health())
        if isinstance(answer, Accepted):
            health.good()
        elif isinstance(answer, Refused):
            stop = self._stop(work, answer)
            if stop is not None:
                self._trip(stop, work)
                return
            reason = health.refused(asyncio.get_running_loop().time(), answer.code, answer.meaning)
            if reason is not None:
                self._hold(work.campaign, reason, holds.FAILURES)

    def probed(self, breaker_id: int, accepted: bool) -> None:
        """What the one request of a probe showed."""
        self._start(self._settle_probe(breaker_id, accepted))

    async def run(self) -> None:
        """Once a second: probe what may be mended, and look at the budgets."""
        while True:
            await asyncio.sleep(1.0)
            try:
                for breaker in self._follower.desired.breakers:
                    if breaker.state == "held":
                        await self._probe(breaker)
            except DATABASE_FAULTS as error:
                log.warning("probes wait for the database", error=type(error).__name__)
            self._look_at_budgets()

    # What an answer stops

    def _stop(self, work: Work, answer: Refused) -> Stop | None:
        scope, code, reason = answer.meaning.scope, answer.code, hold_reason(answer)
        number = self._follower.desired.numbers.get(work.permission.number_id)
        if number is None:
            return None
        if scope is Scope.ACCOUNT_THROUGHPUT:
            wait = (
                answer.retry_after
                if answer.retry_after is not None
                else answer.meaning.wait_s or ACCOUNT_WAIT
            )
            return Stop(Scope.ACCOUNT, number.account, code, reason, until=now() + timedelta(seconds=wait))
        if scope not in STOPS:
            return None
        return Stop(scope, _key(scope, number, work), code, reason, probe_at=probe_time(code, now()))

    def _trip(self, stop: Stop, work: Work) -> None:
        """At once for the numbers of this node, then as a row for all."""
        for pipeline in self._pipelines():
            self._stop_here(pipeline, stop)
        if stop.scope is Scope.CREDENTIAL:
            self._refused_tokens[stop.key] = self._token_of(stop.key)
        place = (stop.scope, stop.key)
        if place not in self._tripping:  # the rest of the requests in flight say the same
            self._tripping.add(place)
            left = now() - timedelta(seconds=asyncio.get_running_loop().time() - work.sent_at)
            self._start(self._keep(stop, left))

    def _stop_here(self, pipeline: Pipeline, stop: Stop) -> None:
        number = pipeline.number
        if over_number(number.id, number.account, number.token_ref).get(stop.scope) != stop.key:
            return
        if stop.until is None:
            pipeline.stop_here(stop.reason)
        else:
            pipeline.silence((stop.until - now()).total_seconds(), stop.reason)

    async def _keep(self, stop: Stop, left: Any) -> None:
        try:
            async with self._db.acquire() as db, db.transaction():
                tripped = await breakers.trip(db, stop, left)
            if tripped:
                log.error("held", scope=stop.scope.value, key=stop.key, reason=stop.reason)
                self._event(f"HELD {stop.scope.value} {stop.key}: {stop.reason}")
            await self._follower.refresh()
        except DATABASE_FAULTS as error:
            # The rows are pending and the next refusal says it again; nothing is lost but time.
            log.error("a hold could not be kept", scope=stop.scope.value, error=type(error).__name__)
        finally:
            self._tripping.discard((stop.scope, stop.key))

    # What a run stops

    def _hold(self, campaign: Campaign, reason: str, held_by: str) -> None:
        if campaign.campaign_id in {c.campaign_id for c in self._follower.desired.campaigns.values()}:
            self._follower.forget(campaign.campaign_id)
            self._health.pop(campaign.campaign_id, None)  # judged anew when a person resumes it
            self._start(self._keep_hold(campaign, reason, held_by))

    async def _keep_hold(self, campaign: Campaign, reason: str, held_by: str) -> None:
        while True:
            try:
                if await holds.hold(self._db, campaign.campaign_id, reason, held_by):
                    log.error("campaign held", campaign=campaign.name, reason=reason)
                    self._event(f"HELD {campaign.name}: {reason}")
                return
            except DATABASE_FAULTS:
                await asyncio.sleep(1.0)

    def _look_at_budgets(self) -> None:
        for campaign in self._follower.desired.campaigns.values():
            tallies = self._figures.tallies.get(campaign.campaign_id)
            if campaign.state == "running" and tallies is not None:
                reason = budget_spent(tallies.tries, campaign.planned, campaign.try_budget)
                if reason is not None:
                    self._hold(campaign, reason, holds.BUDGET)

    # What may be mended

    async def _probe(self, breaker: Breaker) -> None:
        if breaker.scope is Scope.CREDENTIAL and self._is_another_token(breaker.key):
            await breakers.expect_probe(self._db, breaker.breaker_id)
        elif breaker.until is None or breaker.until > now():
            return
        under = [p for p in self._pipelines() if self._is_over(breaker, p)]
        if under and await breakers.take_probe(self._db, breaker.breaker_id, uuid4(), PROBE_SECONDS):
            log.info("probing", scope=breaker.scope.value, key=breaker.key)
            self._refused_tokens[breaker.key] = self._token_of(breaker.key)
            if not any(pipeline.probe(breaker.breaker_id) for pipeline in under):
                log.info("no row or number to probe with", scope=breaker.scope.value)

    def _is_another_token(self, reference: str) -> bool:
        """Whether the token is not the one that was refused; after a restart nobody knows, and one look is right."""
        token = self._token_of(reference)
        return token is not None and token != self._refused_tokens.get(reference)

    def _is_over(self, breaker: Breaker, pipeline: Pipeline) -> bool:
        over = stops.number_stop(pipeline.number, {(breaker.scope, breaker.key): breaker})
        return over is not None

    async def _settle_probe(self, breaker_id: int, accepted: bool) -> None:
        breaker = next((b for b in self._follower.desired.breakers if b.breaker_id == breaker_id), None)
        if breaker is None:
            return
        try:
            async with self._db.acquire() as db, db.transaction():
                if accepted:
                    await breakers.heal(db, breaker.scope, breaker.key, now(), "a probe was accepted")
                else:
                    heals = breaker.until is not None and breaker.scope is not Scope.CREDENTIAL
                    await breakers.probe_failed(db, breaker_id, now() + PROBE_AGAIN if heals else None)
            await self._follower.refresh()
        except DATABASE_FAULTS as error:
            log.error("a probe's result could not be kept", error=type(error).__name__)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)


def _key(scope: Scope, number: Number, work: Work) -> str:
    campaign = work.campaign
    match scope:
        case Scope.TEMPLATE:
            return template_key(number.account, campaign.template, campaign.language)
        case Scope.COUNTRY:
            return country_key(number.account, work.country)
        case _:
            return over_number(number.id, number.account, number.token_ref)[scope]
