"""An engine in a thread of the test's own process, as under a screen, and the seam that a screen uses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic import SecretStr

from console.host import EngineHost
from engine.config import Address, Config, RunOptions
from engine.domain.act import Act
from engine.domain.snapshot import ActView, Snapshot
from tests.support.world import BETWEEN_LOOKS_S, NUMBER, WITHIN_S, World, free_port

T = TypeVar("T")


@asynccontextmanager
async def engine_inside(
    w: World, monkeypatch: pytest.MonkeyPatch, *, lease: float = 10.0
) -> AsyncIterator[EngineHost]:
    """Started, and drained at the end."""
    monkeypatch.setenv("TOKEN", w.environment["TOKEN"])
    config = Config(
        database_url=SecretStr(w.url),
        api_url=w.sim.url,
        data_dir=Path(w.environment["TIDEGATE_DATA_DIR"]),
        listen=Address("127.0.0.1", w.port),
        metrics_listen=Address("127.0.0.1", free_port()),
        app_secret=(SecretStr(w.environment["TIDEGATE_APP_SECRET"]),),
        node="inside",
        lease=lease,
        grace=2.0,
    )
    host = EngineHost(config, RunOptions())
    await asyncio.to_thread(host.start)
    try:
        yield host
    finally:
        host.drain("the test ends")
        assert (await asyncio.to_thread(host.join)).code == 0


async def carried_out(host: EngineHost, act: Act) -> float:
    """Submit an act and wait until it is in effect; when that was seen, on the monotonic clock."""
    act_id = host.submit(act)
    await until_snapshot(host, lambda snapshot: acted(snapshot, act_id, "in effect"))
    return time.monotonic()


def acted(snapshot: Snapshot, act_id: str, stage: str) -> ActView | None:
    """The act, once it has come to this stage."""
    return next((act for act in snapshot.acts if act.id == act_id and act.stage == stage), None)


def owned(snapshot: Snapshot, number: str = NUMBER) -> bool:
    """Whether this node owns the number."""
    return any(
        view.id == number and view.owner == snapshot.node and not view.away for view in snapshot.numbers
    )


async def snapshots(host: EngineHost, more: int) -> None:
    """Wait until the engine has published so many more: two a second."""
    now = host.snapshot()
    assert now is not None
    wanted = now.seq + more
    await until_snapshot(host, lambda snapshot: snapshot if snapshot.seq >= wanted else None)


async def until_snapshot(host: EngineHost, seen: Callable[[Snapshot], T | None]) -> T:
    """Wait for a snapshot in which `seen` finds something."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            snapshot = host.snapshot()
            found = seen(snapshot) if snapshot is not None else None
            if found is not None:
                return found
            await asyncio.sleep(BETWEEN_LOOKS_S)
