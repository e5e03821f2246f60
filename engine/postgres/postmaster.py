"""The server's process and cluster: made, launched, found again, asked, stopped.

Nothing here knows who uses the server; `embedded` calls this while it holds the locks.
"""

import asyncio
import enum
import os
import secrets
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncpg

from engine.postgres.placement import EmbeddedError, Site, open_private

STOP_SECONDS = 60.0  # the checkpoint of a fast shutdown
KILL_SECONDS = 10.0
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


class Answer(enum.Enum):
    """What a connection attempt met."""

    READY = enum.auto()
    STARTING = enum.auto()  # or recovering, or shutting down
    NONE = enum.auto()


def make_cluster(site: Site, sync: bool) -> None:
    """Make the cluster and its database aside, then rename it, so that a half-made one is never used."""
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


def launch(site: Site, settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start a postmaster, without waiting for it. What it says before its log opens goes to start.log."""
    _disown_stale_pid(site)
    for leftover in (".s.PGSQL.5432", ".s.PGSQL.5432.lock"):
        (site.sockets / leftover).unlink(missing_ok=True)
    command = [str(site.binaries / "postgres"), "-D", str(site.data)]
    for name, value in {**settings, "unix_socket_directories": str(site.sockets)}.items():
        command += ["-c", f"{name}={value}"]
    try:
        with open_private(site.base / "start.log") as log:
            os.ftruncate(log, 0)
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **_as_account(site)
            )
    except OSError as error:
        raise EmbeddedError(f"{command[0]} cannot be run in {site.base}: {error.strerror}.") from error
    # Reaped whenever it ends and whoever stopped it, or its pid would live on as a zombie's.
    threading.Thread(target=process.wait, name="embedded-postgres-reaper", daemon=True).start()
    return process


def find(site: Site) -> int | None:
    """The pid of this server's live postmaster. A pid file that names anything else is not believed."""
    try:
        pid = int((site.data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None
    return pid if pid > 1 and _serves(pid, site.data) else None


def probe(site: Site) -> Answer:
    """Try one connection."""
    # In a thread of its own: the caller's may have a running loop.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(lambda: asyncio.run(_connect(site.url))).result()


def stop(site: Site) -> None:
    """Fast shutdown, waited for. Immediate shutdown when that takes too long: the next start recovers."""
    pid = find(site)
    if pid is None:
        return
    try:
        if not _ended(pid, signal.SIGINT, site, STOP_SECONDS):
            _ended(pid, signal.SIGQUIT, site, KILL_SECONDS)
    except PermissionError as error:
        raise EmbeddedError(
            f"The embedded Postgres (pid {pid}) in {site.base} is another user's: stop it as that user."
        ) from error
    if site.sockets.parent != site.home:  # in /tmp, where it would stay for ever
        shutil.rmtree(site.sockets, ignore_errors=True)


def log_tail(site: Site) -> str:
    """The last words of the server last launched, on one line."""
    said = (site.base / "start.log").read_text(errors="replace")
    if "redirecting log output" in said:  # from there on it spoke to its own log
        newest = max(
            site.log.glob("*.log"), key=lambda log: log.stat().st_mtime, default=site.base / "start.log"
        )
        said = newest.read_text(errors="replace")[-4000:]
    return _one_line(said)


async def _connect(url: str) -> Answer:
    try:
        connection = await asyncpg.connect(url, timeout=5)
        await connection.close()
    except asyncpg.CannotConnectNowError:
        return Answer.STARTING
    except asyncpg.TooManyConnectionsError:
        return Answer.READY
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return Answer.NONE
    return Answer.READY


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
        said = _one_line(done.stderr or done.stdout)
        raise EmbeddedError(f"{program} failed in {site.base} (exit {done.returncode}): {said}")


def _as_account(site: Site) -> dict[str, Any]:
    """How every program runs: as its user, deaf to the terminal's Ctrl-C, and without our environment, which
    may hold access tokens."""
    how: dict[str, Any] = {
        "cwd": "/",
        "env": {"PATH": os.defpath, "LC_ALL": "C"},
        "start_new_session": True,
        "umask": 0o077,
    }
    if site.account is not None:
        how |= {"user": site.account.uid, "group": site.account.gid, "extra_groups": []}
    return how


def _disown_stale_pid(site: Site) -> None:
    """Make Postgres see through a pid file that names a process which is not this server.

    Postgres refuses to start while that pid lives, unless it is its own parent's: so we put in ours. The
    other lines stay, because by them Postgres finds the shared memory of backends that outlived their
    postmaster; removing the file would hide them.
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


def _serves(pid: int, data: Path) -> bool:
    """Whether `pid` is a postmaster of `data`, by its command line: as root in a container without
    CAP_SYS_PTRACE nothing else of another user's process can be read. A zombie has none."""
    if Path("/proc/self/cmdline").exists():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        return Path(os.fsdecode(words[0])).name == "postgres" and words[1:3] == [b"-D", os.fsencode(data)]
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return (
        f"postgres -D {data} " in subprocess.run(command, capture_output=True, text=True, check=False).stdout
    )


def _ended(pid: int, kind: signal.Signals, site: Site, seconds: float) -> bool:
    try:
        os.kill(pid, kind)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + seconds
    while _serves(pid, site.data):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _one_line(text: str, lines: int = 6) -> str:
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:]) or "(empty)"
