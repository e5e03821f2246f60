"""The link of `tidegate attach`: the same screens over the database, for any number of nodes.

A thread of its own reads what the nodes publish, merges it, and carries acts out through the same commands as the
CLI. An act is acknowledged when it is committed, and in effect when every living node follows a desired state that
holds it.
"""

import asyncio
import itertools
import os
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engine.acts import describe, event_of
from engine.author import ENGINE, author
from engine.clock import now
from engine.commands import Commands, Done, Refused
from engine.config import Config
from engine.database import open_database
from engine.domain import act as acts
from engine.domain.act import Act
from engine.domain.inspection import Answer, NoAnswer, Query, RowOf
from engine.domain.merge import Node, is_of_nodes, merge
from engine.domain.snapshot import ActView, ReconcilePreview, Snapshot
from engine.pause_file import PauseFiles
from engine.postgres import inspection, journal, snapshots
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.unattended import OF_THE_DATABASE, Unattended

LOOK = 0.5
"""Seconds between two looks at the nodes; after an act a look follows at once."""

KEPT_ACTS = 20
CONNECTIONS = 3
_UNDOABLE = (acts.PauseNumber, acts.ResumeNumber, acts.SetRate)


@dataclass(slots=True)
class _Waiting:
    """An act that is committed, until all nodes know of it."""

    id: str
    version: int


