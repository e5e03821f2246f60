"""The tests' own server, which must go away whatever happens to the tests."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from engine.postgres.pool import connect
from tests.support.database import TestServer, apart

ROOT = Path(__file__).parents[2]
LOST = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.AdminShutdownError)

SESSION = """
import sys
from tests.support.database import session_server

with session_server() as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def test_a_killed_session_leaves_neither_a_server_nor_a_directory() -> None:
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with session:
        assert session.stdout is not None
        assert session.stderr is not None
        url = session.stdout.readline().strip()
        sockets = Path(parse_qs(urlsplit(url).query)["host"][0])
        assert sockets.exists()
        session.kill()
        assert session.stderr.read() == ""  # its end is the end of the keeper, which holds it too
    assert not sockets.parents[2].exists()


def test_each_test_gets_a_database_of_its_own(postgres: TestServer) -> None:
    async def make_table(url: str) -> None:
        async with connect(url) as connection:
            await connection.execute("CREATE TABLE mine (n int)")

    with postgres.database() as first, postgres.database() as second:
        assert first != second
        apart(lambda: make_table(first))
        apart(lambda: make_table(second))


async def test_a_database_is_dropped_though_a_connection_is_open(postgres: TestServer) -> None:
    with postgres.database() as url:
        held = await asyncpg.connect(url)
    with pytest.raises(LOST):
        await held.fetchval("SELECT 1")
    held.terminate()
