"""From stored bodies to moved rows: take, parse, fold, apply, and off the work list, in one transaction."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

import structlog

from engine.delivery import batch
from engine.delivery.batch import Outcome
from engine.delivery.runs import Runs
from engine.domain.inbound import StopWords
from engine.domain.past import CodeCounts
from engine.domain.receipts import Parsed, UnparsableError, parse
from engine.observe.metrics import JOURNEY, Histogram
from engine.postgres import unmatched, webhooks
from engine.postgres.faults import DATABASE_FAULTS, VALUE_FAULTS
from engine.postgres.pool import Pool
from engine.postgres.statuses import Move

log = structlog.get_logger(__name__)

FEWEST_BODIES, MOST_BODIES = 32, 500
"""How many bodies a batch locks, twice what the last one held: large bodies fill it sooner, and what it locks beyond
them no other applier can have."""

MOST_BYTES = 256 * 1024
"""Some 700 to 1,800 statuses. Reading them holds the loop, which may be a sender's, for about 10 ms."""

IDLE_SECONDS = 0.5
RETRY_SECONDS = 2.0
TROUBLE_SECONDS = 1.0


@dataclass(slots=True)
class Counts:
    """What this process has applied since it started; read from the loop's own thread."""

    bodies: int = 0
    unparsable: int = 0
    """Bodies that are no JSON object. They stay in the inbox as they came."""
    refused: int = 0
    """Bodies with a value that the database does not take. They stay in the inbox too."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Statements about rows of ours, by word, after folding."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Statuses of a word that means nothing to us, by word."""
    fields: Counter[str] = field(default_factory=Counter)
    """Changes of other fields than `messages`."""
    errors: Counter[int | None] = field(default_factory=Counter)
    """Errors that belong to no message, by code."""
    inbound: int = 0
    """Messages that people wrote, each once."""
    opted_out: int = 0
    """New lines among the suppressed: stop words, preferences, refusals with 131050."""
    opted_in: int = 0
    events: int = 0
    """What the provider said of numbers, accounts and templates, each once."""
    tripped: int = 0
    healed: int = 0
    odd: int = 0
    foreign: int = 0
    kept: int = 0
    """Statuses put aside because they matched nothing yet."""
    unmatched: int = 0
    """Of the last page of those, how many still wait."""
    backlog: int = 0
    lag: float = 0.0
    """Age in seconds of the oldest body that is stored and not applied; by the last look."""
    delay: Histogram = field(default_factory=partial(Histogram, JOURNEY))
    """From sent to delivered."""
    batch_time: Histogram = field(default_factory=Histogram)
    """What taking and applying a batch took."""


