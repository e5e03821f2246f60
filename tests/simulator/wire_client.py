"""A client on a raw socket, which sees what really happens to a connection."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

WAIT_S = 60.0
NUMBER = "106540352242922"
RECIPIENT = "+16505551234"


def template(to: str = RECIPIENT, token: str = "tg1:c:1:1") -> dict[str, Any]:
    """A body that Meta would accept."""
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": to,
        "type": "template",
        "biz_opaque_callback_data": token,
        "template": {
            "name": "order_shipped",
            "language": {"code": "en_US"},
            "components": [{"type": "body", "parameters": [{"type": "text", "text": "Ana"}]}],
        },
    }


def request(body: object, *, number: str = NUMBER, token: str | None = "simulator-token") -> bytes:
    """The bytes of a send."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    bearer = f"authorization: Bearer {token}\r\n" if token is not None else ""
    head = (
        f"POST /v25.0/{number}/messages HTTP/1.1\r\nhost: sim\r\n{bearer}content-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the simulator at `url`."""
    return await asyncio.open_connection("127.0.0.1", urlsplit(url).port)


async def raw(url: str, data: bytes) -> bytes:
    """All that comes back until the simulator closes; ConnectionResetError when it resets."""
    reader, writer = await connect(url)
    try:
        writer.write(data)
        async with asyncio.timeout(WAIT_S):
            return await reader.read()
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """The next whole answer on a connection: status, headers (lower case), body."""
    async with asyncio.timeout(WAIT_S):
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        return int(first.split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


async def send(
    url: str, body: object = None, *, number: str = NUMBER, token: str | None = "simulator-token"
) -> tuple[int, dict[str, str], bytes]:
    """One send on a connection of its own."""
    reader, writer = await connect(url)
    try:
        writer.write(request(template() if body is None else body, number=number, token=token))
        return await answer(reader)
    finally:
        writer.close()
