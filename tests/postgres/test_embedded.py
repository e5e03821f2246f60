"""The embedded server's lifecycle, with real processes that are really killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from engine.postgres import embedded, placement, postmaster
from engine.postgres.embedded import EmbeddedError
from engine.postgres.pool import connect
from tests.support.database import FAST, apart, reachable_directory
from tests.support.embedded import ROOT, USER, fetch, postmaster_of, server, site_of, user_of


@pytest.fixture(scope="module")
def pristine() -> Iterator[Path]:
    """A directory with an initialised cluster, to copy from: initdb is the slow part."""
    with reachable_directory() as parent:
        with embedded.server(parent / "pg", settings=FAST, sync=False):
            pass
        yield parent / "pg"


@pytest.fixture
def directory(pristine: Path) -> Iterator[Path]:
    with reachable_directory() as parent:
        subprocess.run(["cp", "-a", str(pristine), str(parent / "pg")], check=True)
        yield parent / "pg"


def test_the_url_reaches_a_utf8_database_that_sorts_by_code_point(directory: Path) -> None:
    with server(directory) as url:
        assert fetch(url, "SELECT current_database()") == "tidegate"
        assert fetch(url, "SHOW server_encoding") == "UTF8"
        assert fetch(url, "SELECT 'Z' < 'a' AND upper('é') = 'É'") is True


def test_production_settings_reach_the_server() -> None:
    with reachable_directory() as parent, embedded.server(parent / "pg", sync=False) as url:
        shown = [
            fetch(url, f"SHOW {name}") for name in ("max_wal_size", "checkpoint_timeout", "wal_compression")
        ]
        assert shown == ["4GB", "15min", "pglz"]
        assert fetch(url, "SHOW shared_buffers") == "256MB"
        assert fetch(url, "SHOW max_connections") == "200"
        assert fetch(url, "SHOW listen_addresses") == ""


def test_the_server_stops_with_its_only_user_and_keeps_the_data(directory: Path) -> None:
    with server(directory) as url:
        fetch(url, "CREATE TABLE kept AS SELECT 7 AS n")
        pid = postmaster_of(directory)
    assert postmaster.find(site_of(directory)) is None
    assert not Path(f"/proc/{pid}/exe").exists()
    with server(directory) as url:
        assert fetch(url, "SELECT n FROM kept") == 7


async def test_serving_starts_and_stops_it_beside_a_running_loop(directory: Path) -> None:
    async with embedded.serving(directory, settings=FAST, sync=False) as url, connect(url) as connection:
        assert await connection.fetchval("SELECT 1") == 1
    assert postmaster.find(site_of(directory)) is None


async def test_a_cancelled_start_leaves_nothing_running(directory: Path) -> None:
    async def serve() -> None:
        async with embedded.serving(directory, settings=FAST, sync=False):
            pytest.fail("it was cancelled before it could start")

    task = asyncio.create_task(serve())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert postmaster.find(site_of(directory)) is None


def test_two_users_share_one_server_and_the_last_one_stops_it(directory: Path) -> None:
    with user_of(directory) as second:
        with server(directory):
            pid = postmaster_of(directory)
        assert postmaster_of(directory) == pid  # the first to leave left it running
        assert second.poll() is None
    assert postmaster.find(site_of(directory)) is None


def test_four_users_that_start_at_once_meet_on_one_server() -> None:
    with reachable_directory() as parent:
        command = [sys.executable, "-c", USER, str(parent / "pg")]
        users = [
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        outputs = [user.communicate()[0] for user in users]
        assert len(set(outputs)) == 1
        assert outputs[0].startswith("postgresql://")
        assert [user.returncode for user in users] == [0, 0, 0, 0]
        assert postmaster.find(site_of(parent / "pg")) is None


def test_a_server_left_by_a_killed_user_is_found_used_and_stopped(directory: Path) -> None:
    with user_of(directory) as killed:
        pid = postmaster_of(directory)
        killed.kill()
        killed.wait()
    assert postmaster_of(directory) == pid
    with server(directory) as url:
        assert postmaster_of(directory) == pid
        assert fetch(url, "SELECT 1") == 1
    assert postmaster.find(site_of(directory)) is None


def test_the_last_user_stops_it_also_after_others_were_killed(directory: Path) -> None:
    with server(directory):
        with user_of(directory) as killed:
            killed.kill()
            killed.wait()
        assert postmaster_of(directory)
    assert postmaster.find(site_of(directory)) is None


def test_ctrl_c_for_the_terminals_process_group_spares_the_server(directory: Path) -> None:
    with server(directory):
        pid = postmaster_of(directory)
        assert os.getpgid(pid) != os.getpgid(0)
        assert os.getsid(pid) != os.getsid(0)


def test_a_killed_postmaster_is_recovered_by_the_next_start(directory: Path) -> None:
    with server(directory, synchronous_commit="on") as url:
        fetch(url, "CREATE TABLE kept AS SELECT 7 AS n")
        os.kill(postmaster_of(directory), signal.SIGKILL)
        with server(directory) as again:  # beside a first user that still believes in it
            assert fetch(again, "SELECT n FROM kept") == 7
    assert postmaster.find(site_of(directory)) is None


def test_a_pid_file_that_names_a_live_stranger_is_seen_through(directory: Path) -> None:
    site = site_of(directory)
    with server(directory):
        pid_file = (site.data / "postmaster.pid").read_text()
    stranger = subprocess.Popen(["sleep", "300"], **postmaster._as_account(site))
    try:
        (site.data / "postmaster.pid").write_text("\n".join([str(stranger.pid), *pid_file.split("\n")[1:]]))
        with server(directory) as url:
            assert fetch(url, "SELECT 1") == 1
        assert stranger.poll() is None
        assert postmaster.find(site) is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_half_made_cluster_is_made_again() -> None:
    with reachable_directory() as parent:
        site = site_of(parent / "pg")
        half = site.home / "initdb-0badc0de"
        half.mkdir()
        (half / "PG_VERSION").write_text("18\n")
        with server(parent / "pg") as url:
            assert fetch(url, "SELECT 1") == 1
        assert not half.exists()


def test_a_server_that_cannot_start_says_why_with_the_end_of_its_log(directory: Path) -> None:
    with (
        pytest.raises(EmbeddedError, match=r"did not start; its log ends: .*no_such_setting"),
        server(directory, no_such_setting="1"),
    ):
        pytest.fail("it started")


def test_a_live_postmaster_whose_socket_is_gone_is_replaced(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "SILENT_SECONDS", 0.1)
    with user_of(directory) as killed:
        killed.kill()
        killed.wait()
    deaf = postmaster_of(directory)
    (site_of(directory).sockets / placement.SOCKET_NAME).unlink()
    with server(directory) as url:
        assert fetch(url, "SELECT 1") == 1
        assert postmaster_of(directory) != deaf


def test_a_deaf_server_that_others_use_is_left_alone(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "SILENT_SECONDS", 0.1)
    with user_of(directory):
        pid = postmaster_of(directory)
        (site_of(directory).sockets / placement.SOCKET_NAME).unlink()
        with pytest.raises(EmbeddedError, match="in use but does not answer"), server(directory):
            pytest.fail("it answered")
        assert postmaster_of(directory) == pid


def test_the_servers_log_quotes_no_rows(directory: Path) -> None:
    with server(directory) as url:
        fetch(url, "CREATE TABLE person (phone text PRIMARY KEY)")

        async def insert_twice() -> None:
            async with connect(url) as connection:
                for _ in range(2):
                    await connection.execute("INSERT INTO person VALUES ($1)", "+5511987654321")

        with pytest.raises(asyncpg.UniqueViolationError):
            apart(insert_twice)
    logged = "".join(log.read_text() for log in site_of(directory).log.glob("*.log"))
    assert "duplicate key" in logged
    assert "5511987654321" not in logged


def test_the_server_gets_none_of_our_environment(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_APP_SECRET", "hush")
    monkeypatch.setenv("PGPORT", "1")
    with server(directory):
        environment = Path(f"/proc/{postmaster_of(directory)}/environ").read_bytes()
    assert b"LC_ALL=C" in environment
    assert b"hush" not in environment
