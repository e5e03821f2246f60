"""Wires one owned number: claimer → pacer → limiter → marker → gate → sender → writer, and its stops.

shelf (claimed) ──permit──► marker ──ok──► gate ──window──► request ──► writer
     │                                      │                 │
     └── given back: pause, drain           └── withdrawn     └── never cancelled
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from pydantic import SecretStr

from engine.clients.whatsapp import Passed, WhatsApp
from engine.clock import boottime, now
from engine.domain.breaker import template_key
from engine.domain.outcome import Accepted, Ambiguous, Answer, Refused, Withdrawn
from engine.observe.metrics import NodeFigures
from engine.postgres import ceilings
from engine.postgres.breakers import Breaker
from engine.postgres.claims import Permission
from engine.postgres.desired import Campaign, Number
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.postgres.send_log import Stamps
from engine.sending.claimer import Claimer
from engine.sending.conversation import Conversations
from engine.sending.database_clock import DatabaseClock
from engine.sending.gate import Gate
from engine.sending.limiter import Limiter
from engine.sending.marker import Marker
from engine.sending.pacer import Pacer
from engine.sending.provider import Provider
from engine.sending.sender import Sender
from engine.sending.sweeper import Sweeper
from engine.sending.work import Result, Work
from engine.sending.writer import Writer

LEAST = 0.25
"""messages/s that a campaign keeps, however busy the conversations are."""

SMOOTHING = 0.3
"""Weight of the newest second in the flow of conversations and inbound messages."""

PATIENCE_AT_GATE = 2.0
"""Seconds of silence that marked rows wait out; for longer ones they go back to pending."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all numbers of a node use together."""

    db: Pool
    marker: Marker
    writer: Writer
    whatsapp: WhatsApp
    figures: NodeFigures
    clock: DatabaseClock
    access_token: Callable[[str], SecretStr | str]
    campaigns: Callable[[int], Collection[Campaign]]
    """The campaigns that a number_id may send for now."""
    judge: Callable[[Work, Answer], None]
    """Looks at every answer: trips what it stops wider than its row, and holds a run that goes wrong."""
    probed: Callable[[int, bool], None]
    """What a probe of a breaker showed: accepted or not."""
    request_deadline: float
    inbound: Callable[[str], float] = lambda _: 0.0
    """Messages that people wrote to Meta's phone number id in the last second."""


