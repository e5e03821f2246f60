"""What every measurement stands on: one Postgres with the product's own settings, databases, processes.

Nothing here is tuned for the bench: fsync is on, the schema is migrated as a DBA would, the engine and the simulator
are processes of their own that talk over loopback sockets.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from engine.postgres import embedded, placement, postmaster
from engine.postgres.migrate import migrate
from engine.postgres.pool import Pool, open_pool
from tests.support.database import TestServer, apart, reachable_directory
from tests.support.simulator import APP_SECRET, TOKEN, Simulator, simulator

ROOT = Path(__file__).parents[2]
TIDEGATE = Path(sys.executable).with_name("tidegate")
LATENCY_MS = 250.0
TOKEN_VARIABLE = "BENCH_ACCESS_TOKEN"
EMPTY = "bench_empty"
MIGRATED = "bench_migrated"
ENDS_WITHIN_S = 40.0


@dataclass(slots=True)
class World:
    """The server and a directory; `postmaster` is the process whose children do the database's work."""

    server: TestServer
    directory: Path
    postmaster: psutil.Process
    version: str = ""
    _ports: Iterator[int] = field(default_factory=lambda: iter(_free_ports()))

    @asynccontextmanager
    async def database(self, template: str = MIGRATED) -> AsyncIterator[tuple[str, Pool]]:
        """A database of its own, dropped at the end: its URL, and a pool without a limit on a statement's time."""
        with self.server.database(template) as url:
            async with open_pool(url, size=4, command_timeout=None) as pool:
                yield url, pool

    def port(self) -> int:
        """A port nobody uses."""
        return next(self._ports)

    def environment(self, url: str, **settings: str) -> dict[str, str]:
        """For a `tidegate` of this bench: none of the user's own settings, the database at `url`."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
        ours = {
            "TIDEGATE_DATABASE_URL": url,
            "TIDEGATE_DATA_DIR": str(self.directory / "data"),
            "TIDEGATE_APP_SECRET": APP_SECRET,
            "TIDEGATE_METRICS_LISTEN": f"127.0.0.1:{self.port()}",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(ROOT),  # this tree, whichever one is installed
            TOKEN_VARIABLE: TOKEN,
        }
        return inherited | ours | {f"TIDEGATE_{name.upper()}": value for name, value in settings.items()}


@contextmanager
def open_world() -> Iterator[World]:
    """Postgres started and migrated in a temporary directory; both gone at the end."""
    with reachable_directory() as directory, embedded.server(directory / "pg", sync=False) as url:
        pid = postmaster.find(placement.prepare(directory / "pg"))
        server = TestServer(url)
        server.run(f"CREATE DATABASE {EMPTY}")
        server.run(f"CREATE DATABASE {MIGRATED}")
        apart(lambda: migrate(server.url_of(MIGRATED)))
        yield World(server, directory, psutil.Process(pid), apart(lambda: _version(url)))


async def _version(url: str) -> str:
    async with open_pool(url, size=1) as pool:
        return str(await pool.fetchval("SHOW server_version"))


@asynccontextmanager
async def provider(webhook: str, **statuses: object) -> AsyncIterator[Simulator]:
    """The simulator: any number, no limit of its own, answers after LATENCY_MS, statuses in bodies of 100.

    Every message is sent, delivered and read within 4 s, so a run of seconds meets the load of a long one.
    """
    scenario: Mapping[str, Any] = {
        "any_number": {"limit": 1_000_000},
        "latency": {"fixed_ms": LATENCY_MS},
        "webhook": webhook,
        "statuses": {
            "sent_s": [0.05, 0.5],
            "delivered_s": [0.1, 1.5],
            "read_s": [0.5, 2.0],
            "read_share": 1.0,
            "read_without_delivered_share": 0.0,
            "batch": 100,
            **statuses,
        },
    }
    environment = {"TIDEGATE_APP_SECRET": APP_SECRET, "TIDEGATE_SIMULATOR_TOKEN": TOKEN}
    async with simulator(scenario, environment=environment) as running:
        yield running


@asynccontextmanager
async def command(
    *words: str | Path, environment: Mapping[str, str], log: Path, terminal: int | None = None
) -> AsyncIterator[psutil.Process]:
    """A process that is ended by SIGTERM, and killed when that does not help. Both its outputs go to `log`.

    `terminal`: a descriptor that is its screen and keyboard instead.
    """
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=ROOT,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL if terminal is None else terminal,
            stdout=out if terminal is None else terminal,
            stderr=out if terminal is None else terminal,
            start_new_session=True,  # Ctrl-C is for the bench, which ends it
        )
    try:
        yield psutil.Process(process.pid)
        if process.returncode is not None:
            raise RuntimeError(f"{words} ended by itself ({process.returncode}): {tail(log)}")
    finally:
        await _end(process)


def module(name: str, *arguments: str) -> Sequence[str]:
    """The words that run a module of the bench."""
    return (sys.executable, "-m", f"tests.bench.{name}", *arguments)


def tail(log: Path) -> str:
    """The last lines of a log, for an error."""
    return log.read_text("utf-8", "replace")[-1500:]


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _free_ports() -> Iterator[int]:
    used = set()
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in used:
            used.add(port)
            yield port


def random_name() -> str:
    """A name that no other has."""
    return secrets.token_hex(4)
