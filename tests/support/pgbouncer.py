"""A real pgbouncer in transaction mode: Debian's, found where `make check` puts it or on the PATH."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import pytest

from tests.support.database import reachable_directory

ROOT = Path(__file__).parents[2]
PLACES = (Path(sys.prefix, "pgbouncer"), ROOT / ".venv/pgbouncer")
READY_WITHIN_S = 60.0
BETWEEN_LOOKS_S = 0.05
SERVER_CONNECTIONS = 6
"""Fewer than the engine's own pool has: what is kept in a session would be met by others."""


def _program() -> tuple[str | None, str]:
    """Path of pgbouncer, and the directory of the libraries that came with it."""
    for place in PLACES:
        if (place / "usr/sbin/pgbouncer").is_file():
            return str(place / "usr/sbin/pgbouncer"), ":".join(
                map(str, (place / "usr/lib").glob("*-linux-gnu*"))
            )
    return shutil.which("pgbouncer"), ""


needs_pgbouncer = pytest.mark.skipif(
    _program()[0] is None,
    reason="pgbouncer is not at hand: `make pgbouncer` fetches Debian's package, where it can be had",
)


@asynccontextmanager
async def pgbouncer(url: str, port: int) -> AsyncIterator[str]:
    """The URL of `url`'s database, which names a socket's directory, through a pgbouncer of our own on loopback."""
    program, libraries = _program()
    assert program is not None
    parts = urlsplit(url)
    with reachable_directory() as directory:
        config = directory / "pgbouncer.ini"
        config.write_text(_settings(url, port))
        config.chmod(0o644)
        with (directory / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                program,
                str(config),
                env=os.environ | ({"LD_LIBRARY_PATH": libraries} if libraries else {}),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            await _ready(process, port, directory / "log")
            netloc = f"{parts.username}@127.0.0.1:{port}"
            yield urlunsplit(("postgresql", netloc, parts.path, "pgbouncer=true", ""))
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _settings(url: str, port: int) -> str:
    parts = urlsplit(url)
    where = dict(parse_qsl(parts.query))
    target = f"host={where['host']} port={where['port']} user={parts.username}"
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": str(SERVER_CONNECTIONS),
        "max_client_conn": "200",
        "unix_socket_dir": "",
    }
    if os.geteuid() == 0:
        # It refuses to run as root, and the server's socket is its owner's alone.
        lines["user"] = pwd.getpwuid(Path(where["host"]).stat().st_uid).pw_name
    settings = "".join(f"{name} = {value}\n" for name, value in lines.items())
    return f"[databases]\n* = {target}\n[pgbouncer]\n{settings}"


async def _ready(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    async with asyncio.timeout(READY_WITHIN_S):
        while process.returncode is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            await asyncio.sleep(BETWEEN_LOOKS_S)
    raise AssertionError(f"pgbouncer ended at once: {log.read_text()}")  # noqa: ASYNC240 - it failed anyway
