"""Users of an embedded server, in this process and in others."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from engine.postgres import embedded, placement, postmaster
from engine.postgres.pool import connect
from tests.support.database import FAST, apart

ROOT = Path(__file__).parents[2]

USER = """
import sys
from pathlib import Path
from tests.support.embedded import server

with server(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def user_of(directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that uses the server until its standard input closes or it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", USER, str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("postgresql://tidegate@/tidegate?host=/")
        yield process
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def server(directory: Path, **settings: str) -> AbstractContextManager[str]:
    """The server with the tests' fast settings."""
    return embedded.server(directory, settings={**FAST, **settings}, sync=False)


def site_of(directory: Path) -> placement.Site:
    return placement.prepare(directory)


def fetch(url: str, query: str) -> object:
    async def ask() -> object:
        async with connect(url) as connection:
            return await connection.fetchval(query)

    return apart(ask)


def postmaster_of(directory: Path) -> int:
    pid = postmaster.find(site_of(directory))
    assert pid is not None
    return pid
