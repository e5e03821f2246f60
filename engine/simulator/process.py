"""The simulator as a process: builds its parts, says where it listens, and ends when told to."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import msgspec

from engine.simulator.cloud_api import CloudApi
from engine.simulator.control import Control
from engine.simulator.http import Connection
from engine.simulator.ledger import Ledger
from engine.simulator.scenario import Access, Scenario, ScenarioError, access, load, without_access
from engine.simulator.webhooks import HttpPost, Webhooks

HOST = "127.0.0.1"  # never another address: the control endpoints ask for no password


class StartError(Exception):
    """One sentence: what stands in the way and what to do."""


def run(*, port: int, scenario: Path | None, exit_with_stdin: bool) -> int:
    """Serve until SIGTERM, SIGINT or, if asked, the end of stdin. Returns the exit code.

    Port 0 takes a free one. Prints one JSON line, {"listening": "http://127.0.0.1:PORT"}, when ready. Exit
    code 2 with one sentence on stderr: the scenario cannot be used, or the port is taken.
    """
    try:
        if exit_with_stdin:
            _require_stdin()
        chosen = load(scenario) if scenario is not None else Scenario()
        granted = access(chosen, os.environ)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_serve(port, without_access(chosen), granted, exit_with_stdin=exit_with_stdin))
    except (ScenarioError, StartError) as error:
        print(f"tidegate simulate: {error}", file=sys.stderr)
        return 2


async def _serve(port: int, scenario: Scenario, granted: Access, *, exit_with_stdin: bool) -> int:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    broken: list[Mapping[str, object]] = []

    def on_broken(_loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        broken.append(context)  # a judge with a fault of its own must not go on judging
        stop.set()

    loop.set_exception_handler(on_broken)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if exit_with_stdin:
        _watch_stdin(loop, stop)
    async with AsyncExitStack() as up:
        now_us = _now_us
        ledger = Ledger(time.time_ns() // 1000 - now_us(), salt=secrets.randbits(72))
        post = HttpPost()
        up.push_async_callback(post.close)
        webhooks = Webhooks(ledger, scenario, granted, now_us, post)
        up.push_async_callback(webhooks.close)
        api = CloudApi(scenario, granted, ledger, webhooks, now_us())
        control = Control(api, ledger, webhooks, granted, now_us)
        clients: set[Connection] = set()
        server = await _listen(port, lambda: Connection(api, control, now_us, clients))
        up.callback(_abort_all, clients)
        up.callback(server.close)
        address = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
        print(msgspec.json.encode({"listening": address}).decode(), flush=True)
        await stop.wait()
    if broken:
        print(f"tidegate simulate: stopped by a fault of its own: {broken[0]}", file=sys.stderr)
    return 1 if broken else 0


async def _listen(port: int, protocol: Callable[[], Connection]) -> asyncio.Server:
    if not 0 <= port <= 65535:  # uvloop would take it modulo 65536
        raise StartError(f"Port {port} does not exist; choose one from 0 (any free one) to 65535.")
    try:
        return await asyncio.get_running_loop().create_server(protocol, HOST, port, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartError(
                f"Port {port} is in use; choose another with --port, or 0 for a free one."
            ) from None
        raise StartError(f"Cannot listen on {HOST}:{port}: {error.strerror}.") from None


def _abort_all(clients: set[Connection]) -> None:
    for client in list(clients):
        client.abort()


def _require_stdin() -> None:
    try:
        os.fstat(0)
    except OSError:  # the event loop would get descriptor 0, and the watch would read from that
        raise StartError("--exit-with-stdin needs an open stdin, and it is closed.") from None


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Set `stop` when stdin ends, as it does when the parent dies, however it died."""

    def watch() -> None:
        # Not sys.stdin.read(): a thread blocked in it holds a lock that the interpreter needs to end.
        while os.read(0, 4096):
            pass
        with suppress(RuntimeError):  # the loop has ended for another reason
            loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=watch, name="stdin", daemon=True).start()


def _now_us() -> int:
    return time.monotonic_ns() // 1000


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # not installed on Windows

    return uvloop.new_event_loop
