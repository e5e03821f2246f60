"""What the engine really puts on the wire: a relay before the provider's double that keeps the bodies of requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httptools


class Recorder:
    """Listens on `port`; whoever connects talks to `target`. `bodies`: of all requests, as they came."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.target = 0
        self.bodies: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            onward, out = await asyncio.open_connection("127.0.0.1", self.target)
            await asyncio.gather(_pump(reader, out, _Reading(self.bodies)), _pump(onward, writer, None))
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def end(self) -> None:
        """Let go of all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Reading:
    """The requests of one connection, as its bytes come."""

    def __init__(self, bodies: list[Any]) -> None:
        self._bodies = bodies
        self._body = b""
        self.parser = httptools.HttpRequestParser(self)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._bodies.append(json.loads(self._body))
        self._body = b""


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, reading: _Reading | None) -> None:
    try:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                if reading is not None:
                    reading.parser.feed_data(data)
                sink.write(data)
                await sink.drain()
    finally:
        sink.transport.abort()


@asynccontextmanager
async def recorder(port: int) -> AsyncIterator[Recorder]:
    """It listens at once; set `target` before anybody connects."""
    made = Recorder(port)
    server = await asyncio.start_server(made.relay, "127.0.0.1", port)
    try:
        yield made
    finally:
        server.close()
        await made.end()
