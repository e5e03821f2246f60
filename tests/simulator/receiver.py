"""A tiny webhook receiver on a real socket that keeps exactly what it was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple


class Received(NamedTuple):
    """One body, as it came, and what it was answered with."""

    body: bytes
    signature: str
    answered: int

    def changes(self) -> list[dict[str, Any]]:
        """The changes of all entries."""
        return [change for entry in json.loads(self.body)["entry"] for change in entry["changes"]]

    def statuses(self) -> list[dict[str, Any]]:
        """The statuses of all changes."""
        return [status for change in self.changes() for status in change["value"].get("statuses", [])]


class Receiver:
    """What arrived so far, and a way to wait for more."""

    def __init__(self, answer: Callable[[int], int]) -> None:
        self.received: list[Received] = []
        self.url = ""
        self._answer = answer
        self._news = asyncio.Condition()

    def statuses(self) -> list[dict[str, Any]]:
        """The statuses of all bodies that were answered with 200."""
        return [status for one in self.received if one.answered == 200 for status in one.statuses()]

    async def until(self, reached: Callable[[Receiver], bool], within_s: float = 60.0) -> None:
        """Wait until `reached` holds."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(lambda: reached(self))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while head := await _head(reader):
                fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)
                body = await reader.readexactly(int(fields["content-length"]))
                status = self._answer(len(self.received))
                async with self._news:
                    self.received.append(Received(body, fields["x-hub-signature-256"], status))
                    self._news.notify_all()
                writer.write(f"HTTP/1.1 {status} Whatever\r\ncontent-length: 0\r\n\r\n".encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the simulator ended
        finally:
            writer.close()


@asynccontextmanager
async def receiver(answer: Callable[[int], int] = lambda _: 200) -> AsyncIterator[Receiver]:
    """A receiver on a free port; `answer` gives the status for the nth body, from 0."""
    listener = Receiver(answer)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0)
    listener.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/webhook"
    try:
        yield listener
    finally:
        server.close()


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return ""
