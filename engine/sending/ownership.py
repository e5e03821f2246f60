"""Which numbers this node may send from: takes leases, renews them at a third of their length, gives them up.

A pipeline exists exactly while its lease is held. What a predecessor sent in the last window is counted on: after
a clean release by its own stamps, after a crash by waiting a window out.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

import structlog

from engine.clock import boottime
from engine.domain.count import counted
from engine.domain.lease import Seen, Wait, abandoned, deadline, left, watch
from engine.domain.pacing import WINDOW
from engine.domain.snapshot import NodeView
from engine.domain.spread import share
from engine.postgres import claims, leases, nodes
from engine.postgres.claims import Permission
from engine.postgres.desired import Number
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.leases import LeaseRow
from engine.postgres.nodes import Identity, Sign
from engine.postgres.pool import Pool
from engine.sending.peers import Peers
from engine.sending.pipeline import Pipeline
from engine.sending.shared import Shared

LOOK = 0.5
"""Seconds between looks at leases that others hold."""

FORGOTTEN = 2.0
"""Seconds that a number may be free before a node takes it beyond its share."""

KEEP_FOR = 30.0
"""Seconds without handing over, after a number that was handed over found no taker."""

AFTER_CRASH = WINDOW + 0.05
"""Seconds from taking over a dead owner's number to the first send: its last second has passed by then."""

HALT = 5.0
"""Seconds that giving claimed rows back may take."""

log = structlog.get_logger()


@dataclass(slots=True)
class Owned:
    """A number in this node's hands, and the task that works it."""

    pipeline: Pipeline
    task: asyncio.Task[None]


@dataclass(frozen=True, slots=True)
class Node:
    """Who holds the leases, and how long they last, in seconds."""

    identity: Identity
    lease: float


