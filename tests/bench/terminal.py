"""A screen of a given size that reads what a program draws, and keys for it to read."""

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager

KEPT = 100_000
"""Characters of what was drawn last: more than a whole screen."""


class Terminal:
    """The far end of a pty. What arrives is counted; of its text only the newest is kept."""

    def __init__(self, master: int, slave: int) -> None:
        self.slave = slave
        self.received = 0
        self._master = master
        self._newest = ""
        self._moved = asyncio.Event()

    @property
    def last(self) -> str:
        """The newest of what arrived, for an error."""
        return self._newest[-2000:]

    async def press(self, key: str, shows: str, within_s: float = 5.0) -> None:
        """Type, and return when `shows` was drawn since; TimeoutError. No picture is kept, which would cost more
        time than what is measured: so `shows` must be drawn in one piece, and not before."""
        self._newest = ""
        self.type(key)
        await self.until(shows, within_s)

    def type(self, key: str) -> None:
        """Press a key, whatever comes of it."""
        os.write(self._master, key.encode())

    async def until(self, shows: str, within_s: float) -> None:
        """Return when `shows` was drawn; TimeoutError."""
        async with asyncio.timeout(within_s):
            while shows not in self._newest:
                self._moved.clear()
                await self._moved.wait()

    def stall(self) -> None:
        """Read no more, as a connection that hangs: soon the program cannot draw."""
        asyncio.get_running_loop().remove_reader(self._master)

    def hang_up(self) -> None:
        """The terminal is gone."""
        if self._master >= 0:
            self.stall()
            os.close(self._master)
            self._master = -1

    def read(self) -> None:
        """Take what the program has drawn."""
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            asyncio.get_running_loop().remove_reader(self._master)
            return
        self.received += len(data)
        self._newest = (self._newest + data.decode("utf-8", "replace"))[-KEPT:]
        self._moved.set()


@contextmanager
def open_terminal(columns: int, rows: int) -> Iterator[Terminal]:
    """A terminal, read by the running loop until the end."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    terminal = Terminal(master, slave)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, terminal.read)
    try:
        yield terminal
    finally:
        terminal.hang_up()
        os.close(slave)
