"""The console on a real terminal: stray bytes, pastes, a lost terminal, a storm of resizes."""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.pty_terminal import DEADLINE_S, Terminal

Report = Callable[[], dict[str, Any]]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    child = Terminal(["-m", "tests.console.on_pty", str(tmp_path / "result.json")])
    child.until("RUNNING")
    yield child
    child.close()


@pytest.fixture
def report(terminal: Terminal, tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """What the child wrote when it has ended."""

    def of_child() -> dict[str, Any]:
        terminal.wait()
        found: dict[str, Any] = json.loads((tmp_path / "result.json").read_text())
        return found

    return of_child


def test_a_key_reaches_its_act_and_q_restores_the_terminal(terminal: Terminal, report: Report) -> None:
    terminal.send(b"p")
    terminal.until("PAUSE …0042 sent")
    terminal.send(b"q")
    assert report() == {
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
def test_stray_bytes_neither_act_nor_end_the_screen(terminal: Terminal, report: Report, stray: bytes) -> None:
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
    assert report() == {"left": "headless", "submitted": []}


def test_a_paste_without_brackets_acts_on_nothing(terminal: Terminal, report: Report) -> None:
    terminal.send(b"ryPall\rspam\rQall\rx\rpuAaqy")
    terminal.until("faster than a hand types")
    terminal.hang_up()
    assert report() == {"left": "headless", "submitted": []}


def test_a_lost_terminal_leaves_the_engine_headless(terminal: Terminal, report: Report) -> None:
    terminal.hang_up()
    assert report()["left"] == "headless"


def test_a_storm_of_resizes_leaves_a_living_screen(terminal: Terminal, report: Report) -> None:
    chance = random.Random(3)
    for _ in range(80):
        terminal.resize(chance.randrange(1, 250), chance.randrange(1, 70))
        terminal.read()
    terminal.screen.resize(24, 80)
    terminal.screen.reset()
    terminal.resize(81, 24)
    terminal.resize(80, 24)
    deadline = time.monotonic() + DEADLINE_S
    while "KEYS" not in "\n".join(terminal.screen.display):
        assert time.monotonic() < deadline, "\n".join(terminal.screen.display)
        terminal.send(b"?")
        for _ in range(10):
            assert terminal.read()
    terminal.hang_up()
    assert report() == {"left": "headless", "submitted": []}
