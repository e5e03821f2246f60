"""`tidegate` and the simulator without the second that their imports take: a process that has made them forks.

What comes of it is a process like any other, with a session, directory, environment, output and signals of its own.
Only its command line, as others see it, is the one of the process that forks.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TIDEGATE, SIMULATOR = "console.main", "engine.simulator.__main__"
MODULES = (
    TIDEGATE,
    SIMULATOR,
    # What these import by and by for a command or a headless engine; nothing of it may start a thread.
    "engine.app",
    "engine.commands",
    "engine.control.audit",
    "engine.intake.importer",
    "uvloop",
)
SUPPORTED = hasattr(os, "pidfd_open") and sys.platform == "linux"


class Forked:
    """A forked process, as asyncio's own look from outside."""

    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = asyncio.create_task(self._end(reader, writer))

    def send_signal(self, number: signal.Signals) -> None:
        """ProcessLookupError once it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit code; the negative number of the signal that ended it."""
        return await asyncio.shield(self._ended)

    async def _end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        self.returncode = int(await reader.readline())
        writer.close()
        return self.returncode


class Forks:
    """The process that forks, started for the first that is asked of it; `end` before the interpreter does."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None
        self._address = f"\0tidegate-forks-{secrets.token_hex(8)}"

    async def spawn(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        out: Path,
        err: Path,
    ) -> Forked:
        """`main()` of one of MODULES with these arguments and nothing but this environment; outputs go into files."""
        if self._server is None:
            self._start()
        for output in (out, err):  # there is something to read before the process has come so far
            output.touch()
        reader, writer = await asyncio.open_unix_connection(self._address)
        request = [module, list(arguments), dict(environment), str(directory), str(out), str(err)]
        writer.write(json.dumps(request).encode() + b"\n")
        return Forked(int(await reader.readline()), reader, writer)

    def end(self) -> None:
        """With all that it has forked."""
        if self._server is None:
            return
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        self._server = None

    def _start(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forks", self._address[1:]],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for pytest
        )
        assert self._server.stdout is not None
        if self._server.stdout.readline() != "ready\n":
            raise RuntimeError("The process that forks did not start; its error is on standard error above.")


session = Forks()
"""This test session's; its end is a fixture's affair."""


@dataclass(slots=True)
class _Server:
    listening: socket.socket
    asked: dict[int, tuple[int, socket.socket]] = field(default_factory=dict)
    """By the descriptor that tells of its end: the process, and who asked for it."""

    def run(self) -> list[Any] | None:
        """In a new process: what it shall become. In the server: None, when its standard input has closed."""
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            selector.register(self.listening, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fd == 0:
                        for pid, _ in self.asked.values():
                            os.kill(pid, signal.SIGKILL)
                        return None
                    if key.fileobj is not self.listening:
                        selector.unregister(key.fd)
                        self._tell(key.fd)
                    elif (request := self._fork(selector)) is not None:
                        self._leave()
                        return request

    def _fork(self, selector: selectors.BaseSelector) -> list[Any] | None:
        connection, _ = self.listening.accept()
        with connection.makefile("rb") as lines:
            line = lines.readline()
        if not line:  # whoever connected has gone
            connection.close()
            return None
        request: list[Any] = json.loads(line)
        pid = os.fork()
        if pid == 0:
            connection.close()
            return request
        ends = os.pidfd_open(pid)
        self.asked[ends] = pid, connection
        selector.register(ends, selectors.EVENT_READ)
        with suppress(BrokenPipeError):
            connection.sendall(b"%d\n" % pid)
        return None

    def _tell(self, ends: int) -> None:
        pid, connection = self.asked.pop(ends)
        os.close(ends)
        _, status = os.waitpid(pid, 0)
        with connection, suppress(BrokenPipeError):
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))

    def _leave(self) -> None:
        """The new process has nothing to do with the server's other ones."""
        self.listening.close()
        for ends, (_, connection) in self.asked.items():
            os.close(ends)
            connection.close()


def _become(request: list[Any]) -> Callable[[], int | None]:
    module, arguments, environment, directory, out, err = request
    os.setsid()
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    anew = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for target, (place, flags) in enumerate(((os.devnull, os.O_RDONLY), (out, anew), (err, anew))):
        opened = os.open(place, flags, 0o644)
        os.dup2(opened, target)
        os.close(opened)
    sys.argv = [module, *arguments]
    start: Callable[[], int | None] = sys.modules[module].main
    return start


def _main(name: str) -> None:
    for module in MODULES:
        import_module(module)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a thread would be missing in the forked ones"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        print("ready", flush=True)
        request = _Server(listening).run()
    if request is not None:
        sys.exit(_become(request)())


if __name__ == "__main__":
    _main(sys.argv[1])
