"""One embedded Postgres for a test session, and a fresh database for each test that asks.

The server belongs to a keeper process that lives until its standard input closes. The kernel closes it
however pytest ends, kill -9 included, so nothing is left running and no directory is left behind.
"""

import asyncio
import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from engine.postgres import embedded
from engine.postgres.migrate import migrate
from engine.postgres.pool import connect

T = TypeVar("T")

FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",  # it would move plans and timings under a test
    "shared_buffers": "64MB",
    "max_wal_size": "1GB",
}
TEMPLATE = "tidegate_template"


@dataclass(slots=True)
class TestServer:
    """A running server with a migrated template database."""

    __test__ = False

    url: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def database(self, template: str = TEMPLATE) -> Iterator[str]:
        """The URL of a database of its own, cloned from `template` and dropped with all its connections."""
        name = f"test_{next(self._numbers)}"  # an identifier cannot be a parameter; it is ours
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        try:
            yield self.url_of(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def url_of(self, database: str) -> str:
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{database}"))

    def run(self, statement: str) -> None:
        apart(lambda: _execute(self.url, statement))


@contextmanager
def session_server() -> Iterator[TestServer]:
    """A server in a temporary directory, gone when the block ends or this process dies."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.support.database"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for pytest; the keeper goes when pytest has cleaned up
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        url = keeper.stdout.readline().strip()
        if not url:
            raise RuntimeError("The test database did not start; its error is on standard error above.")
        server = TestServer(url)
        server.run(f"CREATE DATABASE {TEMPLATE}")
        apart(lambda: migrate(server.url_of(TEMPLATE)))
        yield server
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()


def apart(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a loop of its own, also where another loop is running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


async def _execute(url: str, statement: str) -> None:
    async with connect(url) as connection:
        await connection.execute(statement)


@contextmanager
def reachable_directory() -> Iterator[Path]:
    """A temporary directory that the server's user can pass when the tests run as root."""
    directory = Path(tempfile.mkdtemp(prefix="tg-"))
    directory.chmod(0o711)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def _keep() -> None:
    with (
        reachable_directory() as directory,
        embedded.server(directory / "pg", settings=FAST, sync=False) as url,
    ):
        print(url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _keep()
