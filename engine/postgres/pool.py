"""Connections to Postgres: one pool per process, and errors that a person can act on."""

import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit
from weakref import WeakSet

import asyncpg

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Executor: TypeAlias = (
    "asyncpg.Pool[asyncpg.Record] | asyncpg.Connection[asyncpg.Record]"
    " | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
)
"""Whatever runs one statement: a pool, or a connection inside a transaction."""

COMMAND_SECONDS = 30.0
CONNECT_SECONDS = 10.0
RECONNECT_SECONDS = 2.0
"""For a pool that has had a connection: one that is begun just before an outage ends must not wait it out."""

RELEASE_SECONDS = 2.0

_SECRET_PARAMETERS = frozenset({"password", "sslpassword"})
_UNREADABLE = "postgresql://…"
_HOSTS = re.compile(r"((\[[0-9A-Fa-f:.%]*\]|[^\[\]:,]*)(:\d*)?)(,(\[[0-9A-Fa-f:.%]*\]|[^\[\]:,]*)(:\d*)?)*")
_FAILURES = (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class DatabaseUnreachable(Exception):
    """No connection could be made. The message is one sentence and never holds the password."""


class _Pool(asyncpg.Pool):
    """asyncpg's, for a network that swallows everything. It waits without end for a cancelled statement before it takes
    its connection back; here the connection is ended instead. And all connections can be given up at once."""

    def __init__(self, dsn: str, *, size: int, **settings: Any) -> None:
        self._dsn, self._settings = dsn, settings
        self._live: WeakSet[Connection] = WeakSet()
        self._reached = False
        super().__init__(
            dsn,
            min_size=1,
            max_size=size,
            max_queries=50_000,
            max_inactive_connection_lifetime=300.0,
            loop=None,
            connect=self._reach,
            connection_class=asyncpg.Connection,
            record_class=asyncpg.Record,
            reset=_keep,
        )

    async def release(self, connection: Any, *, timeout: float | None = None) -> None:
        # On time-out asyncpg has ended the connection; whoever releases it has an error of his own to raise.
        with suppress(TimeoutError):
            await super().release(connection, timeout=RELEASE_SECONDS if timeout is None else timeout)

    async def beside(self, seconds: float) -> Connection:
        connection: Connection = await asyncpg.connect(self._dsn, timeout=seconds, **self._settings)
        return connection

    def start_over(self) -> None:
        # Not terminate(): it takes the protocol from under a task that stands between two messages, which then dies of
        # an AttributeError. A transport that is gone is told to whoever uses the connection, as any lost one is.
        for connection in list(self._live):
            if not connection.is_closed():
                connection._transport.abort()  # type: ignore[attr-defined]  # there is no public way to it

    async def _reach(self, *_: object, **__: object) -> Connection:
        """What asyncpg passes is what it was made with, and defaults."""
        connection = await self.beside(RECONNECT_SECONDS if self._reached else CONNECT_SECONDS)
        self._reached = True
        self._live.add(connection)
        return connection


@asynccontextmanager
async def open_pool(
    url: str,
    *,
    size: int = 10,
    pgbouncer: bool = False,
    command_timeout: float | None = COMMAND_SECONDS,
    abandoned_after: float | None = None,
) -> AsyncIterator[Pool]:
    """A pool of up to `size` connections to `url`, closed on leaving. `abandoned_after`: seconds after which the server
    rolls back a transaction that nobody goes on with (a pgbouncer in between takes no such wish: it has its own).

    `pgbouncer=True`, or `?pgbouncer=true` in the URL, keeps no prepared statements: in transaction mode
    the next statement may run on another server connection. Raises DatabaseUnreachable when the first
    connection fails; later losses surface where the connection is used.
    """
    dsn, statements = _prepare(url, pgbouncer)
    try:
        pool: Pool = await _Pool(
            dsn,
            size=size,
            command_timeout=command_timeout,
            statement_cache_size=statements,
            server_settings=_lively(abandoned_after) if abandoned_after and statements else None,
        )
    except _FAILURES as error:
        raise _unreachable(url, error) from None  # the cause may quote the URL
    try:
        yield pool
    except BaseException:
        pool.terminate()  # closing would wait for whoever still holds a connection
        raise
    await pool.close()


async def connection_beside(pool: Pool, seconds: float) -> Connection:
    """One more connection with the pool's settings, the caller's own to close. Raises what asyncpg raises;
    TimeoutError when it is not made within `seconds`."""
    return await _ours(pool).beside(seconds)


def start_over(pool: Pool) -> None:
    """End every connection of the pool, those with a statement under way too; the next use makes new ones.

    Their statements raise, and may have been committed: whoever repeats one must be able to.
    """
    _ours(pool).start_over()


def _ours(pool: Pool) -> _Pool:
    assert isinstance(pool, _Pool)  # there is no other way to one than open_pool
    return pool


@asynccontextmanager
async def connect(
    url: str, *, pgbouncer: bool = False, command_timeout: float | None = COMMAND_SECONDS
) -> AsyncIterator[Connection]:
    """One connection outside any pool. Raises DatabaseUnreachable."""
    dsn, statements = _prepare(url, pgbouncer)
    try:
        connection: Connection = await asyncpg.connect(
            dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=command_timeout,
            statement_cache_size=statements,
        )
    except _FAILURES as error:
        raise _unreachable(url, error) from None
    try:
        yield connection
    finally:
        try:
            await connection.close(timeout=CONNECT_SECONDS)
        except _FAILURES:  # already lost, which the block was told; its own error must not be hidden
            connection.terminate()


def masked(url: str) -> str:
    """`url` fit for a log: passwords replaced; all of it withheld when it cannot be read with certainty."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return _UNREADABLE
    login, at, hosts = parts.netloc.rpartition("@")
    if parts.scheme not in {"postgresql", "postgres"} or _misread(parts) or not _HOSTS.fullmatch(hosts):
        return _UNREADABLE
    user, colon, _ = login.partition(":")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode([(k, "***" if k.lower() in _SECRET_PARAMETERS else v) for k, v in pairs], safe="/*")
    return urlunsplit((parts.scheme, f"{user}{':***' if colon else ''}{at}{hosts}", parts.path, query, ""))


def _lively(abandoned_after: float) -> dict[str, str]:
    """Locks and connections of a client that is gone without a word go soon, and not after two hours."""
    return {
        "idle_in_transaction_session_timeout": f"{round(abandoned_after * 1000)}ms",
        # Between the messages of one statement no other time-out of a server runs.
        "tcp_keepalives_idle": "5",
        "tcp_keepalives_interval": "2",
        "tcp_keepalives_count": "2",
    }


def _misread(parts: SplitResult) -> bool:
    """Whether a password with a bare / ? # or @ was split in the wrong place: its rest looks like a host."""
    return bool(parts.fragment) or "@" in parts.path + parts.query or parts.netloc.count("@") > 1


async def _keep(connection: Connection) -> None:
    # asyncpg's own RESET ALL costs a round trip at every release. It still rolls back an open transaction
    # before it calls us, and we keep nothing else in a session: SET LOCAL only.
    del connection


def _prepare(url: str, pgbouncer: bool) -> tuple[str, int]:
    """The URL without our own `pgbouncer` parameter, and how many prepared statements to keep."""
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        if _misread(parts):
            raise ValueError("a reserved character is not %-encoded")
    except ValueError as error:
        raise _unreachable(url, error) from None
    flags = [value for key, value in pairs if key == "pgbouncer"]
    if flags:  # otherwise left byte for byte as written
        rest = urlencode([pair for pair in pairs if pair[0] != "pgbouncer"], safe="/")
        url = urlunsplit((parts.scheme, parts.netloc, parts.path, rest, parts.fragment))
    behind = pgbouncer or (bool(flags) and flags[-1].lower() in {"1", "true", "yes", "on"})
    return url, 0 if behind else 1024


def _unreachable(url: str, error: Exception) -> DatabaseUnreachable:
    return DatabaseUnreachable(f"The database {masked(url)} {_reason(error)}.")


def _reason(error: Exception) -> str:
    """What went wrong, in words of our own: a driver's message may quote the URL."""
    match error:
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return "refused the user or the password; check the URL and pg_hba.conf"
        case asyncpg.InvalidCatalogNameError():
            return "does not exist on that server; create it or correct the URL"
        case asyncpg.CannotConnectNowError():
            return "is starting, recovering or shutting down; try again in a moment"
        case asyncpg.TooManyConnectionsError():
            return "has no connection left; raise max_connections or lower the pool's size"
        case asyncpg.PostgresError():
            return f"refused the connection (SQLSTATE {error.sqlstate})"
        case TimeoutError():
            return f"did not answer within {CONNECT_SECONDS:.0f} s; check the address and the network"
        case asyncpg.InterfaceError() | ValueError():
            return "is not a valid Postgres URL; write postgresql://user:password@host:5432/name, %-encoded"
        case socket.gaierror():
            return "is on a host that no name server knows; check the name in the address, and the network"
        case OSError():
            return f"could not be reached ({_cause(error)}); check that it runs and that the address is right"
    return f"could not be opened ({type(error).__name__})"


def _cause(error: OSError) -> str:
    if (
        error.errno is not None
        and error.errno > 0
        and error.strerror
        and "Multiple exceptions" not in str(error)
    ):
        return error.strerror.rstrip(".").split(": ")[0]
    return type(error).__name__
