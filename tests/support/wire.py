"""A raw socket server that misbehaves on request, and counts what it really received.

It speaks just enough HTTP/1.1 to know when a whole request has arrived; everything it answers is bytes from a
script. One script runs for each connection.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Self

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
WAIT = 60.0
"""Seconds until a wait in a test is called a failure."""


class Line:
    """One accepted connection, as a script sees it."""

    def __init__(self, wire: "Wire", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._wire = wire
        self._reader = reader
        self._writer = writer

    async def read_request(self) -> bytes:
        """Wait for one whole request (head and body), count it, and return it."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        body = await self._reader.readexactly(_content_length(head))
        await self._wire.count(head + body)
        return head + body

    async def read_some(self) -> bytes:
        """Wait for any bytes, which count as nothing; empty when the client hung up."""
        return await self._reader.read(65536)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def reset(self) -> None:
        """End the connection with RST, which is what a zero linger time means."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def until_the_client_hangs_up(self) -> None:
        while await self.read_some():
            pass


Script = Callable[[Line], Awaitable[None]]


class Wire:
    """The server. Use as `async with Wire(script) as wire`; `wire.url` is its address.

    Attributes:
        requests: every whole request received, in order of arrival.
        accepted, open, peak: connections accepted so far, open now, and most open at once.
    """

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._changed = asyncio.Condition()
        self._lines: set[asyncio.Task[None]] = set()
        self.requests: list[bytes] = []
        self.accepted = self.open = self.peak = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls, backlog=500)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/messages"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)
        await self._server.wait_closed()

    async def count(self, request: bytes) -> None:
        async with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    async def until(self, true: Callable[["Wire"], bool]) -> None:
        """Wait until `true(self)`; a failure after `WAIT` seconds."""
        async with asyncio.timeout(WAIT), self._changed:
            await self._changed.wait_for(lambda: true(self))

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.open += 1
        self.peak = max(self.peak, self.open)
        line = asyncio.get_running_loop().create_task(self._run(Line(self, reader, writer), writer))
        self._lines.add(line)
        line.add_done_callback(self._lines.discard)

    async def _run(self, line: Line, writer: asyncio.StreamWriter) -> None:
        try:
            await self._script(line)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client hung up, as it may
        finally:
            writer.close()
            async with self._changed:
                self.open -= 1
                self._changed.notify_all()


def _content_length(head: bytes) -> int:
    for field in head.lower().split(b"\r\n"):
        if field.startswith(b"content-length:"):
            return int(field.partition(b":")[2])
    return 0


async def answer_all(line: Line) -> None:
    while True:
        await line.read_request()
        await line.write(OK)


async def close_before_reading(_: Line) -> None:
    return


async def close_after_reading(line: Line) -> None:
    await line.read_request()


async def reset_after_reading(line: Line) -> None:
    await line.read_request()
    line.reset()


async def half_a_head(line: Line) -> None:
    await line.read_request()
    await line.write(b"HTTP/1.1 200 OK\r\nConte")


async def half_a_body(line: Line) -> None:
    await line.read_request()
    await line.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")


async def half_a_body_then_silence(line: Line) -> None:
    await half_a_body(line)
    await line.until_the_client_hangs_up()


async def garbage(line: Line) -> None:
    await line.read_request()
    await line.write(b"220 mail.example ESMTP ready\r\n\r\n")


async def never_answer(line: Line) -> None:
    await line.read_request()
    await line.until_the_client_hangs_up()


async def plain_text_to_anything(line: Line) -> None:
    await line.read_some()
    await line.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def answer_once_with(answer: bytes) -> Script:
    async def script(line: Line) -> None:
        await line.read_request()
        await line.write(answer)
        await line.until_the_client_hangs_up()

    return script


@contextmanager
def refused() -> Iterator[str]:
    """A URL whose port is taken but does not listen, so every connect is refused."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{reserved.getsockname()[1]}/messages"


@contextmanager
def blackhole(scheme: str = "http") -> Iterator[str]:
    """A URL that answers no SYN: a listening socket whose queue is full (Linux drops what does not fit)."""
    with ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            filler = held.enter_context(socket.socket())
            filler.settimeout(0.1)
            try:
                filler.connect(listener.getsockname())
            except TimeoutError:
                yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/messages"
                return
        raise AssertionError(
            "eight connections did not fill a queue of length 0: no blackhole on this system"
        )
