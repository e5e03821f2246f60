"""The database goes away in the middle: sending stops, resumes by itself, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from engine.domain.recipient import State
from engine.postgres.migrate import migrate
from tests.support.database import reachable_directory
from tests.support.embedded import postmaster_of, server
from tests.support.process import Process
from tests.support.world import NUMBER, World, scenario, world

RATE = 40
PEOPLE = 200
TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class Server:
    """A Postgres of the test's own, that can be killed and started again."""

    def __init__(self, directory: Path, held: ExitStack) -> None:
        self._directory, self._held = directory, held
        self.url = ""
        self._frozen: list[int] = []

    async def start(self) -> None:
        """What is committed is on disk as far as a killed server is concerned."""
        running = server(self._directory, synchronous_commit="on")
        self.url = await asyncio.to_thread(self._held.enter_context, running)

    def kill(self) -> None:
        os.kill(postmaster_of(self._directory), signal.SIGKILL)

    def freeze(self) -> None:
        """Connections stay, answers do not come."""
        postmaster = postmaster_of(self._directory)
        self._frozen = [postmaster, *_children(postmaster)]
        for pid in self._frozen:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._frozen:
            os.kill(pid, signal.SIGCONT)
        self._frozen = []


@asynccontextmanager
async def own_server() -> AsyncIterator[Server]:
    with reachable_directory() as directory, ExitStack() as held:
        made = Server(directory / "pg", held)
        await made.start()
        await migrate(made.url)
        try:
            yield made
        finally:
            made.thaw()
        await asyncio.to_thread(held.close)


async def test_a_killed_database_is_waited_out_and_what_was_in_hand_is_written() -> None:
    async with own_server() as database, world(database.url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=PEOPLE)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="60s")
        for part in (1, 2):
            await w.until_requests(part * 50)
            database.kill()
            await _until_logged(w, engine, "leases wait for the database", part)
            await database.start()
        ended = await engine.ended()
        assert ended.code == 0, ended.err
        assert await w.ends() == {State.READ: PEOPLE}
        assert len(await w.prove()) == PEOPLE


async def test_an_outage_longer_than_the_lease_costs_the_lease_and_no_row() -> None:
    async with own_server() as database, world(database.url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=PEOPLE)
        engine = await w.engine(lease="5s")
        await w.until_requests(50)
        database.kill()
        await _until_logged(w, engine, "lease lost", 1)
        before = await w.requests()
        await database.start()
        await _until_all_told(w)
        ledger = await w.prove(exact_tries=False)
        assert len(ledger) > before
        assert engine.running


async def test_connections_that_are_ended_again_and_again_cost_nothing(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=PEOPLE)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="30s")
        for part in range(1, 13):
            await w.until_requests(part * 12)
            assert await w.db.fetchval(TERMINATE) > 0
        ended = await engine.ended()
        assert ended.code == 0, ended.err
        assert await w.ends() == {State.READ: PEOPLE}
        assert len(await w.prove()) == PEOPLE


async def test_a_database_that_takes_no_writes_stops_sending_until_it_does() -> None:
    async with own_server() as database, world(database.url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=PEOPLE)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="60s")
        await w.until_requests(50)
        await _set_read_only(w, "on")
        await _until_logged(w, engine, "leases wait for the database", 2)
        before = await w.requests()
        await _until_logged(w, engine, "leases wait for the database", 5)
        assert await w.requests() == before < PEOPLE
        await _set_read_only(w, "off")
        ended = await engine.ended()
        assert ended.code == 0, ended.err
        assert await w.ends() == {State.READ: PEOPLE}
        assert len(await w.prove()) == PEOPLE


async def test_a_drain_without_a_database_ends_and_the_next_engine_finds_everything() -> None:
    async with own_server() as database, world(database.url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=PEOPLE)
        engine = await w.engine("--grace", "2s", lease="5s")
        await w.until_requests(50)
        database.kill()
        engine.signal(signal.SIGTERM)
        assert (await engine.ended()).code == 143
        await database.start()
        await w.engine(lease="5s")
        await _until_all_told(w)
        await w.prove(exact_tries=False)


async def test_a_database_that_hangs_is_waited_out() -> None:
    async with own_server() as database, world(database.url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=PEOPLE)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="5s")
        await w.until_requests(50)
        database.freeze()
        seen = len(engine.events("summary"))
        await _until_true(w, lambda: len(engine.events("summary")) > seen + 1, "some seconds passed")
        before = await w.requests()
        await _until_true(w, lambda: len(engine.events("summary")) > seen + 2, "some more seconds passed")
        assert await w.requests() == before < PEOPLE
        database.thaw()
        await _until_all_told(w)
        await w.prove(exact_tries=False)


async def test_a_drain_ends_while_the_database_hangs() -> None:
    async with own_server() as database, world(database.url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=PEOPLE)
        engine = await w.engine("--grace", "2s", lease="5s")
        await w.until_requests(50)
        database.freeze()
        engine.signal(signal.SIGTERM)
        ended = await engine.ended(120)
        assert ended.code == 143
        database.thaw()
        await w.engine(lease="5s")
        await _until_all_told(w)
        await w.prove(exact_tries=False)


async def _until_logged(w: World, engine: Process, event: str, times: int) -> None:
    await _until_true(w, lambda: len(engine.events(event)) >= times, f"{event!r} logged {times} times")


async def _until_true(w: World, reached: Callable[[], bool], what: str) -> None:
    async def asked() -> bool:
        return reached()

    await w.until(asked, what)


async def _until_all_told(w: World) -> None:
    """Every row is read, or is unknown because its request never arrived: marked, and then the lease was gone."""

    async def told() -> bool:
        counts = await w.counts()
        return counts[State.READ] + counts[State.UNKNOWN] == PEOPLE and counts[State.READ] == (
            await w.requests()
        )

    await w.until(told, "every row read or without a request")


async def _set_read_only(w: World, value: str) -> None:
    async with w.db.acquire() as connection:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.execute("RESET default_transaction_read_only")


def _children(pid: int) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = place.read_text().rpartition(")")[2].split()[1]
        except OSError:  # ended meanwhile
            continue
        if int(parent) == pid:
            found.append(int(place.parent.name))
    return found
