"""A loop whose clock jumps to the next timer: ten seconds of pacing take as long as their work, and no test sleeps."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

START = 1000.0
"""Seconds on the clock of a new loop: not 0, which code might take for `never`."""

TURN = 1e-6
"""Seconds that a turn of the loop takes by itself. A clock that stood still would fool code that looks again
until a moment, rounded, has passed."""


class NothingWillHappen(AssertionError):
    """Every task waits for something that no timer and no task will bring about."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Timers fire in order and at once. Real sockets work, but nothing waits for them."""

    def __init__(self) -> None:
        self._now = START
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Seconds, moved by nothing but timers, turns and `jump`."""
        return self._now

    def jump(self, seconds: float) -> None:
        """Time passes without the loop having had a turn: a busy console, a suspended machine."""
        self._now += seconds


class _JumpingSelector(selectors.BaseSelector):
    """Instead of waiting for `timeout`, moves the loop's clock by it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if not ready and timeout is None:
            raise NothingWillHappen
        self._loop.jump(TURN + (timeout or 0.0 if not ready else 0.0))
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a loop of its own, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)


def jump(seconds: float) -> None:
    """From inside a scenario: time passes while nothing gets a turn."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.jump(seconds)
