"""The engine's thread: the engine and its loop live there, the screen has the main thread.

A terminal that stops reading blocks a screen's loop within seconds. In a thread of its own the engine does not
notice; it publishes snapshots by swapping one reference, and takes acts by `call_soon_threadsafe`.
"""

import asyncio
import itertools
import threading
import time
from concurrent.futures import Future

from engine.app import run_engine
from engine.author import author
from engine.config import Config, RunOptions
from engine.domain.act import Act
from engine.domain.inspection import Answer, NoAnswer, Query
from engine.domain.snapshot import Snapshot
from engine.node import Engine
from engine.postgres import inspection
from engine.report import Outcome

SWITCH = 0.0005
"""Seconds of the interpreter's thread switch. With the default of 5 ms a paint of 100 ms held sends back by up to
70 ms (p99); with this by 11 ms."""


class EngineHost:
    """Starts the engine in its thread, and is the link to it (see console.link)."""

    def __init__(self, config: Config, options: RunOptions, origin: str = "console") -> None:
        self._config = config
        self._options = options
        self._origin = origin
        self._ids = (f"a{n}" for n in itertools.count(1))
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started: Future[None] = Future()
        self._ended: Future[Outcome] = Future()
        # Not a daemon: the process must not end under an engine that still writes results.
        self._thread = threading.Thread(target=self._run, name="engine")

    def start(self) -> None:
        """Returns when the engine stands; raises what kept it from it."""
        self._thread.start()
        self._started.result()

    def snapshot(self) -> Snapshot | None:
        """The newest one; None before the first."""
        return self._engine.latest if self._engine else None

    def submit(self, act: Act) -> str:
        """Hand an act over; its stages appear in the snapshots under the returned id."""
        act_id, submitted_at = next(self._ids), time.monotonic()
        if self._engine is not None and self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._engine.submit, act_id, act, submitted_at)
        return act_id

    def ask(self, query: Query) -> "Future[Answer]":
        """The engine's thread asks the database."""
        if self._engine is not None and self._loop is not None and self._thread.is_alive():
            question = inspection.answer(self._engine.db, query, author())
            return asyncio.run_coroutine_threadsafe(question, self._loop)
        gone: Future[Answer] = Future()
        gone.set_result(NoAnswer("the engine has ended"))
        return gone

    def ended(self) -> str | None:
        """None while the engine lives, else how it ended."""
        if not self._ended.done():
            return None
        error = self._ended.exception()
        if error is not None:
            return f"{type(error).__name__}: {error}"
        fault = self._engine.fault if self._engine is not None else None
        why = f", {type(fault).__name__}: {fault}" if fault is not None else ""
        return f"exit code {self._ended.result().code}{why}"

    def drain(self, reason: str) -> None:
        """Ask the engine to end in order. Safe from a signal handler."""
        if self._engine is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._engine.drain, reason)

    def join(self) -> Outcome:
        """Wait for the engine's end; raises what killed it."""
        self._thread.join()
        return self._ended.result()

    def _run(self) -> None:
        try:
            outcome = asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  handed to whoever joins
            if not self._started.done():
                self._started.set_exception(error)
            self._ended.set_exception(error)
        else:
            self._ended.set_result(outcome)

    async def _main(self) -> Outcome:
        self._loop = asyncio.get_running_loop()
        return await run_engine(self._config, self._options, self._origin, self._stand)

    def _stand(self, engine: Engine) -> None:
        self._engine = engine
        self._started.set_result(None)
