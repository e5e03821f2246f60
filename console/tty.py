"""The terminal as it was before a screen, for a process that ends without a word: the driver does it on all other ways
out."""

import os
import select
import termios
from collections.abc import Callable
from contextlib import suppress

RESET = (
    b"\x1b[<u\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[?2048l\x1b[?1004l\x1b[?7h\x1b[0m"
    b"\x1b[?1049l\x1b[?25h"
)
"""All that Textual turns on: keys, mouse, paste, resize, focus, wrapping; then the other screen, and the cursor."""


def keeper(fd: int = 0) -> Callable[[], None]:
    """What gives the terminal at `fd` back as it is now. It never waits: one that is full gets its modes only."""
    try:
        before = termios.tcgetattr(fd)
    except termios.error:  # no terminal
        return lambda: None

    def give_back() -> None:
        with suppress(termios.error, OSError):
            termios.tcsetattr(fd, termios.TCSANOW, before)
            if select.select([], [fd], [], 0)[1]:
                os.write(fd, RESET)

    return give_back
