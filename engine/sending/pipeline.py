"""Wires one owned number: claimer → pacer → limiter → marker → gate → sender → writer, and its stops.

shelf (claimed) ──permit──► marker ──ok──► gate ──window──► request ──► writer
     │                                      │                 │
     └── given back: pause, drain           └── withdrawn     └── never cancelled
"""

import asyncio
import math
from contextlib import suppress

from engine.clients.transport import IDLE_TIMEOUT
from engine.clients.whatsapp import Passed
from engine.clock import now
from engine.domain.breaker import template_key
from engine.domain.outcome import Accepted, Ambiguous, Answer, Refused, Withdrawn
from engine.postgres import ceilings
from engine.postgres.breakers import Breaker
from engine.postgres.claims import Permission
from engine.postgres.desired import Campaign, Number
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.send_log import Stamps
from engine.sending.claimer import Claimer
from engine.sending.conversation import Conversations
from engine.sending.gate import Gate
from engine.sending.limiter import Limiter
from engine.sending.pacer import Pacer
from engine.sending.sender import Sender
from engine.sending.shared import Shared
from engine.sending.stops import Stops
from engine.sending.sweeper import Sweeper
from engine.sending.work import Result, Work

LEAST = 0.25
"""messages/s that a campaign keeps, however busy the conversations are."""

COLD_AFTER = IDLE_TIMEOUT - 5.0
"""Seconds of rest after which connections may have been closed."""

WARM_LATENCY = 0.5
"""Seconds assumed until answers have been measured: so much work is in flight, one connection each."""

WARM_MOST = 500
WARM_PATIENCE = 3.0
"""Seconds that opening them may hold up the first row."""

SMOOTHING = 0.3
"""Weight of the newest second in the flow of conversations and inbound messages."""


