"""On every way out the terminal is as it was: lines and echo, cursor, the first screen, no mouse, no paste mode."""

import json
import os
import signal
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.console.pty_terminal import Terminal

Open = Callable[..., Terminal]
MODES = (b"1049", b"2004", b"1000", b"1003", b"1006", b"1004")
ON_AND_OFF = ((b"\x1b[?25l", b"\x1b[?25h"), (b"\x1b[?7l", b"\x1b[?7h"), *(
    (b"\x1b[?%bh" % mode, b"\x1b[?%bl" % mode) for mode in MODES
))  # fmt: skip


@pytest.fixture
def opened() -> Iterator[Open]:
    """A child on a terminal."""
    children: list[Terminal] = []

    def start(*command: str | Path) -> Terminal:
        children.append(Terminal(["-m", *map(str, command)]))
        return children[-1]

    yield start
    for child in children:
        child.close()


def not_given_back(terminal: Terminal) -> Sequence[bytes]:
    """What a child that has ended left turned on."""
    while terminal.read():  # up to the last byte
        pass
    modes = termios.tcgetattr(terminal.fd)[3]
    left = [on for on, off in ON_AND_OFF if terminal.raw.rfind(on) > terminal.raw.rfind(off)]
    return left + [b"raw"] * (not modes & termios.ICANON) + [b"silent"] * (not modes & termios.ECHO)


def test_after_q(opened: Open, tmp_path: Path) -> None:
    terminal = opened("tests.console.on_pty", tmp_path / "result.json")
    terminal.until("RUNNING")
    terminal.send(b"q")
    assert terminal.wait() == 0
    assert not_given_back(terminal) == []


def test_after_a_fault_of_the_screen_that_no_shield_takes(opened: Open, tmp_path: Path) -> None:
    terminal = opened("tests.console.on_pty", tmp_path / "result.json", "breaking")
    terminal.until("RUNNING")
    terminal.send(b"!")
    terminal.wait()
    assert json.loads((tmp_path / "result.json").read_text())["left"] is None, (
        "what was left goes on headless"
    )
    assert not_given_back(terminal) == []
    assert b"a fault of the screen" in terminal.raw


def test_after_a_second_ctrl_c_while_the_screen_hangs(opened: Open) -> None:
    terminal = opened("tests.console.abrupt")
    assert terminal.wait() == 128 + signal.SIGINT
    assert not_given_back(terminal) == []


def test_what_is_left_on_is_seen_here(opened: Open) -> None:
    terminal = opened("tests.console.on_pty", "nowhere")
    terminal.until("RUNNING")
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.wait() == -signal.SIGKILL
    assert set(not_given_back(terminal)) >= {b"\x1b[?1049h", b"\x1b[?25l", b"raw", b"silent"}
