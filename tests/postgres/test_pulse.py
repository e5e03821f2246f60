"""The pulse tells silence from absence, and after a silence the pool starts over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from engine.postgres import pulse
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool, open_pool, start_over
from engine.postgres.pulse import Pulse, Watched
from tests.support.road import Road, road_to_database


@asynccontextmanager
async def over_a_road(database_url: str, size: int = 3) -> AsyncIterator[tuple[Road, Pool]]:
    async with road_to_database(database_url) as (way, url), open_pool(url, size=size) as pool:
        try:
            yield way, pool
        finally:
            way.let_through()
            start_over(pool)


async def waiting(pool: Pool) -> "asyncio.Task[object]":
    """A statement that has been answered by nobody when the road is lost."""
    taken = asyncio.Event()

    async def ask() -> object:
        async with pool.acquire() as connection:
            taken.set()
            return await connection.fetchval("SELECT 1 FROM pg_sleep(0.5)")

    task = asyncio.create_task(ask())
    await taken.wait()
    return task


async def until(reached: Callable[[], bool]) -> None:
    while not reached():
        await asyncio.sleep(0)


async def silent(beat: Pulse) -> None:
    with pytest.raises(TimeoutError):
        await beat.version()


async def test_what_waits_on_a_lost_road_raises_as_soon_as_a_new_connection_is_answered(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with over_a_road(database_url) as (way, pool):
        beat = Pulse(pool)
        version = await beat.version()
        monkeypatch.setattr(pulse, "LOOK", 0.1)
        monkeypatch.setattr(pulse, "CONNECT", 0.5)
        stuck = await waiting(pool)
        way.lose()
        await silent(beat)
        await silent(beat)  # a new connection is not answered either
        assert not stuck.done()
        way.let_through()
        monkeypatch.setattr(pulse, "CONNECT", 30.0)
        assert await beat.version() == version
        with pytest.raises(DATABASE_FAULTS):
            await stuck
        assert await pool.fetchval("SELECT 7") == 7
        beat.close()


async def test_a_receiver_s_statements_are_freed_too(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "LOOK", 0.1)
    monkeypatch.setattr(pulse, "EVERY", 0.01)
    async with over_a_road(database_url) as (way, pool), asyncio.timeout(60):
        watched = Watched(pool)
        stuck = await waiting(pool)
        way.lose()
        watching = asyncio.create_task(watched.run())
        await until(lambda: not watched.answers)
        assert not stuck.done()
        way.let_through()
        with pytest.raises(DATABASE_FAULTS):
            await stuck
        await until(lambda: watched.answers)
        watching.cancel()
        await asyncio.wait({watching})


async def test_a_server_that_refuses_is_no_silence(pool: Pool, database_url: str) -> None:
    async with open_pool(database_url, size=1) as own:
        beat = Pulse(own)
        await beat.version()
        async with own.acquire() as held:
            pid = held.get_server_pid()
        ended = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()"
        )
        await pool.fetchval(ended + " AND pid NOT IN (pg_backend_pid(), $1)", pid)
        with pytest.raises(DATABASE_FAULTS):
            await beat.version()
        assert await beat.version() >= 0
        async with own.acquire() as kept:
            assert kept.get_server_pid() == pid  # nothing was thrown away
        beat.close()


async def test_a_transaction_that_nobody_goes_on_with_gives_its_locks_back(
    pool: Pool, database_url: str
) -> None:
    async with open_pool(database_url, size=1, abandoned_after=0.2) as cut_off, cut_off.acquire() as db:
        await db.execute("BEGIN; UPDATE control SET version = version + 1")
        async with asyncio.timeout(60):
            await pool.execute("UPDATE control SET version = version + 1")
        with pytest.raises(DATABASE_FAULTS):
            await db.execute("COMMIT")
