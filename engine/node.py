"""One node's engine: everything that stands and runs in one loop, how it starts, how it is stopped, how it ends.

follower (what people want) ─► ownership (leases) ─► a pipeline for each number ─► marker, writer
receiver ─► inbox ─► applier                        jobs                           viewer ─► snapshot
"""

import asyncio
import os
import random
import socket
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import structlog
from pydantic import SecretStr

from engine.acts import ActDesk, Hands
from engine.clients.whatsapp import WhatsApp
from engine.clock import now
from engine.commands import Commands
from engine.config import Config, RunOptions
from engine.control import jobs, stops
from engine.control.follower import Follower
from engine.control.inbound_rate import InboundRate
from engine.control.reconcile import Limits
from engine.credentials import CredentialError, Credentials
from engine.domain.act import Act
from engine.domain.errors import Scope
from engine.domain.outcome import Next, Refused
from engine.domain.snapshot import Snapshot
from engine.judge import Judge
from engine.observe.alerts import Alerts
from engine.observe.figures import DatabaseFigures
from engine.observe.metrics import NodeFigures
from engine.observe.prometheus import WebhookCounts
from engine.observe.recall import Recall
from engine.observe.watchdog import Open, WorkWatch, watch_rounds
from engine.postgres.desired import Desired
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.nodes import Identity
from engine.postgres.pool import Pool
from engine.postgres.send_log import Stamps
from engine.sending.database_clock import DatabaseClock
from engine.sending.marker import Marker
from engine.sending.ownership import Node, Ownership
from engine.sending.pipeline import Pipeline
from engine.sending.shared import Shared
from engine.sending.work import Result
from engine.sending.writer import Writer
from engine.views import Viewer
from engine.watch import Watch, open_work

PUBLISH = 0.5
"""Seconds between snapshots; an act publishes at once."""

THROUGHPUT = (Scope.NUMBER_THROUGHPUT, Scope.ACCOUNT_THROUGHPUT)

END = 5.0
"""Seconds that the end of a standing task may take; what is still at it then ends with the process."""

log = structlog.get_logger()


