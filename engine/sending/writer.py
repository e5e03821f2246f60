"""Writes results in batches: facts about tries that left, and the stamps that prove the ceiling.

One writer per node. A batch that the database does not take is kept and offered again until it does; sending
stops meanwhile, so that what is kept is bounded by the requests in flight.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import structlog

from engine.clock import now
from engine.domain.outcome import Accepted, Ambiguous, Next, NotSent, Refused, Withdrawn, after
from engine.observe.metrics import NodeFigures
from engine.postgres import results, send_log
from engine.postgres.faults import DATABASE_FAULTS, VALUE_FAULTS
from engine.postgres.pool import Pool
from engine.postgres.results import Fact
from engine.postgres.send_log import Stamps
from engine.sending.work import Result

FLUSH = 0.04
"""Seconds between batches: 25 commits/s at any rate."""

LARGEST = 500
RETRY = 0.5
STAMPS_EVERY = 0.25
"""Seconds of sends in one row of the send log; what a kill -9 may lose of the proof."""

log = structlog.get_logger()


class Writer:
    """The buffer of results and the loop that empties it."""

    def __init__(
        self,
        db: Pool,
        figures: NodeFigures,
        chance: random.Random,
        cut_stamps: Callable[[], list[Stamps]],
        written: Callable[[Sequence[tuple[Result, Next]]], None],
    ) -> None:
        self._db = db
        self._figures = figures
        self._chance = chance
        self._cut_stamps = cut_stamps
        self._written = written
        self._waiting: list[tuple[Result, Next]] = []
        self._stamps: list[Stamps] = []
        self._wake = asyncio.Event()
        self._storing = 0
        self._busy = False
        self._doubtful = False
        self._stamped_at = 0.0
        self.healthy = True

    def put(self, result: Result) -> Next:
        """Decide what follows from the answer, keep it to be written, and say what was decided."""
        work = result.work
        decided = after(
            result.answer,
            attempts=work.row.attempts,
            max_attempts=work.campaign.max_attempts,
            now=now(),
            chance=self._chance.random(),
        )
        self._waiting.append((result, decided))
        self._wake.set()
        return decided

    def keep(self, stamps: Sequence[Stamps]) -> None:
        """The last stamps of a number that is given up."""
        self._stamps += stamps
        self._wake.set()

    @property
    def backlog(self) -> int:
        """Results in memory that are not in the database."""
        return len(self._waiting) + self._storing

    @property
    def idle(self) -> bool:
        """Whether everything handed in is stored."""
        return not (self._waiting or self._stamps or self._busy)

    async def run(self) -> None:
        """Write for ever."""
        time = asyncio.get_running_loop().time
        while True:
            try:
                async with asyncio.timeout(STAMPS_EVERY):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            started = time()
            await self.flush()
            await asyncio.sleep(max(0.0, FLUSH - (time() - started)))

    async def flush(self) -> None:
        """Write all that is waiting; returns when it is stored."""
        time = asyncio.get_running_loop().time
        if time() - self._stamped_at >= STAMPS_EVERY:
            self._stamps += self._cut_stamps()
            self._stamped_at = time()
        while self._waiting or self._stamps:
            batch, self._waiting = _one_per_row(self._waiting)
            stamps, self._stamps = self._stamps, []
            self._busy, self._storing = True, len(batch)
            started = time()
            self._figures.stalls.began("result", started)
            try:
                await self._store(batch, stamps)
            except BaseException:  # this loop ends; whoever flushes at the end of the node has them all
                self._waiting, self._stamps = batch + self._waiting, stamps + self._stamps
                self._doubtful = True
                raise
            finally:
                self._busy, self._storing = False, 0
                self._figures.stalls.ended("result", time())
            self._figures.results_written(time(), time() - started)
            self._written(batch)

    async def flush_all(self) -> None:
        """As `flush`, with the newest stamps too."""
        self._stamped_at = 0.0
        while not self.idle or self._stamped_at == 0.0:
            if self._busy:  # the loop is at it
                await asyncio.sleep(FLUSH)
            else:
                await self.flush()

    async def _store(self, batch: list[tuple[Result, Next]], stamps: list[Stamps]) -> None:
        facts = [_fact(result, decided) for result, decided in batch]
        repeated, self._doubtful = self._doubtful, False
        while True:
            try:
                async with self._db.acquire() as db, db.transaction():
                    if facts:
                        await results.apply(db, facts, repeated=repeated)
                    if stamps:
                        await send_log.append(db, stamps)
            except DATABASE_FAULTS as error:
                if self.healthy:
                    log.warning(
                        "results wait for the database", results=len(facts), error=type(error).__name__
                    )
                self.healthy, repeated = False, True
                await asyncio.sleep(RETRY)
            except VALUE_FAULTS as error:
                log.error("a result is not storable as it is", results=len(facts), error=str(error)[:200])
                if not facts:  # the stamps themselves, and offering them again changes nothing
                    log.error("stamps are lost to the proof", stamps=sum(len(s.us) for s in stamps))
                    return
                await self._store_one_by_one(facts)
                facts, repeated = [], False
            else:
                self.healthy = True
                return

    async def _store_one_by_one(self, facts: list[Fact]) -> None:
        """One bad row never holds its batch: it is stored without what the provider wrote, the others whole."""
        for fact in facts:
            if not await self._store_alone(fact) and not await self._store_alone(_bare(fact)):
                log.error("a result is lost to its row, which becomes unknown", row=fact.id, n=fact.n)

    async def _store_alone(self, fact: Fact) -> bool:
        while True:
            try:
                async with self._db.acquire() as db, db.transaction():
                    await results.apply(db, [fact], repeated=True)
            except DATABASE_FAULTS:
                await asyncio.sleep(RETRY)
            except VALUE_FAULTS as error:
                log.error("result refused", row=fact.id, n=fact.n, error=str(error)[:200])
                return False
            else:
                return True


def _one_per_row(
    waiting: list[tuple[Result, Next]],
) -> tuple[list[tuple[Result, Next]], list[tuple[Result, Next]]]:
    """At most LARGEST results with one for each row (a statement applies one), and the rest."""
    batch: list[tuple[Result, Next]] = []
    rest: list[tuple[Result, Next]] = []
    seen: set[int] = set()
    for item in waiting:
        row = item[0].work.row.id
        (rest if row in seen or len(batch) >= LARGEST else batch).append(item)
        seen.add(row)
    return batch, rest


def _fact(result: Result, decided: Next) -> Fact:
    work, answer = result.work, result.answer
    wall, loop = now(), asyncio.get_running_loop().time()
    left = work.sent_at or work.marked_at

    def at(moment: float) -> datetime:
        return wall - timedelta(seconds=loop - moment)

    wamid = answer.wamid if isinstance(answer, Accepted) else None
    match answer:
        case Refused(raw=raw):
            text: str | None = raw
        case Ambiguous(reason=reason, raw=raw):
            text = f"{reason} {raw}".strip()
        case NotSent(reason=reason) | Withdrawn(reason=reason):
            text = reason
        case _:
            text = None
    return Fact(
        work.row.id,
        work.n,
        work.permission.number_id,
        work.permission.epoch,
        at(left) if left else wall.astimezone(UTC),
        at(result.answered_at),
        decided.outcome,
        decided.code,
        wamid,
        text,
        decided.state.value,
        decided.at,
        int(decided.spends_attempt),
    )


def _bare(fact: Fact) -> Fact:
    return Fact(
        fact.id, fact.n, fact.number_id, fact.epoch, fact.sent_at, fact.answered_at, fact.outcome, fact.code,
        None, "(not storable)", fact.wanted, fact.at, fact.spent,
    )  # fmt: skip