class AttachedLink:
    """See console.link. `start` returns when the database has been read once, and raises what kept it from that."""

    def __init__(self, config: Config, *, read_only: bool) -> None:
        self._config, self._read_only = config, read_only
        self._ids = (f"a{n}" for n in itertools.count(1))
        self._latest: Snapshot | None = None
        self._acts: deque[ActView] = deque(maxlen=KEPT_ACTS)
        self._reconciles: dict[str, ReconcilePreview] = {}
        self._waiting: list[_Waiting] = []
        self._taken_on: set[str] = set()
        self._since = time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._again = asyncio.Event()
        self._pool: Pool | None = None
        self._commands: Commands | None = None
        self._unattended: Unattended
        self._alone_since: datetime | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._started: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="attached")

    def start(self) -> None:
        """Open the database."""
        self._thread.start()
        self._started.result()

    def close(self) -> None:
        """Let the database go; the nodes are not touched."""
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it has just ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def drain(self, _reason: str) -> None:
        """A signal ends the viewer alone."""

    def snapshot(self) -> Snapshot | None:
        """The newest picture of all nodes."""
        return self._latest

    def submit(self, act: Act) -> str:
        """Carry an act out through the database."""
        act_id, at = next(self._ids), time.monotonic()
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._begin, act_id, act, at)
        return act_id

    def ask(self, query: Query) -> "Future[Answer]":
        """Ask the database."""
        gone: Future[Answer] = Future()
        if isinstance(query, RowOf) and query.reveal and self._read_only:
            gone.set_result(NoAnswer("read-only: phone numbers stay masked"))
        elif self._pool is not None and self._loop is not None and self._thread.is_alive():
            return asyncio.run_coroutine_threadsafe(
                inspection.answer(self._pool, query, author()), self._loop
            )
        else:
            gone.set_result(NoAnswer("the viewer has ended"))
        return gone

    def ended(self) -> str | None:
        """None while the database is followed."""
        if not self._ended.done():
            return None
        error = self._ended.exception()
        return (
            "the viewer has ended" if error is None else f"the viewer died: {type(error).__name__}: {error}"
        )

    # -- in the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  handed to whoever looks
            self._ended.set_exception(error)
            if not self._started.done():
                self._started.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with open_database(self._config, size=CONNECTIONS) as pool:
            self._pool, self._unattended = pool, Unattended(pool, author())
            self._commands = Commands(
                pool,
                author=author(),
                origin="attach",
                pauses=PauseFiles(self._config.data_dir),
                unknown_floor=self._config.unknown_floor,
                request_deadline=self._config.request_deadline,
                read_only=self._read_only,
            )
            await self._look(pool)
            self._started.set_result(None)
            stop = asyncio.create_task(self._stop.wait())
            while not stop.done():
                again = asyncio.create_task(self._again.wait())
                await asyncio.wait((stop, again), timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
                again.cancel()
                self._again.clear()
                with suppress(*DATABASE_FAULTS):  # the picture grows old, and says so
                    await self._look(pool)
            for task in list(self._running):
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _look(self, pool: Pool) -> None:
        published = await snapshots.read(pool)
        owners = await snapshots.owners(pool)
        kept = await journal.recent(pool, 30)
        nodes = [Node(p.id, p.name, p.host, p.pid, p.draining, p.age_s, p.snapshot) for p in published]
        events = [event_of(k) for k in kept if k.author != ENGINE]
        alone = not any(n.alive and n.snapshot for n in nodes)
        self._alone_since = (self._alone_since or now()) if alone else None
        base = self._base(await self._unattended.look() if alone else None)
        merged = merge(nodes, owners, events, now(), base, self._alone_since)
        self._taken_on &= {a.key for a in merged.alerts}
        reached = merged.version if any(n.alive and n.snapshot for n in nodes) else -1
        for waiting in [w for w in self._waiting if w.version <= reached]:
            self._waiting.remove(waiting)
            self._stage(waiting.id, stage="in effect")
        alerts = tuple(
            replace(a, acknowledged=True, author=author()) if a.key in self._taken_on else a
            for a in merged.alerts
        )
        self._latest = replace(
            merged, alerts=alerts, acts=tuple(self._acts), reconcile=dict(self._reconciles)
        )

    def _base(self, known: Snapshot | None) -> Snapshot:
        """`known`: what the database alone knows, while no node lives."""
        own = self._own()
        if known is None:
            return own
        kept = {name: getattr(known, name) for name in OF_THE_DATABASE}
        return replace(own, **kept)

    def _own(self) -> Snapshot:
        return Snapshot(
            at=now(),
            seq=(self._latest.seq if self._latest else 0) + 1,
            node="",
            host=socket.gethostname(),
            pid=os.getpid(),
            uptime_s=time.monotonic() - self._since,
            author=author(),
            read_only=self._read_only,
            draining=False,
            attached=True,
        )

    def _begin(self, act_id: str, act: Act, at: float) -> None:
        task = asyncio.get_running_loop().create_task(self._carry_out(act_id, act, at))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _carry_out(self, act_id: str, act: Act, at: float) -> None:
        assert self._commands is not None
        assert self._pool is not None
        self._acts.appendleft(ActView(act_id, describe(act), "sent", None, "", False))
        self._show()
        try:
            done = await self._do(self._commands, act_id, act)
            version = await snapshots.version(self._pool)
        except Refused as refusal:
            self._stage(act_id, stage="refused", detail=str(refusal))
        except DATABASE_FAULTS as error:
            self._stage(act_id, stage="refused", detail=f"the database is away ({type(error).__name__})")
        else:
            ack = (time.monotonic() - at) * 1000
            undo = isinstance(act, _UNDOABLE)
            self._stage(act_id, stage="acknowledged", ack_ms=ack, detail=_detail(done), undo=undo)
            self._waiting.append(_Waiting(act_id, version))
        self._show()
        self._again.set()

    async def _do(self, commands: Commands, act_id: str, act: Act) -> Done:
        match act:
            case acts.AcknowledgeAlerts(key=key):
                done = await commands.acknowledge(key)
                self._take_on(key)
                return done
            case acts.Reconcile(campaign=campaign, dry_run=dry_run):
                preview = await commands.reconcile(campaign, dry_run=dry_run)
                self._reconciles = {act_id: preview}
                return Done(f"{preview.to_sent} → sent, {preview.to_pending} → pending")
            case acts.StopEngine():
                raise Refused(
                    "A node is stopped where it runs (SIGTERM, or Q on its own screen); P pauses all numbers."
                )
        return await commands.carry_out(act)

    def _take_on(self, key: str | None) -> None:
        """A dead node cannot take in that its death was acknowledged: this viewer remembers, while it stands."""
        alerts = self._latest.alerts if self._latest else ()
        self._taken_on |= {a.key for a in alerts if a.key in (key or a.key,) and is_of_nodes(a)}

    def _stage(self, act_id: str, **fields: Any) -> None:
        self._acts = deque(
            (replace(a, **fields) if a.id == act_id else a for a in self._acts), maxlen=KEPT_ACTS
        )

    def _show(self) -> None:
        if self._latest is not None:
            self._latest = replace(self._latest, acts=tuple(self._acts), reconcile=dict(self._reconciles))


def _detail(done: Done) -> str:
    if done.already:
        return "already"
    return f"{done.before}→{done.after}" if done.before and done.after else ""
