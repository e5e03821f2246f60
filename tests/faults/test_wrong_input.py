"""What a person got wrong is said in one sentence, with exit code 2, before anything is sent."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from engine.postgres.pool import connect
from tests.support.process import Ended, put_down, spawn
from tests.support.world import free_port

NEWER = "INSERT INTO schema_migration (version, name, checksum) VALUES (9999, 'tomorrow', 'x')"


async def _run(directory: Path, *flags: str, **settings: str) -> Ended:
    """`tidegate run` with settings that would work, and these on top; an empty one is taken away."""
    whole = {
        "LISTEN": f"127.0.0.1:{free_port()}",
        "METRICS_LISTEN": f"127.0.0.1:{free_port()}",
        "DATA_DIR": str(directory / "data"),
        "APP_SECRET": "secret",
        "API_URL": f"http://127.0.0.1:{free_port()}/v25.0",
    } | settings
    environment = {f"TIDEGATE_{name}": value for name, value in whole.items() if value}
    process = await spawn(("run", "--no-ui", *flags), environment, directory, name="run")
    try:
        return await process.ended()
    finally:
        await put_down(process)


def _is_one_sentence(ended: Ended, *words: str) -> None:
    assert ended.code == 2, ended
    assert ended.out == ""
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("tidegate: ")
    assert lines[0].endswith(".")
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize("name", ["LISTEN", "METRICS_LISTEN"])
async def test_an_address_that_is_taken(database_url: str, tmp_path: Path, name: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = await _run(tmp_path, DATABASE_URL=database_url, **{name: address})
    _is_one_sentence(ended, address, f"TIDEGATE_{name}")


async def test_no_app_secret(database_url: str, tmp_path: Path) -> None:
    ended = await _run(tmp_path, DATABASE_URL=database_url, APP_SECRET="")
    _is_one_sentence(ended, "TIDEGATE_APP_SECRET", "--no-webhook")


async def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    port = free_port()
    ended = await _run(tmp_path, DATABASE_URL=f"postgresql://tidegate:hidden@127.0.0.1:{port}/tidegate")
    _is_one_sentence(ended, f"127.0.0.1:{port}")
    assert "hidden" not in ended.err


async def test_a_database_that_a_newer_tidegate_has_migrated(database_url: str, tmp_path: Path) -> None:
    async with connect(database_url) as db:
        await db.execute(NEWER)
    ended = await _run(tmp_path, DATABASE_URL=database_url)
    _is_one_sentence(ended, "newer", "9999")


async def test_a_flag_that_is_no_length_of_time(database_url: str, tmp_path: Path) -> None:
    ended = await _run(tmp_path, "--grace", "soon", DATABASE_URL=database_url)
    _is_one_sentence(ended, "--grace")


@pytest.mark.parametrize("deadline", ["1s", "2s"])
async def test_a_request_deadline_no_longer_than_connecting_may_take(
    database_url: str, tmp_path: Path, deadline: str
) -> None:
    ended = await _run(tmp_path, DATABASE_URL=database_url, REQUEST_DEADLINE=deadline)
    _is_one_sentence(ended, "TIDEGATE_REQUEST_DEADLINE")
