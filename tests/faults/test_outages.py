"""Networks that swallow, disks that are full, answers that take for ever."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from engine.control import audit
from engine.domain.recipient import State
from tests.support.chaos import judge
from tests.support.road import road, road_to_database
from tests.support.world import NUMBER, World, scenario, try_of, world

RATE = 40


async def test_a_database_that_swallows_everything_costs_the_lease_and_no_row(database_url: str) -> None:
    async with (
        road_to_database(database_url) as (way, over_it),
        world(database_url, scenario(), {NUMBER: RATE}) as w,
    ):
        await w.campaign(people=200)
        engine = await w.engine(lease="5s", database_url=over_it)
        await w.until_requests(50)
        way.swallow()

        async def lost() -> bool:
            return bool(engine.events("lease lost"))

        await w.until(lost, "the lease given up")
        before = await w.requests()
        way.let_through()
        await _until_told(w, 200)
        assert await w.requests() > before
        await judge(w, 200)
        assert engine.running


async def test_a_provider_that_swallows_everything_is_asked_for_no_row_twice(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: RATE}) as w, road("127.0.0.1", _port_of(w)) as way:
        await w.campaign(people=300)
        engine = await w.engine(
            lease="5s", request_deadline="4s", api_url=f"http://127.0.0.1:{way.port}/v25.0"
        )
        await w.until_requests(50)
        way.swallow()

        async def in_doubt() -> bool:
            return (await w.counts())[State.UNKNOWN] > 0

        await w.until(in_doubt, "requests without an answer")
        counts = await w.counts()
        assert counts[State.PENDING] > 0  # open requests are bounded, so not everybody was asked for
        way.let_through()
        await _until_told(w, 300)
        # What was held on the way arrives all at once, so the provider's windows tell nothing; our stamps do.
        found = await audit.run(w.db)
        assert found.holds, [check for check in found.checks if not check.holds]
        asked = Counter(try_of(entry) for entry in await w.sim.ledger())
        assert set(asked.values()) == {1}
        assert engine.running


async def test_answers_that_take_thirty_seconds_are_unknown_until_their_statuses_come(
    database_url: str,
) -> None:
    provider = scenario({"do": "slow", "extra_ms": 30_000, "match": {"first": 10}})
    async with world(database_url, provider, {NUMBER: RATE}) as w:
        await w.campaign(people=100)
        await w.engine(request_deadline="3s")
        await w.until_counts(read=100)
        await judge(w, 100)


@contextmanager
def full_disk(directory: Path) -> Iterator[Path]:
    """A file system without a free byte, where one can be mounted."""
    place = directory / "full"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("no file system can be mounted here, so none can be full")
    try:
        with contextlib.suppress(OSError), (place / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


async def test_a_full_disk_under_log_and_data_directory_stops_nothing(
    database_url: str, tmp_path: Path
) -> None:
    with full_disk(tmp_path) as disk:
        log = os.open(disk / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            async with world(database_url, scenario(), {NUMBER: RATE}) as w:
                await w.campaign(people=100)
                engine = await w.engine(
                    "--until-finished", "--linger", "1s", stderr=log, data_dir=str(disk / "data")
                )
                ended = await engine.ended()
                assert ended.code == 0, ended.out
                assert await w.ends() == {State.READ: 100}
                await judge(w, 100)
        finally:
            os.close(log)


def _port_of(w: World) -> int:
    port = urlsplit(w.sim.base).port
    assert port is not None
    return port


async def _until_told(w: World, people: int) -> None:
    """Every row is read, or is unknown because its request never arrived."""

    async def told() -> bool:
        counts = await w.counts()
        read = counts[State.READ]
        return read + counts[State.UNKNOWN] == people and read == (await w.sim.totals())["accepted"]

    await w.until(told, "every row read, or without a request", within_s=90.0)
