"""Wires one owned number: claimer → pacer → limiter → marker → gate → sender → writer, and its stops.

shelf (claimed) ──permit──► marker ──ok──► gate ──window──► request ──► writer
     │                                      │                 │
     └── given back: pause, drain           └── withdrawn     └── never cancelled
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog
from pydantic import SecretStr

from engine.clients.whatsapp import WhatsApp
from engine.clock import boottime
from engine.domain.outcome import Accepted, Ambiguous, Answer, NotSent, Refused, Withdrawn
from engine.observe.metrics import NodeFigures
from engine.postgres import claims
from engine.postgres.claims import Permission
from engine.postgres.desired import Campaign, Number
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.postgres.send_log import Stamps
from engine.sending.claimer import Claimer
from engine.sending.database_clock import DatabaseClock
from engine.sending.gate import Gate
from engine.sending.limiter import Limiter
from engine.sending.marker import Marker
from engine.sending.pacer import Pacer
from engine.sending.sender import Sender
from engine.sending.work import Result, Work
from engine.sending.writer import Writer

PATIENCE_AT_GATE = 2.0
"""Seconds of silence that marked rows wait out; for longer ones they go back to pending."""

UNREACHABLE_AFTER = 5
"""Requests in a row that provably did not leave, after which the number slows down."""

log = structlog.get_logger()


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
    """The running campaigns of a number_id."""
    hold_campaign: Callable[[Campaign, str], None]
    request_deadline: float


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
        self._silent_until = 0.0
        self._opens_at = 0.0
        self._stopping = False
        self._marking = 0
        self._not_sent_in_a_row = 0
        self._in_hand: dict[int, Work] = {}
        self._requests: dict[asyncio.Task[None], Work] = {}
        self._gate = Gate(lambda: self.rate, self._silent_for, self._start)
        self._claimer = Claimer(
            shared.db,
            permission,
            shared.figures,
            lambda: self.rate,
            lambda: shared.campaigns(number.number_id),
            lambda: self.closed() is None,
        )
        self._limiter = Limiter(max(self.rate, 1e-3))
        self._pacer = Pacer(self, self._claimer, self._limiter, self._figures, self._mark)
        self._sender = Sender(
            shared.whatsapp,
            self._gate,
            number.id,
            lambda: shared.access_token(self.number.token_ref),
            self.stopped,
        )

    # What the pacer asks

    @property
    def rate(self) -> float:
        """messages/s that campaigns may take now: the configured rate, and no more than the ceiling."""
        number = self.number
        return number.rate if number.ceiling is None else min(number.rate, number.ceiling)

    @property
    def leading(self) -> int:
        """Rows with a permit that have not left."""
        return self._marking + len(self._gate)

    def stopped(self) -> str | None:
        """Why no request may leave now, or None: the last check before a hand-over."""
        if self._stopping:
            return "the node drains"
        if boottime() >= self.lease_until:
            return "the lease ran out"
        if self.paused_here or self.number.paused or self.number.rate <= 0:
            return "the number is paused"
        return None

    def closed(self) -> str | None:
        """Why no row may be taken now: hold, provider, database; None while it may."""
        if self.stopped() is not None:
            return "hold"
        if self._silent_for() > 0:
            return "provider"
        return None if self._shared.writer.healthy and self._shared.marker.healthy else "database"

    def _silent_for(self) -> float:
        return max(0.0, max(self._silent_until, self._opens_at) - self._time())

    @property
    def silent_for(self) -> float:
        """Seconds that the provider's silence goes on."""
        return max(0.0, self._silent_until - self._time())

    # What the owner and the operator do

    def open_at(self, when: float, predecessor: list[float]) -> None:
        """First send not before `when` (loop time); `predecessor`: moments of its last sends that still count."""
        self._opens_at = when
        self._gate.window.seed(predecessor)

    def follow(self, number: Number) -> None:
        """The number as people want it now."""
        paused_before, self.number = self.number.paused, number
        self._limiter.set_rate(max(self.rate, 1e-3))
        if number.paused:
            self.paused_here = False  # the database knows now, and it alone lifts the pause
        if number.paused and not paused_before:
            self._withdraw("the number is paused")
        self.nudge()

    def pause_here(self) -> None:
        """Stop at once, before the database knows: nothing leaves after this line."""
        self.paused_here = True
        self._withdraw("the number is paused")

    def nudge(self) -> None:
        """Look again at once: a campaign started, a pause ended."""
        self._claimer.nudge()
        self._pacer.nudge()

    def silence(self, seconds: float, reason: str) -> None:
        """Nothing leaves for so long: the provider said so."""
        self._silent_until = max(self._silent_until, self._time() + seconds)
        if seconds > PATIENCE_AT_GATE:
            self._withdraw(reason)

    async def run(self) -> None:
        """Work until cancelled. Requests that have left are not part of this: `drained` waits for them."""
        async with asyncio.TaskGroup() as tasks:
            for standing in (self._claimer.run(), self._pacer.run(), self._gate.run(), self._tidy()):
                tasks.create_task(standing)

    async def stop(self) -> None:
        """After `run` was cancelled: take back what has not left. The rest is in flight and in the writer."""
        self._stopping = True
        self._withdraw("the node drains")
        await self._give_back(lambda _: True)

    def stopping(self) -> None:
        """From now on nothing leaves; `stop` follows."""
        self._stopping = True

    @property
    def busy(self) -> bool:
        """Whether a request is open or a mark is under way."""
        return bool(self._requests or self._marking)

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
        return [round((now - at) * 1e6) for at in self._gate.window.recent(now)]

    def cut_stamps(self) -> list[Stamps]:
        """For the send log."""
        return self._gate.cut(
            self.number.number_id, self.permission.epoch, self.number.limit, self._shared.clock
        )

    def settled(self, work: Work) -> None:
        """The row's result is stored: it is no longer in our hands."""
        self._in_hand.pop(work.row.id, None)

    # One row's way

    def _mark(self, work: Work) -> None:
        self._in_hand[work.row.id] = work
        self._marking += 1
        self._shared.marker.put(work, self._marked)

    def _marked(self, work: Work, verdict: str) -> None:
        self._marking -= 1
        if verdict in ("ok", "again"):
            if (reason := self.stopped()) is not None:
                self._put_result(work, Withdrawn(reason))
            else:
                self._gate.put(work)
        else:
            self._in_hand.pop(work.row.id, None)
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
        figures = self._figures
        if work.sent_at:
            figures.tries.add(work.sent_at)
            figures.latency.add(now, now - work.sent_at)
        match answer:
            case Accepted():
                figures.accepted.add(now)
                figures.last_accepted = now
                self._not_sent_in_a_row = 0
            case Refused(code=code):
                figures.refused.add(now)
                figures.codes.add(now, code)
                self._not_sent_in_a_row = 0
            case NotSent(reason=reason):
                self._not_sent_in_a_row += 1
                if self._not_sent_in_a_row >= UNREACHABLE_AFTER:
                    self.silence(min(10.0, 0.5 * 2 ** (self._not_sent_in_a_row - UNREACHABLE_AFTER)), reason)
        if decided.wait and not isinstance(answer, NotSent):
            self.silence(decided.wait, f"{decided.code} asked for silence")
        if decided.hold is not None:
            self._shared.hold_campaign(work.campaign, decided.hold)

    # Stops

    def _withdraw(self, reason: str) -> None:
        for work in self._gate.withdraw():
            self._put_result(work, Withdrawn(reason))

    async def _give_back(self, unwanted: Callable[[Work], bool]) -> None:
        rows = self._claimer.drop(unwanted)
        if self._stopping and self._pacer.holding is not None:
            rows.append(self._pacer.holding)
            self._pacer.holding = None
        if not rows:
            return
        try:
            await claims.give_back(self._shared.db, self.permission, [w.row.id for w in rows])
        except DATABASE_FAULTS as error:  # the sweep, or the next owner's rescue, finds them
            log.warning("claimed rows not given back", rows=len(rows), error=type(error).__name__)

    async def _tidy(self) -> None:
        """Once a second: no claimed row lies on the shelf of a number or campaign that is stopped.
        Every five: rows of ours that nobody has in hand are settled."""
        beat = 0
        while True:
            await asyncio.sleep(1.0)
            beat += 1
            if self.closed() == "hold":
                await self._give_back(lambda _: True)
            else:
                await self._give_back(self._is_over)
            if beat % 5 == 0:
                await self._sweep()

    def _is_over(self, work: Work) -> bool:
        campaigns = self._shared.campaigns(self.number.number_id)
        return all(work.campaign.campaign_id != campaign.campaign_id for campaign in campaigns)

    async def _sweep(self) -> None:
        held = [work.row.id for work in self._claimer.rows()]
        if self._pacer.holding is not None:
            held.append(self._pacer.holding.row.id)
        try:
            freed, doubted = await claims.sweep(
                self._shared.db,
                self.permission,
                held + list(self._in_hand),
                self._shared.request_deadline + 10.0,
            )
        except DATABASE_FAULTS:
            return
        if freed or doubted:
            log.warning("rows without a hand", number=self.number.id, freed=freed, doubted=doubted)
