"""HTTP/1.1 on a bare asyncio protocol.

Not an ASGI server: its applications can neither close a connection before the body was read, nor reset it,
nor stay silent for ever, nor break off in the middle of an answer, and these are what the simulator is for.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

import httptools

from engine.simulator.cloud_api import CloudApi, Ending, Verdict

LARGEST_BODY = 4 * 1024 * 1024
LARGEST_HEAD = 64 * 1024
SEND_PATH = re.compile(r"/v\d{2}\.0/(\d{1,30})/(?:messages|marketing_messages)", re.ASCII)
REASONS = {status.value: status.phrase for status in HTTPStatus}
TOO_LARGE = Verdict(413, b'{"error":"The request is larger than the simulator takes."}')
NOT_HTTP = Verdict(400, b'{"error":"This is not an HTTP/1.1 request."}')

Control = Callable[[str, str, bytes], Awaitable[Verdict]]


class Connection(asyncio.Protocol):
    """One client connection. A request arrives when its last byte is read; answers keep order."""

    def __init__(
        self, api: CloudApi, control: Control, now_us: Callable[[], int], open_connections: set[Connection]
    ) -> None:
        self._api, self._control, self._now_us = api, control, now_us
        self._open = open_connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._verdicts: deque[tuple[Verdict, int, bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._over = False
        self._at_us = 0
        self.on_message_begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start serving."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without inheriting from it
        self._open.add(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        """The client left or the answer was to close; what was accepted stays accepted."""
        self._over, self._transport = True, None
        self._open.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse; the callbacks below do the rest."""
        if self._over:
            return
        self._at_us = self._now_us()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._over:
                self._write(NOT_HTTP, keep_alive=False)
        except httptools.HttpParserUpgrade:
            self._close()

    def on_message_begin(self) -> None:
        """Forget the request before."""
        self._url = b""
        self._authorization: str | None = None
        self._body = bytearray()
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        """May come in pieces."""
        self._url += url
        self._grow_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Only one header matters here."""
        self._grow_head(len(name) + len(value))
        if name.lower() == b"authorization":
            self._authorization = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Some faults end the request here."""
        if self._over or (number := self._number()) is None:
            return
        verdict = self._api.before_reading(number, self._authorization, self._at_us)
        if verdict is not None:
            self._over = True
            self._answer_later(verdict, keep_alive=False)

    def on_body(self, body: bytes) -> None:
        """Collect the body, up to a limit."""
        if self._over:
            return
        self._body += body
        if len(self._body) > LARGEST_BODY:
            self._write(TOO_LARGE, keep_alive=False)

    def on_message_complete(self) -> None:
        """A whole request: decide now, answer when its latency has passed."""
        if self._over:
            return
        number, keep_alive = self._number(), self._parser.should_keep_alive()
        if number is None:
            self._task = self._loop.create_task(self._control_answer(keep_alive=keep_alive))
            return
        verdict = self._api.send(number, self._authorization, bytes(self._body), self._at_us)
        self._answer_later(verdict, keep_alive=keep_alive)

    def abort(self) -> None:
        """End at once, when the process ends."""
        if self._transport is not None:
            self._transport.abort()

    def _number(self) -> str | None:
        match = SEND_PATH.fullmatch(self._url.partition(b"?")[0].decode("latin-1"))
        return match.group(1) if match and self._parser.get_method() == b"POST" else None

    def _grow_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > LARGEST_HEAD and not self._over:
            self._write(TOO_LARGE, keep_alive=False)

    async def _control_answer(self, *, keep_alive: bool) -> None:
        # Not queued behind sends: no client pipelines a control request after a send on one connection.
        method, url = self._parser.get_method().decode("latin-1"), self._url.decode("latin-1")
        self._write(await self._control(method, url, bytes(self._body)), keep_alive=keep_alive)

    def _answer_later(self, verdict: Verdict, *, keep_alive: bool) -> None:
        # Requests pipelined on one connection are judged as they arrive and answered one after the other.
        self._verdicts.append((verdict, self._at_us, keep_alive))
        if self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        verdict, at_us, _ = self._verdicts[0]
        delay = verdict.delay_ms / 1000 - (self._now_us() - at_us) / 1e6
        self._timer = self._loop.call_later(max(0.0, delay), self._answer_first)

    def _answer_first(self) -> None:
        self._timer = None
        verdict, _, keep_alive = self._verdicts.popleft()
        match verdict.ending:
            case Ending.ANSWER:
                self._write(verdict, keep_alive=keep_alive)
            case Ending.CLOSE:
                self._close()
            case Ending.RESET:
                self._reset()
            case Ending.HALF:
                self._write(verdict, keep_alive=False, half=True)
            case Ending.SILENCE:
                return  # and nothing after it on this connection either
        if self._verdicts and self._transport is not None and not self._transport.is_closing():
            self._start_timer()

    def _write(self, verdict: Verdict, *, keep_alive: bool, half: bool = False) -> None:
        if self._transport is None:
            return
        extra = "".join(f"{name}: {value}\r\n" for name, value in verdict.headers)
        if not keep_alive:
            extra += "connection: close\r\n"
        head = (
            f"HTTP/1.1 {verdict.status} {REASONS.get(verdict.status, 'Unknown')}\r\n"
            f"content-type: {verdict.content_type}\r\ncontent-length: {len(verdict.body)}\r\n{extra}\r\n"
        )
        body = verdict.body[: len(verdict.body) // 2] if half else verdict.body
        self._transport.write(head.encode("latin-1") + body)
        if not keep_alive:
            self._close()

    def _close(self) -> None:
        self._over = True
        if self._transport is not None:
            self._transport.close()

    def _reset(self) -> None:
        """Close with a zero linger, which the kernel turns into a RST."""
        self._over = True
        if self._transport is None:
            return
        peer = self._transport.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()
