"""A fault of the screen must never end the screen, and never reach the engine: it becomes one line."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def shield(report: Callable[[str], None]) -> Iterator[None]:
    """Run a tick or a key's work; what it raises is reported as one line and goes no further.

    Textual ends the whole app for an exception in a timer, a handler or a worker.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  the last line of defence, and it is shown
        report(sentence(error))


def sentence(error: Exception) -> str:
    """What broke and where, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    text = " ".join(str(error).split())
    return f"screen fault (the engine is not touched): {type(error).__name__} {text}{where}"