class Pipeline(Stops):
    """One number, from its ready rows to its answers. Owned: it exists only while this node holds the lease."""

    def __init__(self, shared: Shared, number: Number, permission: Permission, lease_until: float) -> None:
        self._figures = shared.figures.number(number.number_id)
        super().__init__(shared, number, lease_until, self._figures)
        self.permission = permission
        self.in_flight = 0
        self._moved = 0
        self._template_keys: dict[int, str] = {}
        self._others = 0.0
        """messages/s of conversations and inbound, smoothed."""
        self._worked_at = float("-inf")
        self._marking = 0
        self._in_hand: dict[int, Work] = {}
        self._requests: dict[asyncio.Task[None], Work] = {}
        self._gate = Gate(lambda: self.rate, lambda: self.number.limit, self._silent_for, self._start)
        self._claimer = Claimer(
            shared.db,
            permission,
            shared.figures,
            lambda: self.rate,
            lambda: shared.campaigns(number.number_id),
            lambda: self.closed() is None,
        )
        self._limiter = Limiter(max(self.rate, 1e-3))
        self.conversations = Conversations(
            shared.whatsapp, self._gate, number.id, self.unfit, self._silent_for, self._conversation_answered
        )
        self._pacer = Pacer(self, self._claimer, self._limiter, self._figures, self._mark)
        self._sender = Sender(
            shared.whatsapp,
            self._gate,
            number.id,
            lambda: shared.access_token(self.number.token_ref),
            self.stopped,
        )
        self._sweeper = Sweeper(
            shared.db,
            permission,
            number,
            self._claimer,
            self._pacer,
            lambda: shared.campaigns(number.number_id),
            self._closed_for_long,
            lambda: list(self._in_hand),
            shared.request_deadline,
        )

    # What the pacer asks

    @property
    def rate(self) -> float:
        """messages/s that campaigns may take now: the configured rate, and no more than the ceiling."""
        number = self.number
        return max(min(self.provider.rate(number.rate), number.limit - self._others), min(LEAST, number.rate))

    @property
    def moved(self) -> int:
        """Grows with whatever happens to a row: a verdict of the mark, a hand-over, an answer; and when a claim finds
        none, for then they are in other hands."""
        return self._moved + self._claimer.found_none

    @property
    def leading(self) -> int:
        """Rows with a permit that have not left."""
        return self._marking + len(self._gate)

    # What the owner and the operator do

    def open_at(self, when: float, predecessor: list[float]) -> None:
        """First send not before `when` (loop time); `predecessor`: moments of its last sends that still count."""
        self._opens_at = when
        self._gate.seed(predecessor)

    def follow(self, number: Number, over: Breaker | None = None) -> None:
        """The number as people want it now; `over`: the breaker over it, if one is open."""
        self.number = number
        if over is not None and over.state == "held":
            self.held = over.reason or "held"
        elif self._time() >= self._held_here_until:
            self.held = None
        if over is not None and over.state == "waiting" and over.until is not None:
            self.silence((over.until - now()).total_seconds(), over.reason or "waiting")
        self._limiter.set_rate(max(self.rate, 1e-3))
        if number.paused:
            self.paused_here = False  # the database knows now, and it alone lifts the pause
        if (reason := self.stopped()) is not None:
            self._withdraw(reason)
        self.nudge()

    def nudge(self) -> None:
        """Look again at once: a campaign started, a pause ended."""
        self._claimer.nudge()
        self._pacer.nudge()

    async def run(self) -> None:
        """Work until cancelled. Requests that have left are not part of this: `drained` waits for them."""
        async with asyncio.TaskGroup() as tasks:
            for standing in (
                self._claimer.run(),
                self._pacer.run(),
                self._gate.run(),
                self._sweeper.run(),
                self._adapt(),
            ):
                tasks.create_task(standing)

    async def stop(self) -> None:
        """After `run` was cancelled: take back what has not left. The rest is in flight and in the writer."""
        self.stopping()
        await self._sweeper.empty()

    def stopping(self) -> None:
        """From now on nothing leaves; `stop` follows."""
        self._stopping = True
        self._withdraw("the node drains")

    @property
    def busy(self) -> bool:
        """Whether a request is open or a mark is under way."""
        return bool(self._requests or self._marking or self.conversations.open)

    async def drained(self) -> None:
        """Wait until every request is answered and every mark has come back."""
        while self.busy:
            if self._requests:
                await asyncio.wait(set(self._requests), timeout=0.25)
            else:
                await asyncio.sleep(0.01)

    def abandon(self) -> int:
        """The grace is over: requests without an answer become unknown. Returns how many."""
        left = list(self._requests.items())
        for task, work in left:
            task.cancel()  # the request itself cannot be taken back, and may well be answered
            self._put_result(work, Ambiguous("the node ended before the answer came"))
        return len(left)

    def recent_us(self) -> list[int]:
        """Ages, in microseconds, of the sends that a successor must count."""
        now = self._time()
        return [round((now - at) * 1e6) for at in self._gate.everything.recent(now)]

    def cut_stamps(self) -> list[Stamps]:
        """For the send log."""
        return self._gate.cut(
            self.number.number_id, self.permission.epoch, self.number.limit, self._shared.clock
        )

    def settled(self, work: Work) -> None:
        """The row's result is stored: it is no longer in our hands."""
        self._in_hand.pop(work.row.id, None)

    # One row's way

    async def _adapt(self) -> None:
        """Once a second: search upward for the grant, and keep what was found for the next owner."""
        kept = self.number.ceiling
        while True:
            await asyncio.sleep(1.0)
            self.provider.look_up(self._time(), self.number.rate)
            self._make_room()
            self._limiter.set_rate(max(self.rate, 1e-3))
            level = self.provider.ceiling.level
            if level == kept:
                continue
            try:
                await ceilings.keep(self._shared.db, self.permission, level)
                kept = level
            except DATABASE_FAULTS:
                continue

    async def warmed(self) -> None:
        """A handshake is lateness: sends over new connections would arrive together with later ones over old."""
        rested, self._worked_at = self._time() - self._worked_at, self._time()
        if self._shared.warm is None or rested < COLD_AFTER:
            return
        latency = self._figures.latency.percentiles(self._time())
        wanted = math.ceil(self.rate * (latency.p95 if latency else WARM_LATENCY)) + 1
        with suppress(TimeoutError):
            async with asyncio.timeout(WARM_PATIENCE):
                await self._shared.warm(min(wanted, WARM_MOST))

    def _mark(self, work: Work) -> None:
        work.template_key = self._template_key(work.campaign)
        work.spaced = self.conversations.wrote_lately(work.row.phone)
        self._probe_with(work)
        self._in_hand[work.row.id] = work
        self._marking += 1
        self._shared.marker.put(work, self._marked)

    def _make_room(self) -> None:
        """Conversations and what people write to us count against the provider's limit, smoothed over some seconds."""
        others = self._gate.conversations_last_second() + self._shared.inbound(self.number.id)
        self._others += (others - self._others) * SMOOTHING

    def _conversation_answered(self, passed: Passed) -> None:
        now, answer = self._time(), passed.read()
        if isinstance(answer, Refused):
            wait = answer.retry_after if answer.retry_after is not None else 1.0
            if self.provider.throttled(answer, now, self.number.rate):
                self.silence(wait, f"the provider asked for silence ({answer.code})")

    def _template_key(self, campaign: Campaign) -> str:
        key = self._template_keys.get(campaign.campaign_id)
        if key is None:
            key = template_key(self.number.account, campaign.template, campaign.language)
            self._template_keys[campaign.campaign_id] = key
        return key

    def _marked(self, work: Work, verdict: str) -> None:
        self._marking -= 1
        self._moved += 1
        if verdict in ("ok", "again"):
            if self._closed_for_long():
                self._put_result(work, Withdrawn(self.stopped() or "the provider asked for silence"))
            else:
                self._gate.put(work)
        elif verdict == "late":
            self.lease_until = 0.0
            self._put_result(work, Withdrawn("the lease ran out"))
        else:
            self._in_hand.pop(work.row.id, None)
            self._probe_over(work, accepted=False)
            if verdict == "lost":
                self.lease_until = 0.0
        self._pacer.nudge()

    def _start(self, work: Work) -> None:
        self.in_flight += 1
        self._moved += 1
        task = asyncio.create_task(self._story(work))
        self._requests[task] = work
        task.add_done_callback(self._requests.pop)

    async def _story(self, work: Work) -> None:
        answer = await self._sender.send(work)
        self.in_flight -= 1
        self._put_result(work, answer)
        self._pacer.nudge()

    def _put_result(self, work: Work, answer: Answer) -> None:
        now = self._time()
        self._moved += 1
        decided = self._shared.writer.put(Result(work, answer, now))
        if work.sent_at:
            self._figures.tries.add(work.sent_at)
            self._figures.latency.add(now, now - work.sent_at)
        wait = self.provider.answered(answer, decided, now, self.number.rate)
        self._limiter.set_rate(max(self.rate, 1e-3))
        if wait > 0:
            self.silence(wait, f"the provider asked for silence ({decided.code or 'not reached'})")
        self._shared.judge(work, answer)
        self._probe_over(work, accepted=isinstance(answer, Accepted))

    def _withdraw(self, reason: str) -> None:
        for work in self._gate.withdraw():
            self._put_result(work, Withdrawn(reason))
