"""The console on a real terminal: stray bytes, pastes, a lost terminal."""

import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest

ROOT = Path(__file__).parents[2]
DEADLINE_S = 30.0


class Terminal:
    """A child process on a pty, and the screen that it paints."""

    def __init__(self, result: Path, columns: int = 80, rows: int = 24) -> None:
        self.result = result
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            environ = os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
            os.execve(sys.executable, [sys.executable, "-m", "tests.console.on_pty", str(result)], environ)
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

    def until(self, text: str) -> None:
        """Read until the screen shows a text."""
        end = time.monotonic() + DEADLINE_S
        while text not in "\n".join(self.screen.display):
            assert self.read(), "the console has gone:\n" + self.raw[-2000:].decode(errors="replace")
            assert time.monotonic() < end, "\n".join(self.screen.display)

    def send(self, data: bytes) -> None:
        os.write(self.fd, data)

    def wait(self) -> dict[str, Any]:
        """Read until the child has gone; its report."""
        end = time.monotonic() + DEADLINE_S
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if self.fd >= 0:
                self.read()
            assert time.monotonic() < end, "the console does not end"
        self.pid = 0
        report: dict[str, Any] = json.loads(self.result.read_text())
        return report

    def hang_up(self) -> None:
        """The terminal is gone."""
        os.close(self.fd)
        self.fd = -1


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    child = Terminal(tmp_path / "result.json")
    child.until("RUNNING")
    yield child
    if child.pid:
        os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)
    if child.fd >= 0:
        os.close(child.fd)


def test_a_key_reaches_its_act_and_q_restores_the_terminal(terminal: Terminal) -> None:
    terminal.send(b"p")
    terminal.until("PAUSE …0042 sent")
    terminal.send(b"q")
    assert terminal.wait() == {
        "left": "headless",
        "submitted": ["PauseNumber(number='10654035220042', reason=None)"],
    }
    assert b"\x1b[?1049l" in terminal.raw
    assert b"\x1b[?1000h" not in terminal.raw, "the mouse stays off"


@pytest.mark.parametrize(
    "stray",
    [
        b"\xff", b"\xc3", b"\x80\xfe\xff", b"\x1b[M\xa0\xff\xff", b"\x1b[<99999999999999999999;;M", b"\x1b[", b"\x00",
        b"\x1b[<0;5;5M\x1b[<0;5;5m", bytes(random.Random(7).randrange(128, 256) for _ in range(4096)),
    ],
)  # fmt: skip
def test_stray_bytes_neither_act_nor_end_the_screen(terminal: Terminal, stray: bytes) -> None:
    terminal.send(stray)
    terminal.send(b"\x1b")  # closes what the stray bytes may have begun
    terminal.until("LIVE")
    deadline = time.monotonic() + DEADLINE_S
    while "KEYS" not in "\n".join(terminal.screen.display):  # alive again: ? opens the help
        assert time.monotonic() < deadline
        terminal.send(b"?")
        for _ in range(10):
            assert terminal.read()
    terminal.hang_up()
    assert terminal.wait() == {"left": "headless", "submitted": []}


def test_a_paste_without_brackets_acts_on_nothing(terminal: Terminal) -> None:
    terminal.send(b"ryPall\rspam\rQall\rx\rpuAaqy")
    terminal.until("faster than a hand types")
    terminal.hang_up()
    assert terminal.wait() == {"left": "headless", "submitted": []}


def test_a_lost_terminal_leaves_the_engine_headless(terminal: Terminal) -> None:
    terminal.hang_up()
    assert terminal.wait()["left"] == "headless"
