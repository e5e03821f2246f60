"""Posts webhooks: statuses when they are due, in signed bodies, again and again until they are taken.

One heap and one 10 ms tick serve all messages: at 1,500 sends a second a task for each status would be
4,500 tasks started a second and some 30,000 alive.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from datetime import timedelta
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError

from engine.simulator import wire
from engine.simulator.ledger import Ledger
from engine.simulator.scenario import Access, Failure, Scenario, Statuses
from engine.simulator.statuses import Planned

TICK_S = 0.01
STATUSES_A_CHANGE = 40
# While so many bodies wait to be posted again, due statuses stay in their compact form: a receiver that is
# down for an hour must not fill the memory with bodies.
MOST_RETRIES = 200


class Body(NamedTuple):
    """A webhook body and what it tells."""

    data: bytes
    kinds: Counter[str]
    since_us: int
    tries: int = 0


class _Due(NamedTuple):
    due_us: int
    order: int  # unique, so that a comparison never reaches the fields after it
    n: int
    kind: str
    failure: Failure | None


class Post(Protocol):
    """Posts one signed body. Returns None when it was answered with 200, else the reason in a few words."""

    async def __call__(self, url: str, body: bytes, signature: str, timeout_s: float) -> str | None: ...


class Webhooks:
    """The queue of everything to be told. `now_us` is the ledger's monotonic clock."""

    def __init__(
        self, ledger: Ledger, scenario: Scenario, access: Access, now_us: Callable[[], int], post: Post
    ):
        self._ledger, self._now_us, self._post = ledger, now_us, post
        self._scenario, self._access = scenario, access
        self._later: list[_Due] = []
        self._ready: deque[_Due] = deque()
        self._urgent: deque[Body] = deque()
        self._retries: list[tuple[int, int, Body]] = []
        self._order = 0
        self._timer: asyncio.TimerHandle | None = None
        self._posting: set[asyncio.Task[None]] = set()
        self.told: Counter[str] = Counter()
        self.bodies: Counter[str] = Counter(posted=0, refused=0, dropped=0)
        self.last_refusal: str | None = None

    def replace(self, scenario: Scenario, access: Access) -> None:
        """Go on under another scenario; what was planned stays planned."""
        self._scenario, self._access = scenario, access

    def plan(self, n: int, at_us: int, planned: list[Planned]) -> None:
        """Tell the statuses of ledger entry `n`, counted from `at_us`."""
        if not self._access.webhook:
            return
        for delay_us, kind, failure in planned:
            self._order += 1
            heappush(self._later, _Due(at_us + delay_us, self._order, n, kind, failure))
        self._wake()

    def post(self, value: object, kind: str) -> None:
        """Tell an arbitrary JSON value at once, counted as `kind`. Nothing happens without a webhook."""
        if self._access.webhook:
            self._urgent.append(Body(wire.encode(value), Counter({kind: 1}), self._now_us()))
            self._pump()

    def sender(self, number_id: str) -> wire.Sender:
        """How webhooks name a number."""
        number = self._scenario.number(number_id)
        display = number.display if number and number.display else "1555" + number_id[-7:]
        return wire.Sender(number_id, display, number.account if number else "102290129340398")

    def summary(self) -> dict[str, Any]:
        """Counts of statuses by kind (as taken by the receiver) and of bodies."""
        pending = len(self._urgent) + len(self._retries) + len(self._posting)
        return {
            "statuses": dict(self.told),
            "statuses_waiting": len(self._later) + len(self._ready),
            "webhooks": dict(self.bodies) | {"pending": pending, "last_refusal": self.last_refusal},
        }

    async def close(self) -> None:
        """Stop posting. What was not told is lost, as at the end of any process."""
        if self._timer is not None:
            self._timer.cancel()
        posting = list(self._posting)
        for task in posting:
            task.cancel()
        await asyncio.gather(*posting, return_exceptions=True)

    def _wake(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._pump()

    def _pump(self) -> None:
        now, settings = self._now_us(), self._scenario.statuses
        while self._later and self._later[0].due_us <= now:
            self._ready.append(heappop(self._later))
        while len(self._posting) < settings.concurrency:
            body = self._next(now, settings)
            if body is None:
                break
            task = asyncio.get_running_loop().create_task(self._deliver(body))
            self._posting.add(task)
            task.add_done_callback(self._delivered)
        if self._later or self._ready or self._retries or self._urgent:
            self._wake()

    def _next(self, now: int, settings: Statuses) -> Body | None:
        if self._urgent:
            return self._urgent.popleft()
        if self._retries and self._retries[0][0] <= now:
            return heappop(self._retries)[2]
        if not self._ready or len(self._retries) >= MOST_RETRIES:
            return None
        waited_us = now - self._ready[0].due_us
        if len(self._ready) < settings.batch and waited_us < settings.max_wait_ms * 1000:
            return None
        dues = [self._ready.popleft() for _ in range(min(settings.batch, len(self._ready)))]
        return self._body(dues, now)

    def _body(self, dues: list[_Due], now: int) -> Body:
        events: dict[str, list[wire.Event]] = {}
        for due in dues:
            event = self._event(due)
            events.setdefault(event.number, []).append(event)
        changes = [
            (self.sender(number), told[start : start + STATUSES_A_CHANGE])
            for number, told in events.items()
            for start in range(0, len(told), STATUSES_A_CHANGE)
        ]
        return Body(wire.encode(wire.statuses_body(changes)), Counter(due.kind for due in dues), now)

    def _event(self, due: _Due) -> wire.Event:
        book, i, failure = self._ledger, due.n - 1, due.failure
        return wire.Event(
            number=book.numbers[i],
            wamid=book.wamid(due.n),
            wa_id=book.wa_ids[i] or "",
            token=book.tokens[i],
            kind=due.kind,
            at_s=book.unix_us(due.due_us) // 1_000_000,
            code=failure.code if failure else 0,
            title=(failure and failure.title) or "",
            details=(failure and failure.details) or "",
        )

    async def _deliver(self, body: Body) -> None:
        access, settings = self._access, self._scenario.statuses
        signature = wire.sign(body.data, access.app_secret)
        reason = await self._post(access.webhook, body.data, signature, settings.timeout_ms / 1000)
        if reason is None:
            self.bodies["posted"] += 1
            self.told.update(body.kinds)
            return
        self.bodies["refused"] += 1
        self.last_refusal = reason
        now = self._now_us()
        if now - body.since_us >= settings.retry_for_s * 1e6:
            self.bodies["dropped"] += 1
            return
        self._order += 1
        due = now + int(retry_delay_ms(body.tries, settings) * 1000)
        heappush(self._retries, (due, self._order, body._replace(tries=body.tries + 1)))

    def _delivered(self, task: asyncio.Task[None]) -> None:
        self._posting.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # A fault of the simulator itself: end the process loudly rather than fall silent on statuses.
            asyncio.get_running_loop().call_exception_handler(
                {"message": "posting a webhook failed", "exception": error}
            )
            return
        self._pump()


def retry_delay_ms(tries: int, settings: Statuses) -> float:
    """How long a body that was refused `tries` + 1 times waits: doubling, with a cap."""
    return min(settings.retry_max_ms, settings.retry_first_ms * 2.0 ** min(tries, 40))


class HttpPost:
    """`Post` over pyreqwest. No proxies, no redirects: the signature is for the address in the scenario."""

    def __init__(self) -> None:
        connect = timedelta(seconds=5)
        builder = ClientBuilder().no_proxy().follow_redirects(False).connect_timeout(connect)
        self._client: Client = builder.user_agent("facebookexternalua").build()

    async def __call__(self, url: str, body: bytes, signature: str, timeout_s: float) -> str | None:
        """See `Post`."""
        request = (
            self._client.post(url)
            .header("content-type", "application/json")
            .header("x-hub-signature-256", signature)
            .timeout(timedelta(seconds=timeout_s))
            .body_bytes(body)
            .build()
        )
        try:
            response = await request.send()
        except PyreqwestError as error:
            return f"no answer ({type(error).__name__})"
        return None if response.status == 200 else f"HTTP {response.status}"

    async def close(self) -> None:
        """Give up the connections."""
        await self._client.close()
