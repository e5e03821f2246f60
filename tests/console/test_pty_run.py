"""`tidegate run` and `tidegate attach` on a real terminal with a real database: every way out of the screen."""

import os
import signal
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.postgres.pool import connect
from tests.console.pty_terminal import DEADLINE_S, Terminal
from tests.support.database import apart

RESTORED = b"\x1b[?1049l"
SEEN = "SELECT count(*) FROM node WHERE seen_at > clock_timestamp() - interval '0.2 s'"


@pytest.fixture
def environ(database_url: str, tmp_path: Path) -> dict[str, str]:
    """Settings of a node on a fresh database."""
    return {
        "TIDEGATE_DATABASE_URL": database_url,
        "TIDEGATE_DATA_DIR": str(tmp_path / "data"),
        "TIDEGATE_METRICS_LISTEN": "off",
        "TIDEGATE_NODE": "eng1",
    }


@pytest.fixture
def engine(environ: dict[str, str]) -> Iterator[Terminal]:
    """An engine with its screen, painted."""
    child = Terminal(["-m", "console.main", "run", "--no-webhook"], environ)
    child.until("LIVE")
    yield child
    child.close()


def heard_of(url: str) -> bool:
    """Whether a node has given a sign just now."""

    async def asked() -> int:
        async with connect(url) as db:
            return int(await db.fetchval(SEEN))

    return apart(asked) > 0


def until_heard_of(url: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not heard_of(url):
        assert time.monotonic() < end, "no node gives a sign"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_the_engine_and_gives_the_terminal_back(
    engine: Terminal, number: signal.Signals
) -> None:
    os.kill(engine.pid, number)
    assert engine.wait() == 128 + number
    assert RESTORED in engine.raw


def test_after_a_hang_up_the_engine_lives_on_and_attach_shows_it(
    engine: Terminal, environ: dict[str, str]
) -> None:
    engine.hang_up()  # the kernel sends SIGHUP
    log = Path(environ["TIDEGATE_DATA_DIR"]) / "tidegate.log"
    end = time.monotonic() + DEADLINE_S
    while "the engine goes on" not in log.read_text():
        assert time.monotonic() < end, log.read_text()[-2000:]
    os.kill(engine.pid, signal.SIGCONT)  # as when its machine was suspended
    until_heard_of(environ["TIDEGATE_DATABASE_URL"])
    assert engine.alive

    viewer = Terminal(["-m", "console.main", "attach", "--read-only"], environ)
    try:
        viewer.until("LIVE")
        viewer.send(b"N")
        viewer.until("eng1 (")
        viewer.until("1 NUMBERS", gone=True)
        viewer.send(b"\x1b")  # not q: a key that is pressed again at once counts as held down
        viewer.until("1 NUMBERS")
        viewer.rest()
        viewer.send(b"q")
        assert viewer.wait() == 0
        assert RESTORED in viewer.raw
    finally:
        viewer.close()
    assert engine.alive
    os.kill(engine.pid, signal.SIGTERM)
    assert engine.wait() == 128 + signal.SIGTERM


def test_a_hang_up_by_signal_gives_a_terminal_that_is_still_there_back(engine: Terminal) -> None:
    os.kill(engine.pid, signal.SIGHUP)
    end = time.monotonic() + DEADLINE_S
    while RESTORED not in engine.raw or not termios.tcgetattr(engine.fd)[3] & termios.ICANON:
        assert engine.read(), "the engine has gone with its screen"
        assert time.monotonic() < end, "the terminal is not given back"
    assert engine.alive
    os.kill(engine.pid, signal.SIGINT)  # what Ctrl-C is now that the terminal is cooked
    assert engine.wait() == 128 + signal.SIGINT


def test_attach_without_a_terminal_is_one_sentence(environ: dict[str, str]) -> None:
    child = Terminal(["-m", "console.main", "attach"], environ | {"TERM": "dumb"})
    try:
        assert child.wait() == 2
        assert b"such a terminal cannot show a screen" in child.raw
    finally:
        child.close()
