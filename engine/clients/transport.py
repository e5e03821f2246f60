"""The way out: two HTTP/1.1 transports that never lie about whether a request left this machine.

The one question a sender has after an error is "may the provider hold this message?". Only three httpx errors
answer no: `ConnectError`, `ConnectTimeout` and `PoolTimeout` (and `UnsupportedProtocol`, for a URL that no
transport can use). They are raised here only if provably nothing left; every other error is ambiguous.
`provably_not_sent` is that rule as a function. `tests/clients/test_transport.py` holds both transports to it,
against a raw socket server that counts what really arrived.

Both are called with a ready `httpx.Request`, past `httpx.AsyncClient` (its redirect, cookie and auth layers cost
as much CPU again), and answer with a response whose body is read. Neither follows redirects, retries, keeps
cookies, or reads a proxy from the environment.
"""

import asyncio
import ssl
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import httpx
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import NetworkError, PoolTimeoutError, PyreqwestError, RequestTimeoutError
from pyreqwest.request import StreamRequest
from pyreqwest.response import Response as Reply

TransportKind = Literal["pyreqwest", "httpcore"]

MAX_CONNECT_TIMEOUT = 2.0
"""Seconds. The lease fence subtracts it, so no transport may be built with a longer one."""

MAX_BODY = 1_000_000
"""Bytes of an answer, after decompression. The provider's answers are below 2 kB."""

IDLE_TIMEOUT = 50.0
"""Seconds an unused connection is kept: below the 60 s after which common load balancers close it, because a
request that crosses the peer's close on the wire is ambiguous."""

CONNECT_FAILED = "client error (Connect)"
"""What hyper says in the chain of causes if it failed to get a connection (name, refusal, TLS, timeout). It is the
only proof that nothing left: pyreqwest's own classes call a disconnect after the request was read `ConnectError`,
and an answer that never came `ConnectTimeoutError`. If a release words it otherwise, all becomes ambiguous."""


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """What a transport may use. Times in seconds.

    A request leaves at most `pool_timeout + connect_timeout` after it was handed over, or not at all; it ends at
    most `deadline` after.

    Raises:
        ValueError: a limit is out of its range.
    """

    connections: int
    connect_timeout: float = MAX_CONNECT_TIMEOUT
    deadline: float = 20.0
    pool_timeout: float = 1.0

    def __post_init__(self) -> None:
        if self.connections < 1:
            raise ValueError(f"connections is {self.connections}: a transport needs at least 1.")
        if not 0 < self.connect_timeout <= MAX_CONNECT_TIMEOUT:
            raise ValueError(
                f"connect_timeout is {self.connect_timeout} s: set it above 0 and to at most "
                f"{MAX_CONNECT_TIMEOUT} s, which the lease fence relies on."
            )
        if self.deadline <= self.connect_timeout:
            raise ValueError(
                f"deadline is {self.deadline} s: set it above connect_timeout ({self.connect_timeout} s)."
            )
        if self.pool_timeout <= 0:
            raise ValueError(f"pool_timeout is {self.pool_timeout} s: set it above 0.")


def provably_not_sent(error: BaseException) -> bool:
    """True if `error`, raised by a transport of this module, proves that no byte of the request left.

    False means ambiguous, not sent: the provider may or may not hold the message.
    """
    proofs = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
    return isinstance(error, proofs)


def open_transport(
    kind: TransportKind,
    *,
    connections: int,
    connect_timeout: float = MAX_CONNECT_TIMEOUT,
    deadline: float = 20.0,
    pool_timeout: float = 1.0,
    extra_ca: str | None = None,
) -> httpx.AsyncBaseTransport:
    """Build a transport; end it with `aclose()`.

    Args:
        kind: `pyreqwest` (fast), or `httpcore` (plain httpx, to rule the other out when something looks odd).
        connections: most connections open, so most requests in flight.
        connect_timeout: seconds for name, TCP and TLS together, at most 2.
        deadline: seconds for the whole call, the wait for a connection included.
        pool_timeout: seconds to wait for a free connection.
        extra_ca: PEM certificates to trust beside the system's.

    Raises:
        ValueError: a limit is out of its range.
    """
    limits = TransportLimits(connections, connect_timeout, deadline, pool_timeout)
    if kind == "pyreqwest":
        return PyreqwestTransport(limits, extra_ca)
    return HttpcoreTransport(limits, extra_ca)


