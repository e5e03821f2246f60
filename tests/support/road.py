"""The road between two processes: a relay on which bytes can be held up or lost, while every connection stays open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from tests.support.world import free_port

BYTES = 1 << 16

GIVEN_UP_S = 9.0
"""Seconds after which the kernel at the far end finds that nobody answers its keepalives, as the engine asks of it:
5 s of rest and two probes, 2 s apart. Here they are answered by this machine, so it has to be played."""


class Road:
    """A TCP relay to a port or a socket file that may swallow everything, in both directions, without a word."""

    def __init__(self, port: int, host: str, target: str | int) -> None:
        self.port = port
        self._host, self._target = host, target
        self._open = asyncio.Event()
        self._open.set()
        self._losing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: list[asyncio.StreamWriter] = []
        self._onward: list[asyncio.StreamWriter] = []
        self._giving_up: asyncio.TimerHandle | None = None

    def swallow(self) -> None:
        """From now on nothing arrives, and nobody is told."""
        self._open.clear()

    def lose(self) -> None:
        """As `swallow`, and what is open then stays silent for ever: only new connections are ever carried again."""
        self._losing = True
        self._open.clear()
        lost, self._onward = self._onward, []
        self._giving_up = asyncio.get_running_loop().call_later(GIVEN_UP_S, _abort, lost)

    def let_through(self) -> None:
        """What was held arrives now, late; nothing of what was lost."""
        if self._losing:
            self._losing = False
            for task in self._tasks:
                task.cancel()
        self._open.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._streams.append(writer)
        if not self._open.is_set() and self._losing:
            return  # nobody will ever answer
        await self._open.wait()
        if isinstance(self._target, int):
            onward, out = await asyncio.open_connection(self._host, self._target)
        else:
            onward, out = await asyncio.open_unix_connection(self._target)
        self._streams.append(out)
        self._onward.append(out)
        for source, sink in ((reader, out), (onward, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(BYTES):
                await self._open.wait()
                sink.write(data)
                await sink.drain()
        sink.close()

    async def end(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.transport.abort()
            with contextlib.suppress(ConnectionError):
                await stream.wait_closed()


def _abort(streams: list[asyncio.StreamWriter]) -> None:
    for stream in streams:
        stream.transport.abort()


@asynccontextmanager
async def road(host: str, target: str | int) -> AsyncIterator[Road]:
    made = Road(free_port(), host, target)
    server = await asyncio.start_server(made.carry, "127.0.0.1", made.port)
    try:
        yield made
    finally:
        server.close()
        await made.end()


@asynccontextmanager
async def road_to_database(url: str) -> AsyncIterator[tuple[Road, str]]:
    """A road to the test server's socket file, and the database's URL over it."""
    parts = urlsplit(url)
    where = dict(parse_qsl(parts.query))
    async with road("", f"{where['host']}/.s.PGSQL.{where['port']}") as made:
        netloc = f"{parts.username}@127.0.0.1:{made.port}"
        yield made, urlunsplit(("postgresql", netloc, parts.path, "sslmode=disable", ""))