class Applier:
    """A standing task that applies the inbox. Enter it to start; leaving ends after the batch in hand.

    Any number may run on one database: each body is in one's hand at a time. `on_applied` is called with the moves
    of each batch once they are committed. `nudge`: set by whoever stores a body. `stop_words`: what
    people write who want nothing more; None: the defaults of every language.
    """

    def __init__(
        self,
        pool: Pool,
        nudge: asyncio.Event | None = None,
        on_applied: Callable[[Sequence[Move]], None] = lambda _: None,
        stop_words: StopWords | None = None,
        codes: CodeCounts | None = None,
    ) -> None:
        self.counts = Counts()
        self.task: asyncio.Task[None] | None = None
        """The standing task: whoever supervises us watches it."""
        self._pool = pool
        self._nudge = nudge or asyncio.Event()
        self._on_applied = on_applied
        self._stop_words = stop_words or StopWords()
        self._runs = Runs(pool, codes or CodeCounts())
        self._closing = False
        self._in_hand: list[int] = []
        self._room = FEWEST_BODIES
        self._one_by_one = 0  # so many bodies are still to be taken alone, to find the one that is refused
        self._mark = 0
        self._failing = False

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self._run(), name="webhook applier")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._nudge.set()
        if self.task:
            await self.task

    async def apply_batch(self) -> int:
        """Apply one batch; how many bodies it held. Raises what the database raises; nothing is then applied."""
        self._in_hand = []
        time = asyncio.get_running_loop().time
        started = time()
        async with self._pool.acquire() as connection, connection.transaction():
            stored = await webhooks.take(connection, 1 if self._one_by_one else self._room, MOST_BYTES)
            self._in_hand = [body.id for body in stored]
            read = [(body.received_at, _parsed(body.body)) for body in stored]
            outcome = await batch.apply(connection, read, self._stop_words)
        self._in_hand = []
        self._one_by_one = max(0, self._one_by_one - len(stored)) if stored else 0
        if stored:
            self._room = min(MOST_BODIES, max(FEWEST_BODIES, 2 * len(stored)))
            self.counts.batch_time.add(time(), time() - started)
        self._count([parsed for _, parsed in read])
        await self._settle(outcome)
        return len(stored)

    async def retry_unmatched(self) -> None:
        """Try a page of the statuses again that matched nothing, and drop those that are an hour old."""
        async with self._pool.acquire() as connection, connection.transaction():
            applied, waiting, self._mark = await unmatched.retry(connection, self._mark)
            outcome = await batch.settle_refusals(connection, applied)
        self.counts.unmatched = waiting
        await self._settle(outcome)

    async def look(self) -> None:
        """Measure how far we are behind."""
        behind = await webhooks.backlog(self._pool)
        self.counts.backlog, self.counts.lag = behind.bodies, behind.oldest

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self._closing:
            self._nudge.clear()
            took = 0
            try:
                took = await self.apply_batch()
                if loop.time() >= due:
                    due = loop.time() + RETRY_SECONDS
                    await self.look()
                    await self.retry_unmatched()
                self._recovered()
            except VALUE_FAULTS as error:
                await self._isolate(error)
            except DATABASE_FAULTS as error:
                self._troubled(error)
                await asyncio.sleep(TROUBLE_SECONDS)
            if not took and not self._one_by_one and not self._closing:
                await self._wait()

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                await self._nudge.wait()

    async def _isolate(self, error: BaseException) -> None:
        """A value that the database refuses must not hold its batch: take its bodies alone, leave that one out."""
        match self._in_hand:
            case []:
                self._troubled(error)
            case [body]:
                log.error("a webhook body was left out", body=body, reason=type(error).__name__)
                self.counts.refused += 1
                self._one_by_one = max(0, self._one_by_one - 1)
                await self._left_out(body)
            case several:
                self._one_by_one = len(several)

    async def _left_out(self, body: int) -> None:
        try:
            await webhooks.drop(self._pool, body)
        except DATABASE_FAULTS as error:
            self._troubled(error)

    def _troubled(self, error: BaseException) -> None:
        if not self._failing:
            log.warning("statuses cannot be applied; they wait in the inbox", reason=type(error).__name__)
        self._failing = True

    def _recovered(self) -> None:
        if self._failing:
            log.info("statuses are applied again")
        self._failing = False

    def _count(self, read: Sequence[Parsed | None]) -> None:
        counts = self.counts
        counts.bodies += len(read)
        counts.unparsable += sum(1 for parsed in read if parsed is None)
        for parsed in read:
            if parsed is not None:
                counts.ignored.update(parsed.ignored)
                counts.fields.update(parsed.fields)
                counts.errors.update(fault.code for fault in parsed.errors)
                counts.odd += len(parsed.odd)

    async def _settle(self, outcome: Outcome) -> None:
        counts, applied = self.counts, outcome.applied
        counts.kept += outcome.kept
        counts.inbound += len(outcome.written)
        counts.opted_out += outcome.opted_out
        counts.opted_in += outcome.opted_in
        counts.events += outcome.events
        counts.tripped += len(outcome.tripped)
        counts.healed += len(outcome.healed)
        counts.statuses.update(applied.kinds)
        counts.foreign += applied.foreign
        now = asyncio.get_running_loop().time()
        for delay in applied.delays:
            counts.delay.add(now, delay)
        batch.tell(outcome)
        if applied.moves:
            self._on_applied(applied.moves)
        await self._runs.judge(applied.verdicts, now)


def _parsed(body: bytes | None) -> Parsed | None:
    """What a body says; None when it cannot be read."""
    try:
        return parse(body or b"")
    except UnparsableError:
        return None
