"""Half-lives that no exception tells of: a loop that does not turn, a standing task that makes no more rounds, work
that could go on and does not.

All end the process with 1, so that its supervisor starts another: the first at once, with every thread's stack on
standard error (a loop that hangs can drain nothing; another node has taken the numbers over by then), the others by
the same drain as SIGTERM. Only own looks are counted, never the clock: a process that was suspended is not dead.

Under systemd (`Type=notify`) the unit is told when the engine stands, and, with WatchdogSec, that its loop turns.
"""

import asyncio
import contextlib
import faulthandler
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

LOOK = 1.0
"""Seconds between the looks at the loop."""

LOOP_LOOKS = 30
"""Looks in a row without a turn of the loop, after which it is taken for dead; leases last 10 s."""

ROUND_LOOK = 5.0
ROUND_LOOKS = 24
"""Looks in a row without a round of a standing task: two minutes, more than a database may take to be given up."""

log = structlog.get_logger()


class StalledError(RuntimeError):
    """A standing task makes no more rounds, or open work does not move."""


@dataclass(frozen=True, slots=True)
class Open:
    """Work that nothing and nobody holds."""

    moved: int
    """Grows with whatever happens to it."""
    patience: float
    """Seconds within which something must."""


def die() -> None:
    """End the process where it stands, with the stacks of all its threads on standard error."""
    with contextlib.suppress(OSError, ValueError):
        os.write(
            2,
            b"tidegate: the event loop has not turned for too long; ending with 1. Where every thread is:\n",
        )
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
    os._exit(1)


@asynccontextmanager
async def loop_watched(
    *, look: float = LOOK, looks: int = LOOP_LOOKS, dead: Callable[[], None] = die
) -> AsyncIterator[None]:
    """While the block runs, a thread looks whether this loop turns; `dead` is called when it does not."""
    turned, over = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    turned.set()

    def watch() -> None:
        missed = 0
        while not over.wait(look):
            if turned.is_set():
                missed = 0
                turned.clear()
                notify("WATCHDOG=1")
                with contextlib.suppress(RuntimeError):  # the loop has just been closed
                    loop.call_soon_threadsafe(turned.set)
            else:
                missed += 1
                if missed >= looks:
                    dead()
                    return

    thread = threading.Thread(target=watch, name="loop watchdog", daemon=True)
    notify("READY=1")  # before the thread's first word
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LOOK)  # it wakes at once, and says nothing after us
        notify("STOPPING=1")


async def watch_rounds(
    parts: Mapping[str, Callable[[], int]], *, look: float = ROUND_LOOK, looks: int = ROUND_LOOKS
) -> None:
    """Look for ever at the rounds that standing tasks count. Raises StalledError, which names the one that hangs."""
    seen = dict.fromkeys(parts, (-1, 0))
    while True:
        for name, count in parts.items():
            rounds, missed = count(), seen[name][1] + 1
            seen[name] = (rounds, missed if rounds == seen[name][0] else 0)
            if seen[name][1] >= looks:
                raise StalledError(f"{name} has made no round for {looks * look:.0f} s")
        await asyncio.sleep(look)


class WorkWatch:
    """Looks for ever at the work that is open, by name; what is not named waits for a good reason."""

    def __init__(self, look: Callable[[], Mapping[str, Open]], *, every: float = ROUND_LOOK) -> None:
        self.suspect: str | None = None
        """What has not moved for half its patience."""
        self._look, self._every = look, every
        self._seen: dict[str, tuple[int, int]] = {}

    async def run(self) -> None:
        """Raises StalledError, which names what does not move."""
        while True:
            self._compare(self._look())
            await asyncio.sleep(self._every)

    def _compare(self, work: Mapping[str, Open]) -> None:
        before, self._seen, self.suspect = self._seen, {}, None
        for name, one in work.items():
            moved, missed = before.get(name, (-1, 0))
            missed = missed + 1 if moved == one.moved else 0
            self._seen[name] = (one.moved, missed)
            still = missed * self._every
            what = f"{name}: rows are due, nothing holds them, and nothing has moved for {still:.0f} s"
            if still >= one.patience:
                raise StalledError(what)
            if still >= one.patience / 2:
                self.suspect = what


def notify(state: str) -> None:
    """Tell systemd, where it asked to be told; nothing else, and no error, anywhere else."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out,
    ):
        out.setblocking(False)
        out.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
