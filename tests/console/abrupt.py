"""A screen whose loop hangs, as far as its terminal can tell, and two signals: `python -m tests.console.abrupt`."""

import os
import signal
import tty
from typing import Any, cast

from console.main import _signals


class Busy:
    """A host and an app that do nothing of what they are asked."""

    _loop = None

    def drain(self, reason: str) -> None:
        """Takes for ever."""


def main() -> None:
    with _signals(cast("Any", Busy()), cast("Any", Busy())):
        tty.setraw(0)
        os.write(1, b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1000hheld")
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
