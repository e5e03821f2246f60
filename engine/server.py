"""One ASGI application (webhook, health, and whatever else is mounted), served inside our own event loop.

Plain ASGI on uvicorn, with httptools and without an access log: measured 6,900 webhook bodies/s on one core where
Starlette with the log made 3,900.
"""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from engine.delivery.receiver import Receive, Scope, Send, answer

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADER_SECONDS = 10
"""How long a connection may take to say what it wants, from its opening or from the first byte of a request."""

KEEP_ALIVE_SECONDS = 75
CONNECTIONS = 2000
BACKLOG = 2048


class ListenError(Exception):
    """The address cannot be listened on; the message is one sentence that says why and what to do."""


class AddressInUseError(ListenError):
    """Another process listens there already."""


class App:
    """Routes by exact path; `otherwise` takes the rest (the gateway, say), or 404.

    `/healthz` answers 200 as long as the loop turns. `/readyz` answers 200 when `ready` returns None, else 503 and
    the reason that it returned.
    """

    def __init__(
        self,
        ready: Callable[[], Awaitable[str | None]],
        routes: Mapping[str, Application],
        otherwise: Application | None = None,
    ) -> None:
        self._ready = ready
        self._otherwise = otherwise or not_found
        self._routes: dict[str, Application] = {"/healthz": healthy, "/readyz": self._readiness, **routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._routes.get(scope["path"], self._otherwise)(scope, receive, send)

    async def _readiness(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        reason = await self._ready()
        if reason is None:
            await answer(send, 200, b"ready\n")
        else:
            await answer(send, 503, f"{reason}\n".encode())


async def healthy(scope: Scope, receive: Receive, send: Send) -> None:
    """200: the loop turns."""
    del scope, receive
    await answer(send, 200, b"ok\n")


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """404."""
    del scope, receive
    await answer(send, 404, b"There is nothing here.\n")


@contextmanager
def bind(
    host: str, port: int, setting: str = "TIDEGATE_LISTEN", *, shared: bool = False, listen: bool = True
) -> Iterator[socket.socket]:
    """A listening socket on `host` (a name or an address) and `port` (0: any free one), closed on leaving.
    `setting`: what to change when it cannot be had. `shared`: with other sockets that are `shared`, which the
    kernel gives connections in turn; one that does not `listen` keeps the port and gets none.

    Raises AddressInUseError or ListenError.
    """
    if not 0 <= port <= 65535:  # getaddrinfo would take it modulo 65536
        raise ListenError(f"{setting} names port {port}; ports end at 65535.")
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError, OverflowError) as error:
        raise ListenError(
            f"{setting} names {where}, which is no address of this machine ({error})."
        ) from None
    with listening:
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind(address)
            if listen:
                listening.listen(BACKLOG)
        except OSError as error:
            raise _refused(where, error, setting) from None
        listening.setblocking(False)
        yield listening


@asynccontextmanager
async def serve(
    app: Application, sockets: Sequence[socket.socket], *, grace: float = 5.0
) -> AsyncIterator["asyncio.Task[None]"]:
    """Serve `app` on sockets of our own, in the running loop, until the block ends.

    Then no new connection is taken, requests in hand have `grace` seconds, and the rest is closed. Yields the
    standing task: when it ends by itself, the server is gone.
    """
    server = _Server(
        uvicorn.Config(
            app,
            loop="none",
            http=_Patient,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(grace)),
            backlog=BACKLOG,
        )
    )
    task = asyncio.create_task(server.serve(sockets=list(sockets)), name="http server")
    started = asyncio.create_task(server.up.wait())
    await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
    started.cancel()
    if task.done():
        await task
        raise ListenError("The HTTP server ended before it began.")
    try:
        yield task
    finally:
        server.should_exit = True
        await task


class _Server(uvicorn.Server):
    """uvicorn without its hands on our signals: they belong to the process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


class _Patient(HttpToolsProtocol):
    """uvicorn waits for ever for the end of a header; a few thousand idle connections would then be all it has."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._limit = self.loop.call_later(HEADER_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._heard()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._heard()
        self._limit = self.loop.call_later(HEADER_SECONDS, self.transport.abort)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._heard()
        super().on_headers_complete()

    def _heard(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def _refused(where: str, error: OSError, setting: str) -> ListenError:
    match error.errno:
        case errno.EADDRINUSE:
            return AddressInUseError(
                f"Another program listens on {where}: stop it, or set {setting} to a free address."
            )
        case errno.EACCES:
            return ListenError(f"Listening on {where} is not permitted: set {setting} to a port above 1023.")
        case errno.EADDRNOTAVAIL:
            return ListenError(f"{setting} names {where}, which is no address of this machine.")
    return ListenError(f"Listening on {where} failed ({error.strerror}): set {setting} to another address.")