async def warm(transport: httpx.AsyncBaseTransport, url: str, connections: int) -> int:
    """Open connections ahead of the first send, so that a handshake is not lateness; returns how many answered.

    One GET of `url` on each, all at once: any HTTP answer will do, so a path that does nothing is best. The pool
    fills only as far as the answers overlap. Measured for 250 connections: full if an answer takes 50 ms, mostly
    from 20 ms, about half at 0 ms; but there a late handshake costs next to nothing either.
    """

    async def answered() -> bool:
        try:
            await transport.handle_async_request(httpx.Request("GET", url))
        except httpx.TransportError:
            return False  # the first send will meet the same trouble, and tell
        return True

    return sum(await asyncio.gather(*(answered() for _ in range(connections))))


class PyreqwestTransport(httpx.AsyncBaseTransport):
    """httpx's transport interface over a pyreqwest client: about half a millisecond of CPU a request.

    Cancelling a call does not take the request back (pyreqwest 0.15): it goes on until its answer or its deadline,
    may even leave after the cancel, and holds its connection until then. So a cancelled call is ambiguous, and
    the bound on connections still holds.
    """

    def __init__(self, limits: TransportLimits, extra_ca: str | None = None) -> None:
        self._client: Client | None = _pyreqwest_client(limits, extra_ca)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` once and read the whole answer.

        Raises:
            httpx.TransportError: see the module's first lines for what each class proves.
        """
        call = self._prepared(request)
        try:
            async with call as reply:
                body = await _read_reply(reply, request)
                headers = list(reply.headers.items())
                return httpx.Response(reply.status, headers=headers, content=body, request=request)
        except PyreqwestError as error:
            raise _truthful(error, request) from None  # its text holds the URL; the causes are in ours

    def _prepared(self, request: httpx.Request) -> StreamRequest:
        if self._client is None:
            raise httpx.ConnectError("the transport is closed", request=request)
        if request.url.scheme not in ("http", "https") or not request.url.host:
            raise httpx.UnsupportedProtocol("the URL must start with http:// or https://", request=request)
        call = self._client.request(request.method, str(request.url))
        return call.headers(request.headers.multi_items()).body_bytes(request.content).build_streamed()

    async def aclose(self) -> None:
        """Refuse new requests, end waiting calls as ambiguous, and let go of the connections."""
        if self._client is not None:
            client, self._client = self._client, None  # idle connections close with the last reference
            await client.close()


class HttpcoreTransport(httpx.AsyncBaseTransport):
    """httpx's own transport under the same contract; far more CPU a request once the pool is large."""

    def __init__(self, limits: TransportLimits, extra_ca: str | None = None) -> None:
        trust = ssl.create_default_context()
        if extra_ca is not None:
            trust.load_verify_locations(cadata=extra_ca)
        self._limits = limits
        self._inner = httpx.AsyncHTTPTransport(
            verify=trust,
            trust_env=False,
            limits=httpx.Limits(
                max_connections=limits.connections,
                max_keepalive_connections=limits.connections,
                keepalive_expiry=IDLE_TIMEOUT,
            ),
        )
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` once and read the whole answer.

        Raises:
            httpx.TransportError: see the module's first lines for what each class proves.
        """
        if self._closed:
            raise httpx.ConnectError("the transport is closed", request=request)
        ends = asyncio.get_running_loop().time() + self._limits.deadline
        try:
            # httpcore has no total deadline, and loses the connection's slot if a call is cancelled between its
            # wait for the pool and the connect (1.0.9). Those phases have timeouts of their own, so the deadline
            # is armed only when the first byte leaves; a cancel from there on closes the connection cleanly.
            async with asyncio.timeout(None) as deadline:

                async def arm(event: str, _info: dict[str, Any]) -> None:
                    if event == "http11.send_request_headers.started":
                        deadline.reschedule(ends)

                return await self._exchange(request, {"timeout": self._timeouts(), "trace": arm})
        except TimeoutError:
            raise httpx.ReadTimeout("no full answer within the deadline", request=request) from None
        except httpx.DecodingError:
            raise httpx.RemoteProtocolError("the answer does not decompress", request=request) from None

    async def _exchange(self, request: httpx.Request, extensions: dict[str, Any]) -> httpx.Response:
        traced = httpx.Request(
            request.method, request.url, headers=request.headers, stream=request.stream, extensions=extensions
        )
        reply = await self._inner.handle_async_request(traced)
        try:
            body = await _read_within_bound(reply, request)
        finally:
            await reply.aclose()
        headers = [(name, value) for name, value in reply.headers.multi_items() if name != "content-encoding"]
        return httpx.Response(reply.status_code, headers=headers, content=body, request=request)

    def _timeouts(self) -> dict[str, float]:
        limits = self._limits
        return {
            "pool": limits.pool_timeout,
            "connect": limits.connect_timeout / 2,  # httpcore spends it twice, on TCP and on TLS
            "write": limits.deadline,
            "read": limits.deadline,
        }

    async def aclose(self) -> None:
        """Refuse new requests and close the connections; calls in flight end as ambiguous."""
        self._closed = True
        await self._inner.aclose()


def _pyreqwest_client(limits: TransportLimits, extra_ca: str | None) -> Client:
    builder = (
        ClientBuilder()
        .http1_only()
        .no_proxy()
        .follow_redirects(False)
        .max_connections(limits.connections)
        .pool_max_idle_per_host(limits.connections)
        .pool_idle_timeout(timedelta(seconds=IDLE_TIMEOUT))
        .pool_timeout(timedelta(seconds=limits.pool_timeout))
        .connect_timeout(timedelta(seconds=limits.connect_timeout))
        .timeout(timedelta(seconds=limits.deadline))
    )
    if extra_ca is not None:
        builder = builder.add_root_certificate_pem(extra_ca.encode())
    return builder.build()


async def _read_reply(reply: Reply, request: httpx.Request) -> bytes:
    length = reply.get_header("content-length")
    if length is not None and length.isdecimal() and int(length) <= MAX_BODY:
        return bytes(await reply.bytes())  # hyper holds the peer to the length it announced
    body = bytearray()
    while (chunk := await reply.body_reader.read_chunk()) is not None:
        body += chunk
        if len(body) > MAX_BODY:
            raise _too_large(request)
    return bytes(body)


async def _read_within_bound(reply: httpx.Response, request: httpx.Request) -> bytes:
    body = bytearray()
    async for chunk in reply.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY:
            raise _too_large(request)
    return bytes(body)


def _too_large(request: httpx.Request) -> httpx.RemoteProtocolError:
    return httpx.RemoteProtocolError(f"the answer is longer than {MAX_BODY} bytes", request=request)


def _truthful(error: PyreqwestError, request: httpx.Request) -> httpx.TransportError:
    details = getattr(error, "details", None) or {}
    causes = [cause["message"] for cause in details.get("causes") or ()]
    said = ": ".join(cause for cause in causes if " url (" not in cause) or error.message
    kind: type[httpx.TransportError] = httpx.RemoteProtocolError
    if isinstance(error, PoolTimeoutError):
        kind = httpx.PoolTimeout
    elif CONNECT_FAILED in causes:
        kind = httpx.ConnectTimeout if isinstance(error, RequestTimeoutError) else httpx.ConnectError
    elif isinstance(error, RequestTimeoutError):
        kind = httpx.ReadTimeout
    elif isinstance(error, NetworkError):
        kind = httpx.ReadError
    return kind(said, request=request)