class Engine:
    """Built inside its loop, on an open pool and an open client. `run` returns when it has drained."""

    def __init__(
        self,
        config: Config,
        options: RunOptions,
        db: Pool,
        whatsapp: WhatsApp,
        commands: Commands,
        author: str,
    ) -> None:
        self.config = config
        self.options = options
        self.latest: Snapshot | None = None
        """Replaced as a whole; other threads may read it at any time."""
        self.why_draining: str | None = None
        self.fault: BaseException | None = None
        """What killed a standing task, if one died."""
        self.db = db
        self._drain_asked = asyncio.Event()
        self._seq = 0
        self._late_s = 0.0
        self._credentials = Credentials()
        self.figures = NodeFigures()
        self.database = DatabaseFigures(db, config.alerts, self.figures.stalls)
        self.follower = Follower(db, self._follow, self._replay_pauses)
        self.clock = DatabaseClock()
        self.inbound = InboundRate()
        """What people write to each number, whoever applies it."""
        self.marker = Marker(db, self.figures)
        self.writer = Writer(db, self.figures, random.Random(), self._cut_stamps, self._written)
        self._judge = Judge(
            db,
            self.follower,
            self.database,
            self.pipelines,
            self.access_token,
            self._event,
        )
        self.identity = Identity(uuid4(), config.node, socket.gethostname(), os.getpid(), config.advertise)
        self.ownership = Ownership(
            self._shared(whatsapp),
            Node(self.identity, config.lease),
            lambda: self.follower.desired.numbers,
            db,
            self._event,
        )
        self._alerts = Alerts(config.alerts)
        self._watch = Watch(self.figures, self.database)
        self._work = WorkWatch(self._open_work)
        self._recall = Recall(self.figures)
        self._viewer = Viewer(self.identity, author, self.figures, self.database)
        self.desk = ActDesk(
            Hands(
                commands,
                self.follower,
                self._alerts,
                self.ownership.pipelines,
                self.drain,
                author,
                options.read_only,
            ),
            self._publish,
        )
        self.commands = commands
        self.webhooks: WebhookCounts | None = None
        """What the applier has counted; None without one."""
        self.webhook_answers: Mapping[int, int] = {}
        """Webhook requests by HTTP status; the receiver's."""
        self._watched: list[asyncio.Task[None]] = []
        self._also: list[Coroutine[Any, Any, None]] = []

    def _shared(self, whatsapp: WhatsApp) -> Shared:
        """What every pipeline of this node is built on."""
        return Shared(
            db=self.db,
            marker=self.marker,
            writer=self.writer,
            whatsapp=whatsapp,
            figures=self.figures,
            clock=self.clock,
            access_token=self.access_token,
            campaigns=self.follower.running,
            judge=self._judge.judge,
            probed=self._judge.probed,
            warm=whatsapp.warm,
            connected=lambda: self.follower.healthy,
            request_deadline=self.config.request_deadline,
            inbound=lambda number: self.inbound.of(number, asyncio.get_running_loop().time()),
        )

    # Life

    def watch(self, task: asyncio.Task[None]) -> None:
        """A standing task of somebody else: its death ends the node, its end is not ours to bring about."""
        self._watched.append(task)

    def stand(self, work: Coroutine[Any, Any, None]) -> None:
        """One more standing task, to be run by `run`: its death ends the node."""
        self._also.append(work)

    async def run(self) -> None:
        """Work until a drain is asked for or a standing task dies; then drain."""
        await self._start()
        standing = [
            asyncio.create_task(work)
            for work in (
                self.follower.run(),
                self.ownership.run(),
                self.database.run(),
                self._judge.run(),
                self._publish_for_ever(),
                self._work.run(),
                watch_rounds(
                    {"the ownership of numbers": self.ownership.rounds, "the follower": self.follower.rounds}
                ),
                *self._also,
            )
        ]
        standing += [asyncio.create_task(jobs.run(job, self.db, self.identity.id)) for job in self._jobs()]
        inner = [asyncio.create_task(self.marker.run()), asyncio.create_task(self.writer.run())]
        asked = asyncio.create_task(self._drain_asked.wait())
        watched: list[asyncio.Future[Any]] = [
            *standing,
            *inner,
            *self._watched,
            asked,
            self.ownership.failure,
        ]
        try:
            done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            self._note_fault(done - {asked})
        finally:
            self.drain("a standing task died")
            await _end([*standing, asked])
            await self._drain()
            await _end(inner)

    def _jobs(self) -> list[jobs.Job]:
        limits = Limits(self.config.unknown_floor, self.config.request_deadline)
        return jobs.standing_jobs(self.db, limits, self.follower)

    async def _start(self) -> None:
        await self._replay_pauses()
        await self.follower.refresh()
        await self.clock.sample(self.db)

    async def _replay_pauses(self) -> None:
        for number in await self.commands.replay_pauses():
            log.warning("a pause kept beside the database was replayed", number=number)

    def drain(self, reason: str) -> None:
        """Ask for the end: no new request, the open ones finish, results are written. From the loop only."""
        self.why_draining = self.why_draining or reason
        self.ownership.draining = True
        for pipeline in self.ownership.pipelines():
            pipeline.stopping()
        self._drain_asked.set()

    def submit(self, act_id: str, act: Act, submitted_at: float) -> None:
        """An operator's act. From the loop only; `submitted_at` is loop time."""
        self.desk.submit(act_id, act, submitted_at)

    async def _drain(self) -> None:
        """Withdraw, give back, wait for the open requests, write, release: in that order."""
        log.info("draining", reason=self.why_draining)
        ends_at = asyncio.get_running_loop().time() + self.config.grace
        late = await self.ownership.halt()
        pipelines = self.ownership.pipelines()
        try:
            async with asyncio.timeout_at(ends_at):
                await asyncio.gather(*(pipeline.drained() for pipeline in pipelines))
        except TimeoutError:
            left = sum(pipeline.abandon() for pipeline in pipelines)
            log.warning("the grace is over; requests without an answer become unknown", requests=left)
        try:
            # With the writer's loop dead there is still its buffer; a grace of its own for a slow database.
            async with asyncio.timeout(max(5.0, ends_at - asyncio.get_running_loop().time())):
                await self.writer.flush_all()
                await self.ownership.release()
        except DATABASE_FAULTS as error:
            log.error(
                "not everything could be written", results=self.writer.backlog, error=type(error).__name__
            )
            self.db.terminate()  # whoever still waits for it would hold up the end, for minutes where it hangs
        await _end(list(late))
        self._publish()

    def _note_fault(self, done: set[Any]) -> None:
        for task in done:
            self.fault = task.exception() or RuntimeError(f"a standing task ended: {task}")
            log.error("a standing task died; the node drains", exc_info=self.fault)

    # What the parts ask of each other

    def _follow(self, desired: Desired) -> None:
        counted = {number.id: number.inbound for number in desired.numbers.values()}
        self.inbound.see(counted, asyncio.get_running_loop().time())
        open_now = {(b.scope, b.key): b for b in desired.breakers}
        for pipeline in self.ownership.pipelines():
            number = desired.numbers.get(pipeline.number.number_id)
            if number is not None:
                pipeline.follow(number, stops.number_stop(number, open_now))

    def _cut_stamps(self) -> list[Stamps]:
        return [stamps for pipeline in self.ownership.pipelines() for stamps in pipeline.cut_stamps()]

    def _written(self, batch: Sequence[tuple[Result, Next]]) -> None:
        pipelines = {p.permission: p for p in self.ownership.pipelines()}
        at = asyncio.get_running_loop().time()
        for result, decided in batch:
            figures = self.figures.number(result.work.permission.number_id)
            answer = result.answer
            throttled = isinstance(answer, Refused) and answer.meaning.scope in THROUGHPUT
            figures.stored(at, decided.outcome, decided.code, throttled=throttled)
            pipeline = pipelines.get(result.work.permission)
            if pipeline is not None:
                pipeline.settled(result.work)

    def access_token(self, reference: str) -> SecretStr | str:
        """The token of a reference, or the sentence that says why there is none."""
        try:
            return self._credentials.resolve(reference)
        except CredentialError as error:
            return str(error)

    def _event(self, text: str) -> None:
        self.desk.event("auto", text)

    def acknowledge(self, key: str | None, author: str) -> None:
        """An alert, or all with None, that somebody took on at a screen elsewhere."""
        if self._alerts.acknowledge(key, author):
            self._publish()

    async def ready(self) -> str | None:
        """None when this node owns or can own numbers; else why not: for /readyz."""
        if self.why_draining is not None:
            return "draining"
        return self._work.suspect if self.follower.healthy else "the database does not answer"

    def _open_work(self) -> Mapping[str, Open]:
        due = self.database.lanes_due(asyncio.get_running_loop().time())
        return open_work(self.ownership.current(), self.follower.running, due, self.config.request_deadline)

    # What is seen

    async def _publish_for_ever(self) -> None:
        time = asyncio.get_running_loop().time
        while True:
            self._publish()
            due = time() + PUBLISH
            await asyncio.sleep(PUBLISH)
            self._late_s = max(0.0, time() - due)
            self.figures.loop_lag.add(time(), self._late_s)

    def _publish(self) -> None:
        self._seq += 1
        owned = {key: one.pipeline for key, one in self.ownership.owned.items()}
        bare = self._viewer.snapshot(
            self._seq,
            self.follower.desired,
            self.ownership.rows,
            owned,
            self.ownership.waits(),
            draining=self.why_draining is not None,
            read_only=self.options.read_only,
        )
        at = asyncio.get_running_loop().time()
        delays = self.webhooks.delay if self.webhooks is not None else None
        watched = replace(
            self._watch.complete(bare, self.follower.desired, self.ownership.lost),
            loop_lag_s=self._late_s,
            results_backlog=self.writer.backlog,
            sent_to_delivered=delays.percentiles(at) if delays is not None else None,
        )
        keys = {number.id: key for key, number in self.follower.desired.numbers.items()}
        whole = self._recall.complete(watched, keys, at, delays)
        self.latest = replace(
            whole,
            alerts=self._alerts.judge(whole, now()),
            acts=tuple(self.desk.acts),
            events=tuple(self.desk.events),
            reconcile=dict(self.desk.reconciles),
        )

    def number_names(self) -> Mapping[int, str]:
        """Meta's number id by number_id."""
        return {key: number.id for key, number in self.follower.desired.numbers.items()}

    def campaign_names(self) -> Mapping[int, str]:
        """Name by campaign_id."""
        return {key: campaign.name for key, campaign in self.follower.desired.campaigns.items()}

    def pipelines(self) -> list[Pipeline]:
        """Of the numbers that this node owns."""
        return self.ownership.pipelines()


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel, and wait for their ends, but not for a database that hangs."""
    for task in tasks:
        task.cancel()
    if tasks:
        ended, _ = await asyncio.wait(tasks, timeout=END)
        for task in ended:
            task.cancelled() or task.exception()
