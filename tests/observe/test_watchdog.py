"""What hangs without an exception ends the process: the loop at once, a standing task by a drain."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from engine.observe.watchdog import Open, StalledError, WorkWatch, loop_watched, notify, watch_rounds
from tests.support.virtual_loop import run

HANGS = """
import asyncio, time
from engine.observe.watchdog import loop_watched
async def main():
    async with loop_watched(look=0.02, looks=5):
        await asyncio.sleep(0)
        time.sleep(60)
asyncio.run(main())
"""
STANDS_STILL = """
import asyncio
from engine.observe.watchdog import loop_watched
async def main():
    async with loop_watched(look=0.05, looks=3):
        print("turning", flush=True)
        await asyncio.to_thread(input)
asyncio.run(main())
"""
ROOT = Path(__file__).parents[2]


def test_a_loop_that_hangs_ends_the_process_with_1_and_says_where() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGS], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "has not turned" in ended.stderr
    assert "in main" in ended.stderr


def test_a_process_that_was_suspended_is_not_taken_for_dead() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STANDS_STILL],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "turning\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # the fault itself: longer than all looks together
        process.send_signal(signal.SIGCONT)
        process.communicate("\n", timeout=60)
        assert process.returncode == 0


async def test_a_loop_that_turns_is_left_alone() -> None:
    dead = threading.Event()
    async with loop_watched(look=0.01, looks=40, dead=dead.set):
        for _ in range(400):
            await asyncio.sleep(0.002)
    assert not dead.is_set()


def test_a_task_without_rounds_is_named_and_one_that_goes_on_is_not() -> None:
    rounds = {"alive": 0}

    async def work() -> None:
        while True:
            rounds["alive"] += 1
            await asyncio.sleep(1)

    async def scenario() -> None:
        working = asyncio.create_task(work())
        parts = {"the living": lambda: rounds["alive"], "the dead": lambda: 7}
        with pytest.raises(StalledError, match="the dead has made no round for 120 s"):
            await watch_rounds(parts)
        assert asyncio.get_running_loop().time() - 1000.0 == pytest.approx(120, abs=10)
        watching = asyncio.create_task(watch_rounds({"the living": lambda: rounds["alive"]}))
        await asyncio.sleep(1000)
        assert not watching.done()
        watching.cancel()
        working.cancel()

    run(scenario())


def test_open_work_that_does_not_move_is_suspect_and_then_named() -> None:
    async def scenario() -> None:
        watch = WorkWatch(lambda: {"number 1": Open(7, 120.0), "number 2": Open(7, 600.0)})
        watching = asyncio.create_task(watch.run())
        suspects: list[str | None] = []
        for _ in range(2):
            await asyncio.sleep(40)
            suspects.append(watch.suspect)
        what = "number 1: rows are due, nothing holds them, and nothing has moved for"
        assert [suspect and suspect[: len(what)] for suspect in suspects] == [None, what]
        with pytest.raises(StalledError, match=r"number 1: .* nothing has moved for 120 s"):
            await watching
        assert asyncio.get_running_loop().time() - 1000.0 == pytest.approx(120, abs=10)

    run(scenario())


def test_work_that_moves_or_waits_now_and_then_is_left_alone() -> None:
    async def scenario() -> None:
        time = asyncio.get_running_loop().time
        # One moves every 100 s; the other stands still, and every 110 s something holds it for a moment.
        watch = WorkWatch(
            lambda: (
                {"moves": Open(int(time() // 100), 120.0)}
                | ({"stands": Open(7, 120.0)} if time() % 110 > 6 else {})
            )
        )
        watching = asyncio.create_task(watch.run())
        await asyncio.sleep(10_000)
        assert not watching.done()
        watching.cancel()

    run(scenario())


@pytest.mark.parametrize("abstract", [False, True])
async def test_systemd_is_told_that_the_engine_stands_turns_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
) -> None:
    name = f"@tidegate-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.settimeout(60)
        systemd.bind("\0" + name[1:] if abstract else name)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        async with loop_watched(look=0.01):
            assert await asyncio.to_thread(systemd.recv, 100) == b"READY=1"
            assert await asyncio.to_thread(systemd.recv, 100) == b"WATCHDOG=1"
        said = b""
        while said != b"STOPPING=1":
            said = await asyncio.to_thread(systemd.recv, 100)


def test_nobody_to_tell_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify("READY=1")
