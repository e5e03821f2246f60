"""The log: one structured line per event, written by a thread of its own.

A log must never stop sending: lines go through a bounded queue, and when the disk is full, the pipe is closed or
its reader has stalled, they are dropped and counted, and the count is logged when writing works again.
"""

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import IO, Any

import structlog
from structlog.typing import EventDict

LONGEST_QUEUE = 10_000
PATIENCE = 2.0
"""Seconds that the last lines may take at the end of the process."""


class LineWriter:
    """A file object for structlog: `write` never blocks and never raises."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(LONGEST_QUEUE)
        self._lost = 0
        self._counting = threading.Lock()  # held for an addition, never while writing
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Queue it, or drop it."""
        try:
            self._lines.put_nowait(text)
        except queue.Full:
            self._lose(1)
        return len(text)

    def flush(self) -> None:
        """Nothing to do: the thread flushes after each burst."""

    def close(self) -> None:
        """Write what is queued, for PATIENCE seconds at most."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=PATIENCE)
        self._thread.join(PATIENCE)

    def _write_all(self) -> None:
        while (text := self._lines.get()) is not None:
            self._write_one(text)
        if self._lost:
            self._write_one("")

    def _write_one(self, text: str) -> None:
        with self._counting:
            lost, self._lost = self._lost, 0
        notice = f'{{"level": "warning", "event": "log lines lost", "lines": {lost}}}\n' if lost else ""
        try:
            self._stream.write(notice + text)
            if self._lines.empty():
                self._stream.flush()
        except (OSError, ValueError):  # full, closed: the next line tries again
            self._lose(lost + 1)

    def _lose(self, lines: int) -> None:
        with self._counting:
            self._lost += lines


@contextlib.contextmanager
def logging_to(stream: IO[str], *, plain: bool = False) -> Iterator[None]:
    """Configure structlog for the process: JSON lines with UTC times on `stream`, or `plain` ones for people.

    An event's own `plain=` is its sentence for people, and stands in plain lines alone.
    """
    writer = LineWriter(stream)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _plain_line if plain else _json_line,
        ],
        logger_factory=_Factory(writer),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        writer.close()
        structlog.reset_defaults()


_json = structlog.processors.JSONRenderer(ensure_ascii=False, default=str)


def _json_line(logger: Any, method: str, event: EventDict) -> str | bytes:
    event.pop("plain", None)
    return _json(logger, method, event)


def _plain_line(_logger: Any, _method: str, event: EventDict) -> str:
    """`21:03:11Z WARNING number taken  number=1065`; what comes from outside must not steer the terminal."""
    at, level = str(event.pop("timestamp", ""))[11:19], str(event.pop("level", "info"))
    text, trace = str(event.pop("event", "")), event.pop("exception", None)
    sentence = event.pop("plain", None)
    told = sentence or "  ".join(
        [text, *(f"{key}={value}" for key, value in event.items() if value is not None)]
    )
    word = "" if level == "info" else f"{level.upper()} "
    line = "".join(c if c.isprintable() else " " for c in f"{at}Z {word}{told}")
    return f"{line}\n{trace}" if trace else line


class _Factory:
    """structlog's own print loggers take a lock and flush each line; one write call is all that is needed here."""

    def __init__(self, writer: LineWriter) -> None:
        self._logger = structlog.WriteLogger(writer)  # type: ignore[arg-type]

    def __call__(self, *_: Any) -> structlog.WriteLogger:
        return self._logger
