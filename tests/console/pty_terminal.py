"""A child process on a pseudo terminal, and the screen that it paints."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0
BETWEEN_KEYS_S = 0.15


class Terminal:
    """A child process on a pty, and the screen that it paints."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str] | None = None,
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            screen = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
            os.execve(sys.executable, [sys.executable, *command], os.environ | screen | dict(environ or {}))
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """The window changes its size; the child is told by SIGWINCH."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> bool:
        """Take what is there; False when the child has gone."""
        if select.select([self.fd], [], [], 0.05)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            self.raw += data
            self.stream.feed(
                re.sub(rb"\x1b\[[<>=?][\d;]*[a-zA-Z$]+", b"", data)
            )  # private modes, which pyte prints
            return bool(data)
        return True

    def until(self, text: str, *, gone: bool = False) -> None:
        """Read until the screen shows a text, or no longer shows it."""
        end = time.monotonic() + DEADLINE_S
        while (text in "\n".join(self.screen.display)) is gone:
            assert self.read(), "the console has gone:\n" + self.raw[-2000:].decode(errors="replace")
            assert time.monotonic() < end, "\n".join(self.screen.display)

    def rest(self) -> None:
        """Read until nothing is painted for a moment: as long as a hand takes from one key to the next, and longer
        than the console's guard against keys that come faster than that."""
        while select.select([self.fd], [], [], BETWEEN_KEYS_S)[0] and self.read():
            pass

    def send(self, data: bytes) -> None:
        os.write(self.fd, data)

    @property
    def alive(self) -> bool:
        """Whether the child has not ended yet."""
        return self.pid != 0 and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait(self) -> int:
        """Read until the child has gone; its exit code, negative for a signal."""
        end = time.monotonic() + DEADLINE_S
        while (found := os.waitpid(self.pid, os.WNOHANG)) == (0, 0):
            if self.fd >= 0:
                self.read()
            else:
                time.sleep(0.01)
            assert time.monotonic() < end, "the console does not end:\n" + "\n".join(self.screen.display)
        self.pid = 0
        return os.waitstatus_to_exitcode(found[1])

    def close(self) -> None:
        """End what is left."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.fd >= 0:
            os.close(self.fd)

    def hang_up(self) -> None:
        """The terminal is gone."""
        os.close(self.fd)
        self.fd = -1
