"""Posts every stored body on, from a queue of its own: whatever happens there, receiving and applying go on.

Each body is tried with full jitter until it is a day old, then dropped and counted. While nothing gets through, one
round in a while is enough: a receiver that is down must not cost a request for each body that waits.
"""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Protocol, Self

import structlog

from engine.clock import now
from engine.domain.backoff import full_jitter
from engine.postgres import forwards
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.forwards import Forward
from engine.postgres.pool import Pool

log = structlog.get_logger(__name__)

AT_ONCE = 16
"""Posts in flight. A quick receiver takes some thousand bodies a second that way."""

POST_SECONDS = 10.0
TAKEN_SECONDS = 60.0
"""How long a taken body is nobody else's: more than a post and two statements take."""

KEEP = timedelta(hours=24)
IDLE_SECONDS = 0.5
LONGEST_PAUSE = 30.0


class Post(Protocol):
    """All that the forwarder needs of HTTP."""

    async def post(self, body: bytes, signature: str) -> str | None:
        """None when it was taken, else why not."""


@dataclass(slots=True)
class ForwardCounts:
    """Since the start of this process."""

    posted: int = 0
    failed: int = 0
    """Attempts, not bodies."""
    dropped: int = 0
    """Bodies that nobody took for a day, or that were trimmed away."""


class Forwarder:
    """A standing task. Enter it to start; leaving ends the posts in flight, whose bodies stay on the list."""

    def __init__(self, pool: Pool, client: Post, chance: random.Random, *, at_once: int = AT_ONCE) -> None:
        self.counts = ForwardCounts()
        self.task: asyncio.Task[None] | None = None
        """The standing task: whoever supervises us watches it."""
        self._pool = pool
        self._client = client
        self._chance = chance
        self._at_once = at_once
        self._failures = 0  # rounds in a row in which nothing got through

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self._run(), name="webhook forwarder")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.task:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task

    async def forward(self) -> int:
        """One round: post what is due, at most `at_once`; how many. Raises what the database raises."""
        due = await forwards.take(self._pool, self._at_once, TAKEN_SECONDS)
        answers = await asyncio.gather(*(self._post(one) for one in due))
        await self._settle(due, answers, now())
        return len(due)

    async def _run(self) -> None:
        away = False
        while True:
            try:
                took, away = await self.forward(), False
            except DATABASE_FAULTS as error:
                if not away:
                    log.warning("bodies to forward cannot be read", reason=type(error).__name__)
                took, away = 0, True
            if self._failures:
                await asyncio.sleep(min(LONGEST_PAUSE, full_jitter(self._failures, self._chance.random())))
            elif took < self._at_once:
                await asyncio.sleep(IDLE_SECONDS)

    async def _post(self, one: Forward) -> str | None:
        """Why it was not taken; None when it was, or is not there any more."""
        if one.body is None:
            return None
        try:
            async with asyncio.timeout(POST_SECONDS):
                return await self._client.post(one.body, one.signature)
        except TimeoutError:
            return "no answer in time"

    async def _settle(self, due: Sequence[Forward], answers: Sequence[str | None], at: datetime) -> None:
        over: list[int] = []
        again: list[tuple[int, float]] = []
        for one, answer in zip(due, answers, strict=True):
            too_old = one.received_at is None or at - one.received_at >= KEEP
            if answer is not None and not too_old:
                again.append((one.id, full_jitter(one.attempts, self._chance.random())))
            else:
                over.append(one.id)
            self.counts.failed += answer is not None
            self.counts.posted += answer is None and one.body is not None
            self.counts.dropped += one.body is None or (answer is not None and too_old)
        self._note(answers)
        await forwards.done(self._pool, over)
        await forwards.later(self._pool, again)

    def _note(self, answers: Sequence[str | None]) -> None:
        if None in answers:
            if self._failures:
                log.info("webhooks are forwarded again")
            self._failures = 0
        elif answers:
            if not self._failures:
                log.warning("webhooks cannot be forwarded; they wait", reason=answers[0])
            self._failures += 1
