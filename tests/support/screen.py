"""A `tidegate` with its screen on a pty whose other end is a test's: keys for it, and what a terminal would show.

async with screen(w, "run") as shown:
    await shown.until("LIVE")
    await shown.press("p")
    await shown.until(r"PAUSE .* ack \\d+ms")
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pyte

from tests.support.process import ROOT, TIDEGATE, without_settings
from tests.support.world import WITHIN_S, World

COLUMNS, ROWS = 120, 40
BETWEEN_KEYS_S = 0.15
"""As long as a hand takes from one key to the next, and longer than the console's guard against what is faster."""

_PRIVATE_MODES = re.compile(rb"\x1b\[[<>=?][\d;]*[a-zA-Z$]+")  # pyte prints them


class Screen:
    """The far end of the pty. It is read as it is painted, until `look_away`."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self.process, self.pid = process, process.pid
        self.painted = 0
        """Bytes so far."""

        self._master = master
        self._glass = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._glass)
        self._moved = asyncio.Event()
        self.look()

    @property
    def text(self) -> str:
        """What stands on it, line by line."""
        return "\n".join(self._glass.display)

    async def until(self, pattern: str, *, gone: bool = False) -> re.Match[str] | None:
        """The first time that a regular expression is found on the screen (or no longer)."""
        try:
            async with asyncio.timeout(WITHIN_S):
                while ((found := re.search(pattern, self.text)) is None) is not gone:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise TimeoutError(f"the screen never showed {pattern!r}:\n{self.text}") from None
        return found

    async def press(self, *keys: str) -> None:
        """One key after the other, as a hand does: each when the screen has come to rest."""
        for key in keys:
            await self.rest()
            self.type(key.encode())

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def look(self) -> None:
        """Read from now on."""
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def look_away(self) -> None:
        """As a terminal that stalls: nothing is read any more."""
        asyncio.get_running_loop().remove_reader(self._master)

    @property
    def unread(self) -> int:
        """Bytes that were painted and not read."""
        waiting = array.array("i", [0])
        fcntl.ioctl(self._master, termios.FIONREAD, waiting)
        return waiting[0]

    def hang_up(self) -> None:
        """The terminal is gone."""
        if self._master >= 0:
            self.look_away()
            os.close(self._master)
        self._master = -1

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # nobody paints any more
            self.look_away()
            return
        self.painted += len(data)
        self._stream.feed(_PRIVATE_MODES.sub(b"", data))
        self._moved.set()

    async def rest(self) -> None:
        """Wait until nothing is painted for a moment."""
        while True:
            self._moved.clear()
            try:
                async with asyncio.timeout(BETWEEN_KEYS_S):
                    await self._moved.wait()
            except TimeoutError:
                return


@asynccontextmanager
async def screen(w: World, *words: str, **settings: str) -> AsyncIterator[Screen]:
    """`tidegate` with these words as the foreground of a terminal of 120x40, killed at the end if it still runs.
    `settings`: lease="5s" stands for TIDEGATE_LEASE=5s."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    ours = {f"TIDEGATE_{name.upper()}": value for name, value in settings.items()}
    size = {
        "COLUMNS": str(COLUMNS),
        "LINES": str(ROWS),
    }  # for who asks the environment first: it may tell another's
    terminal = {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"} | size
    process = await asyncio.create_subprocess_exec(
        *TIDEGATE,
        *words,
        cwd=w.directory,
        env=without_settings() | w.environment | terminal | ours,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(slave)
    made = Screen(process, master)
    try:
        yield made
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        made.hang_up()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that a hang-up is told to it
