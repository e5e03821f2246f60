"""`tidegate run` on a real terminal that stalls, and that goes away: the engine beneath does not notice."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from datetime import UTC, datetime, timedelta

import psutil  # type: ignore[import-untyped]
import pytest

from engine.domain.recipient import State
from tests.support.screen import Screen, screen
from tests.support.world import NUMBER, World, scenario, world

RATE = 40
PEOPLE = 700

QUICK, STALLED_S = 300, 60.0
LONGEST_GAP_S = 1.0
GROWS_BY_LESS_THAN_MB = 8.0
A_FEW_FRAMES = 100_000
"""Bytes: what had been painted before the console noticed, and one picture of now. A minute's worth is more."""


async def test_a_terminal_that_stalls_and_then_goes_away_stops_nothing(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: RATE}) as w, screen(w, "run") as shown:
        await shown.until("LIVE")
        await w.campaign(people=PEOPLE)

        shown.look_away()
        await _until_full(w, shown)

        shown.hang_up()
        await w.until_counts(read=PEOPLE)
        assert shown.process.returncode is None, "the process went with its terminal"
        shown.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            code = await shown.process.wait()
        log = (w.directory / "data" / "tidegate.log").read_text()
        assert code == 143, log[-3000:]
        assert await w.counts() == {State.READ: PEOPLE}
        assert len(await w.prove()) == PEOPLE
        assert "the screen is gone, the engine goes on" in log


@pytest.mark.soak
async def test_a_minute_without_a_reader_costs_no_send_and_no_memory_and_ends_in_one_picture_of_now(
    database_url: str,
) -> None:
    people = round(QUICK * (STALLED_S + 60))
    async with world(database_url, scenario(), {NUMBER: QUICK}) as w, screen(w, "run") as shown:
        await shown.until("LIVE")
        await w.campaign(people=people)
        await w.until_requests(5 * QUICK)
        shown.look_away()
        await _until_full(w, shown)
        began, process = time.monotonic(), psutil.Process(shown.pid)
        at_first, used = process.memory_info().rss, process.cpu_times()
        await asyncio.sleep(STALLED_S)  # the fault itself
        grown, stalled_s = process.memory_info().rss - at_first, time.monotonic() - began
        cores = (sum(process.cpu_times()[:2]) - sum(used[:2])) / stalled_s
        painted = shown.painted
        shown.look()
        await shown.until(_from_now_on())
        newest = shown.painted - painted
        gap = await _longest_gap_s(w, began, began + stalled_s)
        print(
            f"stalled {stalled_s:.0f} s: longest gap {1000 * gap:.0f} ms, {grown / 1e6:+.1f} MB, "
            f"{cores:.0%} of a core, {newest:,} bytes until the picture was of now"
        )
        assert gap < LONGEST_GAP_S
        assert grown / 1e6 < GROWS_BY_LESS_THAN_MB
        assert newest < A_FEW_FRAMES


async def _until_full(w: World, shown: Screen) -> None:
    """Nobody reads: what is unread grows until the terminal takes no more, while the sending goes on."""
    unread = -1
    while unread < (now := shown.unread):
        unread = now
        shown.type(b"?")  # something to paint
        await w.until_requests(await _requests(w) + 2 * RATE)


async def _longest_gap_s(w: World, since: float, until: float) -> float:
    """Between two requests that reached the provider in this time of its own clock, which is this machine's."""
    at: list[float] = [entry["at_us"] / 1e6 for entry in await w.sim.ledger()]
    inside = [t for t in at if since <= t <= until]
    assert len(inside) > 10 * QUICK
    gaps: list[float] = [later - earlier for earlier, later in itertools.pairwise(inside)]
    return max(gaps)


def _from_now_on() -> str:
    """A pattern: the clock of the header, at any second of the minute that begins now."""
    begins = datetime.now(UTC)
    return "|".join(f"{begins + timedelta(seconds=n):%H:%M:%S}Z" for n in range(60))


async def _requests(w: World) -> int:
    return await w.requests()
