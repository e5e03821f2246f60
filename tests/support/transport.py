"""Both transports, opened for a test with limits short enough to wait for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from engine.clients.transport import TransportKind, open_transport
from tests.support import wire

KINDS: tuple[TransportKind, ...] = ("pyreqwest", "httpcore")

both_kinds = pytest.mark.parametrize("kind", KINDS)


@asynccontextmanager
async def opened(
    kind: TransportKind,
    connections: int = 2,
    connect_timeout: float = 2.0,
    deadline: float = 60.0,
    pool_timeout: float = 30.0,
    extra_ca: str | None = None,
) -> AsyncIterator[httpx.AsyncBaseTransport]:
    transport = open_transport(
        kind,
        connections=connections,
        connect_timeout=connect_timeout,
        deadline=deadline,
        pool_timeout=pool_timeout,
        extra_ca=extra_ca,
    )
    try:
        yield transport
    finally:
        await transport.aclose()


async def post(transport: httpx.AsyncBaseTransport, url: str, name: str = "one") -> httpx.Response:
    return await transport.handle_async_request(
        httpx.Request("POST", url, headers={"X-Name": name}, content=b"a template message")
    )


async def post_when_free(transport: httpx.AsyncBaseTransport, url: str) -> httpx.Response:
    async with asyncio.timeout(wire.WAIT):
        while True:
            with contextlib.suppress(httpx.PoolTimeout):
                return await post(transport, url)
