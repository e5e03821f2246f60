"""`tidegate receive`: several processes that take webhooks on one address, and the one that watches over them.

Each worker is a receiver and its group store on a socket of its own; the kernel deals connections out among them
(SO_REUSEPORT). A worker gets its settings through its standard input, for they hold secrets, and drains when that
closes: however the watcher ends, no worker outlives it.
"""

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog

from engine.app import ABANDONED_AFTER, exit_at_once, open_forwarder, open_receiver
from engine.config import Address, Config
from engine.database import open_database
from engine.delivery.applier import Applier
from engine.domain.inbound import StopWords
from engine.observe.log import logging_to
from engine.postgres.pulse import Watched
from engine.server import App, bind, serve

WORKER_CONNECTIONS = 4
READY = b"ready\n"
SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is told at its start."""

    config: Config
    where: Address
    apply: bool


# The watcher


def run_receivers(config: Config, workers: int, *, apply: bool = False) -> int:
    """Receive until a signal (128 + its number) or until a worker dies (1).

    Raises what a person can mend: DatabaseUnreachable, EmbeddedError, MigrationError, ListenError.
    """
    with logging_to(sys.stderr):
        return asyncio.run(_watch(config, workers, apply=apply))


async def _watch(config: Config, workers: int, *, apply: bool) -> int:
    signalled: asyncio.Queue[int] = asyncio.Queue()
    _on_signals(signalled.put_nowait)
    async with AsyncExitStack() as up:
        await up.enter_async_context(open_database(config, size=1))  # an embedded one lives as long as we do
        kept = up.enter_context(bind(config.listen.host, config.listen.port, shared=True, listen=False))
        where = Address(config.listen.host, kept.getsockname()[1])
        started: list[asyncio.subprocess.Process] = []
        try:
            for _ in range(workers):
                started.append(await _start(Order(config, where, apply)))
            ready = asyncio.create_task(_ready(started, where))
            code = await _until_over(started, signalled)
            ready.cancel()
        finally:
            await _end(started, config.grace)
    return code


async def _start(order: Order) -> asyncio.subprocess.Process:
    """A worker in a session of its own: Ctrl-C is for the watcher, who passes it on."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import sys; from engine.receive import main; sys.exit(main())",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert worker.stdin is not None
    worker.stdin.write(pickle.dumps(order))
    return worker


async def _ready(workers: list[asyncio.subprocess.Process], where: Address) -> None:
    for worker in workers:
        assert worker.stdout is not None
        if await worker.stdout.readline() != READY:
            return  # it died, which is seen elsewhere
    log.info("receiving webhooks", url=f"http://{where}/webhook", workers=len(workers))


async def _until_over(workers: list[asyncio.subprocess.Process], signalled: "asyncio.Queue[int]") -> int:
    asked = asyncio.create_task(signalled.get())
    ends = [asyncio.create_task(worker.wait()) for worker in workers]
    await asyncio.wait([asked, *ends], return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    if asked.done():
        number = asked.result()
        log.info("draining", reason=signal.Signals(number).name)
        return 128 + number
    asked.cancel()
    dead = [worker.returncode for worker in workers if worker.returncode is not None]
    log.error("a receiver died; the others finish", exit_codes=dead)
    return 1


async def _end(workers: list[asyncio.subprocess.Process], grace: float) -> None:
    """Let them finish; whoever is not done after the grace is ended. Nothing that was acknowledged is lost by that."""
    for worker in workers:
        if worker.returncode is None:
            worker.terminate()
    try:
        async with asyncio.timeout(grace + 5.0):
            await asyncio.gather(*(worker.wait() for worker in workers))
    except TimeoutError:
        for worker in workers:
            if worker.returncode is None:
                worker.kill()
        await asyncio.gather(*(worker.wait() for worker in workers))


# A worker


def main() -> int:
    """Receive until SIGTERM or until the watcher is gone; 0 after a drain, 1 when a standing task died."""
    order: Order = pickle.load(sys.stdin.buffer)  # from the watcher, over a pipe of its own
    with logging_to(sys.stderr), asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(_receive(order))


async def _receive(order: Order) -> int:
    asked = asyncio.Event()
    _on_signals(lambda _: asked.set())
    _when_closed(sys.stdin.fileno(), asked.set)
    config = order.config
    async with AsyncExitStack() as up:
        db = await up.enter_async_context(
            open_database(config, size=WORKER_CONNECTIONS, abandoned_after=ABANDONED_AFTER)
        )
        pulse = Watched(db)
        watching = asyncio.create_task(pulse.run(), name="pulse of the database")
        up.callback(watching.cancel)
        standing: list[asyncio.Task[None]] = [watching]
        arrived = asyncio.Event()
        if order.apply:
            applier = Applier(db, arrived, stop_words=StopWords(config.stop_words))
            forwarder = await open_forwarder(up, config, db)
            await up.enter_async_context(applier)
            standing += [one.task for one in (applier, forwarder) if one is not None and one.task is not None]
        receiver, store = await open_receiver(up, config, db, arrived)
        listening = up.enter_context(bind(order.where.host, order.where.port, shared=True))
        server = await up.enter_async_context(
            serve(App(_readiness(pulse, asked), {"/webhook": receiver}), [listening])
        )
        standing += [store, server]
        os.write(sys.stdout.fileno(), READY)
        drain = asyncio.create_task(asked.wait())
        await asyncio.wait([drain, *standing], return_when=asyncio.FIRST_COMPLETED)
        drain.cancel()
        died = [task for task in standing if task.done()]
        for task in died:
            log.error(
                "a standing task died; the receiver drains", task=task.get_name(), exc_info=_fault(task)
            )
    return 1 if died else 0


def _fault(task: "asyncio.Task[None]") -> BaseException | None:
    return None if task.cancelled() else task.exception()


def _readiness(pulse: Watched, draining: asyncio.Event) -> Callable[[], Awaitable[str | None]]:
    async def ready() -> str | None:
        if draining.is_set():
            return "draining"
        return None if pulse.answers else "the database does not answer"

    return ready


def _when_closed(pipe: int, tell: Callable[[], None]) -> None:
    """Nothing is written there any more: it is readable when its other end is gone."""
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(pipe)
        tell()

    loop.add_reader(pipe, gone)


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop where there is one: a worker has thousands of sockets and few timers."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _on_signals(take: Callable[[int], None]) -> None:
    """The first signal is handed to the loop, the second ends the process at once."""
    loop = asyncio.get_running_loop()
    taken: list[int] = []

    def on_signal(number: int, _: object) -> None:
        if taken:
            exit_at_once(number)
        taken.append(number)
        loop.call_soon_threadsafe(take, number)

    for number in SIGNALS:
        signal.signal(number, on_signal)
