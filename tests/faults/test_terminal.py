"""`tidegate run` on a real terminal that stalls, and that goes away: the engine beneath does not notice."""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.domain.recipient import State
from tests.support.process import ROOT, TIDEGATE, without_settings
from tests.support.world import NUMBER, World, scenario, world

RATE = 40
PEOPLE = 700
COLUMNS, ROWS = 120, 40


class Terminal:
    """`tidegate run` as the foreground of a pty whose other end is ours."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self.process, self.pid, self._master = process, process.pid, master

    def read(self) -> bytes:
        """What is there now."""
        try:
            return os.read(self._master, 65536)
        except BlockingIOError:
            return b""

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    @property
    def unread(self) -> int:
        """Bytes that were painted and not read."""
        waiting = array.array("i", [0])
        fcntl.ioctl(self._master, termios.FIONREAD, waiting)
        return waiting[0]

    def hang_up(self) -> None:
        if self._master >= 0:
            os.close(self._master)
        self._master = -1


@asynccontextmanager
async def terminal(w: World) -> AsyncIterator[Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    os.set_blocking(master, False)
    process = await asyncio.create_subprocess_exec(
        *TIDEGATE,
        "run",
        cwd=w.directory,
        env=without_settings() | w.environment | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(slave)
    made = Terminal(process, master)
    try:
        yield made
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        made.hang_up()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that the hang-up is told to it


async def test_a_terminal_that_stalls_and_then_goes_away_stops_nothing(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: RATE}) as w, terminal(w) as screen:
        await w.until(lambda: _painted(screen), "the first screen")
        await w.campaign(people=PEOPLE)

        before, unread = await _requests(w), -1
        while unread < (now := screen.unread):  # nobody reads: it grows until the terminal takes no more
            unread = now
            screen.type(b"?")  # something to paint
            await w.until_requests(await _requests(w) + RATE)
        stalled = await _requests(w)
        assert stalled > before
        await w.until_requests(stalled + 2 * RATE)
        assert screen.unread == unread, "the terminal was not full"

        screen.hang_up()
        await w.until_counts(read=PEOPLE)
        assert screen.process.returncode is None, "the process went with its terminal"
        screen.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            assert await screen.process.wait() == 143
        assert await w.counts() == {State.READ: PEOPLE}
        assert len(await w.prove()) == PEOPLE
        log = (w.directory / "data" / "tidegate.log").read_text()
        assert "the screen is gone, the engine goes on" in log


async def _painted(screen: Terminal) -> bool:
    return b"LIVE" in screen.read()


async def _requests(w: World) -> int:
    return int((await w.sim.totals())["requests"])
