"""A TCP relay before the provider's double, so that it can be away for a while and keep its ledger."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Relay:
    """Listens on `port` while open; whoever connects meanwhile talks to `target`.

    `handshake_s`: seconds before the first byte of a new connection goes on, as with TLS over a distance. `first`: what
    each connection brought first, in the order in which they were made.
    """

    def __init__(self, port: int, handshake_s: float) -> None:
        self.port, self._handshake_s = port, handshake_s
        self.target = 0
        self.first: list[bytes] = []
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)

    async def close(self) -> None:
        """Refuse new connections and end the open ones."""
        if self._server is not None:
            self._server.close()
        for stream in self._streams:
            stream.transport.abort()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        self._server = None

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        try:
            nth = len(self.first)
            self.first.append(b"")
            await asyncio.sleep(self._handshake_s)
            onward, out = await asyncio.open_connection("127.0.0.1", self.target)
            self._streams |= {writer, out}
            self.first[nth] = await reader.read(65536)
            out.write(self.first[nth])
            await asyncio.gather(_pump(reader, out), _pump(onward, writer))
            self._streams -= {writer, out}
        finally:
            writer.close()
            self._pumps.discard(task)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()
    with contextlib.suppress(ConnectionError):
        await sink.wait_closed()


@asynccontextmanager
async def relay(port: int, handshake_s: float = 0.0) -> AsyncIterator[Relay]:
    """Closed at first; `target` is to be set before it opens."""
    made = Relay(port, handshake_s)
    try:
        yield made
    finally:
        await made.close()
