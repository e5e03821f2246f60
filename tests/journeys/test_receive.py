"""`tidegate receive` as a process: workers on one port, drained by a signal, missed when one dies."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest

from engine.delivery.applier import Applier
from engine.domain.recipient import State
from engine.domain.signature import sign
from engine.postgres.pool import Pool
from tests.support.bodies import status, webhook
from tests.support.process import Process, put_down, spawn
from tests.support.truth import Campaign, campaign

SECRET = "receiver-secret"
BETWEEN_LOOKS_S = 0.05


@asynccontextmanager
async def receivers(url: str, directory: Path, *more: str) -> AsyncIterator[tuple[Process, str]]:
    """The command once its workers are ready, and its address."""
    environment = {
        "TIDEGATE_DATABASE_URL": url,
        "TIDEGATE_APP_SECRET": SECRET,
        "TIDEGATE_DATA_DIR": str(directory / "data"),
    }
    line = ["receive", "--listen", "127.0.0.1:0", *more]
    process = await spawn(line, environment, directory, name="receive")
    try:
        async with asyncio.timeout(60):
            while not (ready := process.events("receiving webhooks")):
                assert process.running, process.err
                await asyncio.sleep(BETWEEN_LOOKS_S)  # another process's log: nothing tells of it
        yield process, str(ready[0]["url"])
    finally:
        await put_down(process)


async def post(client: httpx.AsyncClient, url: str, body: bytes) -> int:
    signature = sign(SECRET.encode(), body)
    return (await client.post(url, content=body, headers={"X-Hub-Signature-256": signature})).status_code


def workers_of(process: Process) -> list[psutil.Process]:
    children: list[psutil.Process] = psutil.Process(process.pid).children()
    return children


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    return await campaign(pool, "sale")


async def test_workers_share_the_port_and_what_they_took_is_applied_elsewhere(
    pool: Pool, database_url: str, sale: Campaign, tmp_path: Path
) -> None:
    rows = await sale.rows(100, State.SENT)
    async with receivers(database_url, tmp_path, "--workers", "2") as (process, url):
        workers = workers_of(process)
        assert len(workers) == 2
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(limits=limits, timeout=60) as client:
            bodies = [webhook(status("read", sale.token(row))) for row in rows]
            assert set(await asyncio.gather(*(post(client, url, body) for body in bodies))) == {200}
            assert (await client.post(url, content=b"{}")).status_code == 401
            health = url.replace("/webhook", "/readyz")
            assert (await client.get(health)).status_code == 200
        assert await pool.fetchval("SELECT count(*) FROM inbox_work") == 100  # nobody applies here
        process.signal(signal.SIGTERM)
        ended = await process.ended()
    assert ended.code == 128 + signal.SIGTERM
    assert not any(worker.is_running() for worker in workers)
    applier = Applier(pool)
    while await applier.apply_batch():
        pass
    assert await sale.recount() == await sale.books() == {State.READ: 100}


async def test_with_apply_a_receiver_applies_too(
    pool: Pool, database_url: str, sale: Campaign, tmp_path: Path
) -> None:
    row = await sale.row(State.SENT)
    async with (
        receivers(database_url, tmp_path, "--workers", "1", "--apply") as (_, url),
        httpx.AsyncClient(timeout=60) as client,
        asyncio.timeout(60),
    ):
        assert await post(client, url, webhook(status("read", sale.token(row)))) == 200
        while await sale.state(row) is not State.READ:
            await asyncio.sleep(BETWEEN_LOOKS_S)  # applied by another process


async def test_a_dead_worker_ends_the_others_and_the_command_with_1(
    database_url: str, tmp_path: Path
) -> None:
    async with receivers(database_url, tmp_path) as (process, _):
        one, other = workers_of(process)
        os.kill(one.pid, signal.SIGKILL)
        ended = await process.ended()
        assert not other.is_running()
    assert ended.code == 1
    assert process.events("a receiver died; the others finish")


async def test_no_worker_outlives_its_watcher(database_url: str, tmp_path: Path) -> None:
    async with receivers(database_url, tmp_path) as (process, _):
        workers = workers_of(process)
        process.kill()
        gone, alive = await asyncio.to_thread(psutil.wait_procs, workers, 60)
    assert (len(gone), alive) == (2, [])


async def test_secrets_stand_in_no_process_list_and_no_log(database_url: str, tmp_path: Path) -> None:
    async with receivers(database_url, tmp_path) as (process, _):
        lines = [" ".join(worker.cmdline()) for worker in workers_of(process)]
    assert all(SECRET not in line for line in lines)
    assert SECRET not in process.err


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "TIDEGATE_APP_SECRET is not set"),
        ({"TIDEGATE_APP_SECRET": "x", "TIDEGATE_DATABASE_URL": "postgresql://no@127.0.0.1:1/no"}, "database"),
    ],
)
async def test_what_is_missing_is_one_sentence_and_2(
    tmp_path: Path, settings: dict[str, str], sentence: str
) -> None:
    process = await spawn(
        ["receive"], settings | {"TIDEGATE_DATA_DIR": str(tmp_path)}, tmp_path, name="receive"
    )
    ended = await process.ended()
    assert ended.code == 2
    assert sentence in ended.err
    assert ended.err.count("\n") == 1
