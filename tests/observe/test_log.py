"""The log never stops sending: it drops and counts when its stream stalls, fills up or breaks."""

import io
import json
import re
import threading
from typing import Any

import pytest
import structlog

from engine.observe import log
from engine.observe.log import LineWriter, logging_to

WAIT = 60.0
"""Seconds until a wait in a test is called a failure."""


class Stream(io.StringIO):
    """A stream that can stall and break, and tells when it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.open = threading.Event()
        self.open.set()
        self.fault: Exception | None = None
        self.text = ""

    def write(self, text: str) -> int:
        self.entered.set()
        assert self.open.wait(WAIT)
        if self.fault is not None:
            raise self.fault
        self.text += text
        return len(text)

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def lost(lines: list[str]) -> int:
    return sum(json.loads(line)["lines"] for line in lines if "log lines lost" in line)


def test_lines_are_written_in_order() -> None:
    stream = Stream()
    writer = LineWriter(stream)
    for i in range(100):
        assert writer.write(f"{i}\n") == len(f"{i}\n")
    writer.close()
    assert stream.lines == [str(i) for i in range(100)]


def test_a_stalled_stream_stalls_no_caller_and_the_loss_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LONGEST_QUEUE", 10)
    stream = Stream()
    stream.open.clear()
    writer = LineWriter(stream)
    writer.write("first\n")
    assert stream.entered.wait(WAIT)  # the thread holds it, and is stuck
    for i in range(50):
        writer.write(f"{i}\n")
    stream.open.set()
    writer.close()
    kept = [line for line in stream.lines if "lost" not in line]
    assert kept == ["first", *[str(i) for i in range(10)]]
    assert lost(stream.lines) == 40


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), ValueError("closed file")])
def test_a_broken_stream_raises_nowhere_and_the_loss_is_told(fault: Exception) -> None:
    stream = Stream()
    stream.fault = fault
    writer = LineWriter(stream)
    for _ in range(7):
        stream.entered.clear()
        writer.write("gone\n")
        assert stream.entered.wait(WAIT)
    stream.fault = None
    writer.write("back\n")
    writer.close()
    assert lost(stream.lines) + stream.lines.count("gone") == 7
    assert stream.lines[-1] == "back"


def test_a_loss_at_the_very_end_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LONGEST_QUEUE", 1)
    stream = Stream()
    stream.fault = OSError(5, "Input/output error")
    writer = LineWriter(stream)
    writer.write("gone\n")
    assert stream.entered.wait(WAIT)
    stream.open.clear()
    while not writer._lines.full():
        writer.write("stuck\n")
    writer.write("no room\n")
    stream.fault = None
    stream.open.set()
    writer.close()
    assert "stuck" in stream.lines
    assert lost(stream.lines) >= 1


def test_a_stream_that_stalls_for_ever_does_not_keep_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PATIENCE", 0.0)
    stream = Stream()
    stream.open.clear()
    writer = LineWriter(stream)
    writer.write("stuck\n")
    writer.close()
    assert writer._thread.daemon
    stream.open.set()
    writer._thread.join(WAIT)
    assert not writer._thread.is_alive()


def test_an_event_is_one_line_of_json_with_its_time_and_level() -> None:
    stream = Stream()
    with logging_to(stream):
        structlog.get_logger().warning("number taken", number="1065", odd=object, name="João\n")
        try:
            raise RuntimeError("boom")
        except RuntimeError:
            structlog.get_logger().exception("died")
    first, second = [json.loads(line) for line in stream.lines]
    taken: dict[str, Any] = first
    assert (taken["event"], taken["level"], taken["number"], taken["name"]) == (
        "number taken", "warning", "1065", "João\n",
    )  # fmt: skip
    assert taken["timestamp"].endswith("Z")
    assert "RuntimeError: boom" in second["exception"]


def test_on_a_terminal_a_line_is_for_people_and_steers_nothing() -> None:
    stream = Stream()
    with logging_to(stream, plain=True):
        log_ = structlog.get_logger()
        log_.info("number taken", number="1065", name="J\x1b[2J", left=None)
        log_.warning("summary", plain="12 of 40 accepted, 8/s", accepted=12)
    first, second = stream.lines
    assert re.fullmatch(r"[0-9:]{8}Z number taken  number=1065  name=J \[2J\n?", first)
    assert re.fullmatch(r"[0-9:]{8}Z WARNING 12 of 40 accepted, 8/s\n?", second)
    with logging_to(piped := Stream()):
        structlog.get_logger().info("summary", plain="12 of 40 accepted, 8/s", accepted=12)
    assert "plain" not in json.loads(piped.lines[0])


def test_logging_ends_with_its_block() -> None:
    with logging_to(Stream()):
        assert structlog.is_configured()
    assert not structlog.is_configured()
