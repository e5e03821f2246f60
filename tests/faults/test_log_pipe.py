"""Whoever reads the log stalls, or is gone: sending goes on, and the end is what it would have been."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.domain.recipient import State
from tests.support.world import NUMBER, scenario, world

SMALL = 4096  # bytes, the least that a pipe can hold


@contextmanager
def stalled() -> Iterator[int]:
    """A pipe that is full, and that nobody reads."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, SMALL)
    os.set_blocking(writer, False)
    try:
        with contextlib.suppress(BlockingIOError):
            while os.write(writer, b"x"):
                pass
        os.set_blocking(writer, True)
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


@contextmanager
def closed() -> Iterator[int]:
    """A pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@pytest.mark.parametrize("pipe", [stalled, closed])
async def test_a_log_that_nobody_reads_stops_nothing(database_url: str, pipe: object) -> None:
    assert callable(pipe)
    with pipe() as stderr:
        async with world(database_url, scenario(), {NUMBER: 40}) as w:
            await w.campaign(people=100)
            ended = await (await w.engine("--until-finished", "--linger", "1s", stderr=stderr)).ended()
            assert ended.code == 0, ended.out
            assert "the books balance" in ended.out
            assert await w.ends() == {State.READ: 100}
            await w.prove()


async def test_a_drain_does_not_wait_for_whoever_reads_the_log(database_url: str) -> None:
    with stalled() as stderr:
        async with world(database_url, scenario(), {NUMBER: 40}) as w:
            await w.campaign(people=200)
            engine = await w.engine(stderr=stderr)
            await w.until_requests(50)
            engine.signal(signal.SIGTERM)
            ended = await engine.ended()
            assert ended.code == 143, ended.out
            counts = await w.counts()
            assert counts[State.CLAIMED] + counts[State.SENDING] == 0
            await w.prove()
