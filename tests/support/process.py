"""`tidegate` as a process of its own, with what it wrote, and an end that comes whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import forks

ROOT = Path(__file__).parents[2]
TIDEGATE = (sys.executable, "-m", "console.main")
ENDS_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Process:
    """A running `tidegate`. Its output goes into files, so that nobody has to read a pipe."""

    def __init__(self, process: asyncio.subprocess.Process | forks.Forked, out: Path, err: Path) -> None:
        self.pid = process.pid
        self._process, self._out, self._err = process, out, err

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.returncode

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()

    async def ended(self, within_s: float = ENDS_WITHIN_S) -> Ended:
        """Wait for its end; TimeoutError tells the last lines of its log."""
        try:
            async with asyncio.timeout(within_s):
                code = await self._process.wait()
        except TimeoutError:
            raise TimeoutError(f"pid {self.pid} runs on after {within_s} s: {self.err[-2000:]}") from None
        return Ended(code, self.out, self.err)

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    @property
    def said(self) -> str:
        """The end of its log, without the summaries."""
        lines = [line for line in self.err.splitlines() if '"event": "summary"' not in line]
        return "\n".join(lines)[-3000:]

    def events(self, event: str) -> list[dict[str, Any]]:
        """The log lines of one kind."""
        lines = (json.loads(line) for line in self.err.splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("event") == event]


async def spawn(
    arguments: Iterable[str],
    environment: Mapping[str, str],
    directory: Path,
    *,
    name: str,
    stderr: int | None = None,
    forked: bool = False,
) -> Process:
    """Start `tidegate` with these arguments and only these TIDEGATE_* settings; `stderr`: a descriptor instead
    of a file. `forked`: without a new interpreter, where that can be and stderr is a file."""
    out, err = directory / f"{name}.out", directory / f"{name}.err"
    if forked and forks.SUPPORTED and stderr is None:
        whole = without_settings() | dict(environment)
        return Process(
            await forks.session.spawn(forks.TIDEGATE, [*arguments], whole, directory, out, err), out, err
        )
    with out.open("wb") as to_out, err.open("wb") as to_err:
        process = await asyncio.create_subprocess_exec(
            *TIDEGATE,
            *arguments,
            cwd=directory,
            env=without_settings() | dict(environment) | {"PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=to_out,
            stderr=to_err if stderr is None else stderr,
            start_new_session=True,
        )
    return Process(process, out, err)


async def put_down(process: Process) -> None:
    """End it now, also when it is stopped; nothing of it is left when this returns."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process._process.wait()


def without_settings() -> dict[str, str]:
    """The tester's environment without settings of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
