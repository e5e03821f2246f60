"""A screen of a given size that reads what a program draws, and keys for it to read."""

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pyte


class Terminal:
    """The far end of a pty. What arrives is counted and dropped, unless somebody watches the picture."""

    def __init__(self, master: int, slave: int, columns: int, rows: int) -> None:
        self.slave = slave
        self.received = 0
        self.last = ""
        """The newest of what arrived, for an error."""
        self._master = master
        self._picture: tuple[pyte.Screen, pyte.ByteStream] | None = None
        self._size = columns, rows
        self._moved = asyncio.Event()

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._master, keys.encode())

    def watch(self) -> None:
        """From now on keep the picture; costs the reader some CPU, so not while something is measured."""
        screen = pyte.Screen(*self._size)
        self._picture = screen, pyte.ByteStream(screen)

    async def until(self, text: str, shown: bool, within_s: float = 5.0) -> None:
        """Wait until the picture shows (or no longer shows) `text`; TimeoutError."""
        assert self._picture is not None
        screen = self._picture[0]
        async with asyncio.timeout(within_s):
            while any(text in line for line in screen.display) != shown:
                self._moved.clear()
                await self._moved.wait()

    def picture(self) -> str:
        """What is on the watched screen."""
        assert self._picture is not None
        return "\n".join(self._picture[0].display)

    def read(self) -> None:
        """Take what the program has drawn."""
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            asyncio.get_running_loop().remove_reader(self._master)
            return
        self.received += len(data)
        self.last = (self.last + data.decode("utf-8", "replace"))[-2000:]
        if self._picture is not None:
            self._picture[1].feed(data)
            self._moved.set()


@contextmanager
def open_terminal(columns: int, rows: int) -> Iterator[Terminal]:
    """A terminal, read by the running loop until the end."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    terminal = Terminal(master, slave, columns, rows)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, terminal.read)
    try:
        yield terminal
    finally:
        loop.remove_reader(master)
        os.close(master)
        os.close(slave)