class Pipeline:
    """One number, from its ready rows to its answers. Owned: it exists only while this node holds the lease."""

    def __init__(self, shared: Shared, number: Number, permission: Permission, lease_until: float) -> None:
        self.number = number
        self.permission = permission
        self.lease_until = lease_until
        """On the boottime clock: nothing may leave from then on."""
        self.paused_here = False
        """Set by an act in this process before the database knows."""
        self.in_flight = 0
        self._shared = shared
        self._figures = shared.figures.number(number.number_id)
        self._time = asyncio.get_running_loop().time
        self.provider = Provider(number.ceiling, self._figures)
        self.held: str | None = None
        """Why a person must look before this number sends again."""
        self._probe: int | None = None
        self._probe_left = False
        self._template_keys: dict[int, str] = {}
        self._opens_at = 0.0
        self._others = 0.0
        """messages/s of conversations and inbound, smoothed."""
        self._stopping = False
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
    def leading(self) -> int:
        """Rows with a permit that have not left."""
        return self._marking + len(self._gate)

    def stopped(self) -> str | None:
        """Why no request may leave now, or None: the last check before a hand-over."""
        if self._probe is None and (why := self.unfit()) is not None:
            return why
        if self.paused_here or self.number.paused or self.number.rate <= 0:
            return "the number is paused"
        return self._gone()

    def unfit(self) -> str | None:
        """Why nothing may leave, be it for a campaign or for a conversation: drain, lease, a hold of the number."""
        return self._gone() or self.held

    def _gone(self) -> str | None:
        if self._stopping:
            return "the node drains"
        return "the lease ran out" if boottime() >= self.lease_until else None

    def closed(self) -> str | None:
        """Why no row may be taken now: hold, provider, database; None while it may."""
        if self.stopped() is not None or self._probe_left:
            return "hold"
        if self._silent_for() > 0:
            return "provider"
        return None if self._shared.writer.healthy and self._shared.marker.healthy else "database"

    def _silent_for(self) -> float:
        return max(0.0, max(self.provider.silent_until, self._opens_at) - self._time())

    def _closed_for_long(self) -> bool:
        """Whether work that is ready, or marked already, should go back to pending."""
        return self.stopped() is not None or self._silent_for() > PATIENCE_AT_GATE

    @property
    def silent_for(self) -> float:
        """Seconds that the provider's silence goes on."""
        return max(0.0, self.provider.silent_until - self._time())

    # What the owner and the operator do

    def open_at(self, when: float, predecessor: list[float]) -> None:
        """First send not before `when` (loop time); `predecessor`: moments of its last sends that still count."""
        self._opens_at = when
        self._gate.seed(predecessor)

    def follow(self, number: Number, over: Breaker | None = None) -> None:
        """The number as people want it now; `over`: the breaker over it, if one is open."""
        self.number = number
        self.held = (over.reason or "held") if over is not None and over.state == "held" else None
        if over is not None and over.state == "waiting" and over.until is not None:
            self.silence((over.until - now()).total_seconds(), over.reason or "waiting")
        self._limiter.set_rate(max(self.rate, 1e-3))
        if number.paused:
            self.paused_here = False  # the database knows now, and it alone lifts the pause
        if (reason := self.stopped()) is not None:
            self._withdraw(reason)
        self.nudge()

    def pause_here(self) -> None:
        """Stop at once, before the database knows: nothing leaves after this line."""
        self.paused_here = True
        self._withdraw("the number is paused")

    def stop_here(self, reason: str) -> None:
        """Stop at once for what must be lifted, before its row is written."""
        self.held = reason
        self._withdraw(reason)

    def probe(self, breaker_id: int) -> bool:
        """Let one row through, to see whether what stopped this number is mended; False when it cannot."""
        if self._probe is not None or self.held is None:
            return False
        self._probe, self._probe_left = breaker_id, False
        if self.stopped() is not None:  # paused, or draining: no probe either
            self._probe = None
            return False
        self.nudge()
        return True

    def nudge(self) -> None:
        """Look again at once: a campaign started, a pause ended."""
        self._claimer.nudge()
        self._pacer.nudge()

    def silence(self, seconds: float, reason: str) -> None:
        """Nothing leaves for so long: the provider said so."""
        self.provider.silent_until = max(self.provider.silent_until, self._time() + seconds)
        if seconds > PATIENCE_AT_GATE:
            self._withdraw(reason)

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
        self._stopping = True
        self._withdraw("the node drains")
        await self._sweeper.empty()

    def stopping(self) -> None:
        """From now on nothing leaves; `stop` follows."""
        self._stopping = True

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

    def _mark(self, work: Work) -> None:
        work.template_key = self._template_key(work.campaign)
        if self._probe is not None:
            work.probe, self._probe_left = self._probe, True
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
        if verdict in ("ok", "again"):
            if self._closed_for_long():
                self._put_result(work, Withdrawn(self.stopped() or "the provider asked for silence"))
            else:
                self._gate.put(work)
        else:
            self._in_hand.pop(work.row.id, None)
            self._probe_over(work, accepted=False)
            if verdict == "lost":
                self.lease_until = 0.0
        self._pacer.nudge()

    def _start(self, work: Work) -> None:
        self.in_flight += 1
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

    def _probe_over(self, work: Work, *, accepted: bool) -> None:
        if work.probe is not None:
            self._probe, self._probe_left = None, False
            self._shared.probed(work.probe, accepted)

    def _withdraw(self, reason: str) -> None:
        for work in self._gate.withdraw():
            self._put_result(work, Withdrawn(reason))