class Ownership:
    """The leases of one node and the pipelines under them."""

    def __init__(
        self,
        shared: Shared,
        node: Node,
        numbers: Callable[[], dict[int, Number]],
        db: Pool,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.owned: dict[int, Owned] = {}
        self.rows: dict[int, LeaseRow] = {}
        """All leases as last read, also those of others."""
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets the exception of a pipeline that died: the node must not live on by half."""
        self._shared = shared
        self._node = node
        self._numbers = numbers
        self._db = db
        self._tell = tell
        self._peers = Peers(node.identity.id)
        self._seen: dict[int, Seen] = {}
        self._signs: dict[UUID, Sign] = {}
        """Of life, as last read."""
        self._told: set[UUID] = set()
        """Silent owners of whom the log has said that their leases are waited for."""
        self._tokens: dict[int, set[UUID]] = {}
        """Under which we may hold each number, for all that the database says: answers may have been lost."""
        self._renewed_at = float("-inf")
        self._rescues: set[asyncio.Task[None]] = set()
        self._leaving: list[Pipeline] = []
        self._late: set[asyncio.Task[None]] = set()
        self._free_since: dict[int, float] = {}
        self._keep_until = 0.0
        self.draining = False
        self._rounds = 0
        self.round: asyncio.Task[None] | None = None
        """The look under way, or the last one."""

    @property
    def lost(self) -> tuple[NodeView, ...]:
        """Other nodes that died with numbers in their hands."""
        return self._peers.lost

    def pipelines(self) -> list[Pipeline]:
        """Of all owned numbers, and of those given up whose requests are still open."""
        self._leaving = [pipeline for pipeline in self._leaving if pipeline.busy]
        return [owned.pipeline for owned in self.owned.values()] + self._leaving

    def current(self) -> list[Pipeline]:
        """Of all owned numbers."""
        return [owned.pipeline for owned in self.owned.values()]

    async def run(self) -> None:
        """Hold and take for ever. A round is never cut off: it may be taking or releasing a lease just now; after the
        end of this, `halt` waits for it."""
        while True:
            self._rounds += 1
            self.round = asyncio.create_task(self._look())
            await asyncio.shield(self.round)
            await asyncio.sleep(min(LOOK, self._node.lease / 6))

    async def _look(self) -> None:
        try:
            # A database that swallows everything must not keep us from seeing that the lease is over.
            async with asyncio.timeout(self._node.lease / 2):
                await self._shared.clock.sample(self._db)
                if boottime() - self._renewed_at >= self._node.lease / 3:
                    await self._renew()
                await nodes.beat(self._db, self._node.identity, draining=self.draining)
                await self.look_again()
                await self._peers.look(self._db, self.rows, self._numbers())
            await self._drop_removed()
            if not self.draining:
                await self._balance()
        except DATABASE_FAULTS as error:
            log.warning("leases wait for the database", error=type(error).__name__)
            self._peers.blind()
        await self._drop_expired()

    def waits(self) -> dict[int, Wait]:
        """Numbers that nobody sends from until the lease of a silent owner has run out, by number_id."""
        found = {}
        for number_id, seen in self._seen.items():
            row = self.rows.get(number_id)
            if row is None or row.released or row.token != seen.token or number_id in self.owned:
                continue
            sign = self._signs.get(row.owner)
            seconds = left(seen, boottime(), self._node.lease, sign.silent_s if sign else None)
            if seconds is not None:
                found[number_id] = Wait(row.owner, row.node, seconds)
        return found

    def rounds(self) -> int:
        """How often it has looked; a count that stands still tells of a loop that hangs."""
        return self._rounds

    async def look_again(self) -> None:
        """Read everybody's leases now. Raises what the database raises."""
        self.rows = await leases.read(self._db)

    async def halt(self) -> set[asyncio.Task[None]]:
        """After `run` was cancelled: let its round come to its end, then stop the loops of every number. Returns what
        still waits for a database that hangs."""
        if self.round is not None:
            ended, _ = await asyncio.wait([self.round], timeout=HALT)
            self.round.cancel()
            for task in ended:
                task.cancelled() or task.exception()  # `run` has raised it, or we end anyway
        return await halt(list(self.owned.values()))

    async def release(self) -> None:
        """Hand over every number; its pipeline has been stopped and is drained."""
        for owned in self.owned.values():
            pipeline = owned.pipeline
            permission = pipeline.permission
            await leases.release(self._db, permission.number_id, permission.token, pipeline.recent_us())
        self.owned.clear()
        await nodes.leave(self._db, self._node.identity.id)

    async def _renew(self) -> None:
        asked_at = boottime()
        tokens = [owned.pipeline.permission.token for owned in self.owned.values()]
        kept = await leases.renew(self._db, tokens, self._node.lease) if tokens else set()
        self._renewed_at = asked_at
        for number_id, owned in self.owned.items():
            if number_id in kept:
                owned.pipeline.lease_until = deadline(asked_at, self._node.lease)
            else:
                owned.pipeline.lease_until = 0.0

    async def _balance(self) -> None:
        """Take what is free up to our share of the numbers, hand one over when we hold more than it."""
        self._signs = await nodes.signs(self._db)
        live = {
            id_ for id_, sign in self._signs.items() if not sign.draining and sign.silent_s < self._node.lease
        }
        room = share(self._node.identity.id, live, len(self._numbers())) - len(self.owned)
        now = boottime()
        for number in self._numbers().values():
            row = self.rows.get(number.number_id)
            if number.number_id in self.owned or not self._is_free(number.number_id, row, now):
                self._free_since.pop(number.number_id, None)
                continue
            forgotten = now - self._free_since.setdefault(number.number_id, now) > FORGOTTEN
            if room > 0 or forgotten:
                await self._take(number, row)
                room -= 1
                if forgotten:  # whoever should have had it did not come: no more handing over for a while
                    self._keep_until = now + KEEP_FOR
        self._tell_waits()
        if room < 0 and now >= self._keep_until:
            await self._hand_over()

    def _tell_waits(self) -> None:
        """Once of each silent owner."""
        owners = {wait.owner: wait for wait in self.waits().values()}
        for owner in owners.keys() - self._told:
            wait = owners[owner]
            log.warning(
                "waiting for the lease of a silent node", node=wait.node, seconds=round(wait.seconds, 1)
            )
        self._told = set(owners)

    def _is_free(self, number_id: int, row: LeaseRow | None, now: float) -> bool:
        """Also when it is a lease of our own that ran out: nobody knows better that its owner has stopped."""
        if row is None or row.released or row.token in self._tokens.get(number_id, ()):
            return True
        seen = self._seen[number_id] = watch(self._seen.get(number_id), row.token, row.renew_seq, now)
        return abandoned(seen, now, self._node.lease)

    async def _hand_over(self) -> None:
        """Another node has room for one of ours: release the quietest; its open requests finish here."""
        number_id = min(self.owned, key=lambda key: self.owned[key].pipeline.in_flight)
        pipeline = self.owned[number_id].pipeline
        await self._give_up(number_id)
        permission = pipeline.permission
        await leases.release(self._db, permission.number_id, permission.token, pipeline.recent_us())
        log.info("number handed over", number=pipeline.number.id)

    async def _take(self, number: Number, row: LeaseRow | None) -> None:
        time = asyncio.get_running_loop().time
        ages = await leases.predecessor_sends(self._db, number.number_id, row.token) if row else []
        counted_at = time()
        asked_at, token = boottime(), uuid4()
        self._tokens.setdefault(number.number_id, set()).add(token)
        epoch = await leases.take(
            self._db,
            number.number_id,
            owner=self._node.identity.id,
            node=self._node.identity.name,
            token=token,
            seconds=self._node.lease,
            advertise=self._node.identity.advertise,
            instead_of=row,
        )
        if epoch is None:
            return
        self._tokens[number.number_id] = {token}
        permission = Permission(number.number_id, token, epoch)
        pipeline = Pipeline(self._shared, number, permission, deadline(asked_at, self._node.lease))
        if ages is None:
            pipeline.open_at(time() + AFTER_CRASH, [])
        else:
            pipeline.open_at(time(), [counted_at - age for age in ages if age < WINDOW])
        self._seen.pop(number.number_id, None)
        log.info("number taken", number=number.id, epoch=epoch, after="crash" if ages is None else "release")
        if row is not None and ages is None:
            self._tell(f"{number.id} taken over from {row.node}, which stopped without handing it over")
        self._work(number.number_id, pipeline)

    def _work(self, number_id: int, pipeline: Pipeline) -> None:
        task = asyncio.create_task(pipeline.run(), name=f"number {pipeline.number.id}")
        task.add_done_callback(self._ended)
        self.owned[number_id] = Owned(pipeline, task)
        rescue = asyncio.create_task(self._rescue(pipeline))
        self._rescues.add(rescue)
        rescue.add_done_callback(self._rescues.discard)
        rescue.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None and not self.failure.done():
            self.failure.set_exception(task.exception() or RuntimeError(task.get_name()))

    async def _rescue(self, pipeline: Pipeline) -> None:
        """What an earlier owner left in flight is settled, and looked for again while we hold the number: a mark
        of the old owner that was under way commits at the latest before our own first one."""
        delay = AFTER_CRASH
        while boottime() < pipeline.lease_until:
            await asyncio.sleep(delay)
            try:
                freed, doubted = await claims.rescue(self._db, pipeline.permission)
            except DATABASE_FAULTS:
                continue
            if freed or doubted:
                log.warning("rescued", number=pipeline.number.id, freed=freed, doubted=doubted)
            if doubted:
                rows = counted(doubted, "row")
                self._tell(f"{pipeline.number.id}: {rows} in flight when its owner stopped became unknown")
            delay = 5.0

    async def _drop_expired(self) -> None:
        now = boottime()
        for number_id, owned in list(self.owned.items()):
            if now >= owned.pipeline.lease_until:
                log.warning("lease lost", number=owned.pipeline.number.id)
                self._tell(f"{owned.pipeline.number.id} given up: its lease could not be renewed in time")
                self._shared.figures.number(number_id).lose_lease(asyncio.get_running_loop().time())
                await self._give_up(number_id)

    async def _drop_removed(self) -> None:
        for number_id in set(self.owned) - set(self._numbers()):
            await self._give_up(number_id)

    async def _give_up(self, number_id: int) -> None:
        owned = self.owned.pop(number_id)
        self._late |= await halt([owned])
        self._late = {task for task in self._late if not task.done()}
        self._leaving.append(owned.pipeline)
        self._shared.writer.keep(owned.pipeline.cut_stamps())


async def halt(owned: list[Owned]) -> set[asyncio.Task[None]]:
    """Stop the loops of these numbers and take back what has not left; open requests go on by themselves.

    Nothing leaves from the first line on. Returns what is still waiting for a database that hangs: it needs nobody,
    for the next owner finds the rows.
    """
    for one in owned:
        one.pipeline.stopping()
        one.task.cancel()
    ending = {asyncio.create_task(_halt_one(one)) for one in owned}
    if not ending:
        return ending
    ended, late = await asyncio.wait(ending, timeout=HALT)
    for task in ended:
        task.result()
    if late:
        log.warning(
            "claimed rows are left to the next owner: the database does not answer", numbers=len(late)
        )
    return late


async def _halt_one(one: Owned) -> None:
    await asyncio.gather(one.task, return_exceptions=True)
    await one.pipeline.stop()
