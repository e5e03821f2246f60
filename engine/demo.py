"""`tidegate demo`: a small world of its own: Postgres, simulator, three numbers, 5,000 people.

It uses none of the user's settings, lives in a directory of its own, and leaves nothing behind.
"""

import asyncio
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.resources import as_file, files
from pathlib import Path

from pydantic import SecretStr

from engine.app import run_headless
from engine.author import author
from engine.clock import now
from engine.commands import Commands
from engine.commands.number import DEFAULT_SHARE
from engine.config import Address, Config, RunOptions
from engine.database import EMBEDDED, open_database
from engine.intake.importer import import_audience
from engine.postgres.campaigns import Draft
from engine.postgres.embedded import EmbeddedError, server
from engine.postgres.placement import prepare

OpenConsole = Callable[[Config, RunOptions], int]

PREFIX = "tidegate-demo-"
CAMPAIGN = "reminder"
LINGER = 8.0
"""Seconds for the last statuses: the scenario's slowest `read` comes 7 s after its send."""

NUMBERS = (
    ("106540352242922", "+15550783881", 80.0),
    ("106540352242923", "+15550783882", 80.0),
    ("106540352242924", "+15550783883", 20.0),
)
"""Meta's id, the number as people know it, and the provider's limit in messages/s; the rates keep 20 % headroom."""


def options_for(
    no_ui: bool, open_console: OpenConsole | None, *, mouse: bool = False, refresh_hz: float | None = None
) -> RunOptions:
    """Without a terminal, with `no_ui` or without a screen a demo runs to the end by itself."""
    headless = no_ui or open_console is None or not (sys.stdout.isatty() and sys.stdin.isatty())
    return RunOptions(
        no_ui=headless,
        until_finished=headless,
        linger=LINGER,
        demo=True,
        mouse=mouse,
        refresh_hz=refresh_hz,
    )


def run_demo(options: RunOptions, open_console: OpenConsole | None) -> int:
    """The exit code."""
    with world() as config:
        if options.no_ui or open_console is None:
            return run_headless(config, options)
        return open_console(config, options)


@contextmanager
def _unwinding() -> Iterator[None]:
    """Until the engine takes them over, TERM and HUP unwind what has been built, instead of leaving it behind."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a drill changes of the demo's world. `people`: those beyond the demo's audience are made up."""

    people: int = 0
    deadline_s: float | None = None
    """Of the campaign, from now."""
    share: float = DEFAULT_SHARE
    """Of each number's limit, as its rate."""
    unknown_policy: str = "hold"
    unknown_after: float = 1800.0


@contextmanager
def world(scenario: Path | None = None, setting: Setting = Setting()) -> Iterator[Config]:
    """A prepared world: everything is there and started but the engine. `scenario`: another day of the simulator's."""
    with _unwinding(), _directory() as directory, ExitStack() as up:
        up.enter_context(server(directory / EMBEDDED))
        secret, token, port = secrets.token_hex(16), secrets.token_hex(16), _free_port()
        config = Config(
            data_dir=directory,
            listen=Address("127.0.0.1", port),
            metrics_listen=Address("127.0.0.1", 0),  # a demo must start whatever else runs here
            app_secret=(SecretStr(secret),),
            node="demo",
        )
        asyncio.run(_prepare(config, _keep_token(directory, token), setting))
        # Last: a scenario's seconds count from here, and an import takes some of them.
        day = scenario or up.enter_context(as_file(files("engine.simulator") / "demo.json"))
        api_url = up.enter_context(_simulator(day, secret, token, f"http://127.0.0.1:{port}/webhook"))
        yield config.model_copy(update={"api_url": f"{api_url}/v25.0"})


async def _prepare(config: Config, token: str, setting: Setting) -> None:
    """Three numbers, one campaign, its audience, started."""
    async with open_database(config) as db:
        commands = Commands(db, author=author(), origin="demo")
        for number, display, limit in NUMBERS:
            await commands.add_number(
                number,
                display=display,
                account="102290129340398",
                limit=limit,
                token=token,
                rate=limit * setting.share,
            )
        await commands.create_campaign(
            Draft(
                CAMPAIGN,
                tuple(number for number, _, _ in NUMBERS),
                "reminder_v2",
                "pt_BR",
                body=("name", "date"),
                deadline=now() + timedelta(seconds=setting.deadline_s)
                if setting.deadline_s is not None
                else None,
                unknown_policy=setting.unknown_policy,
                unknown_after=setting.unknown_after,
            )
        )
        with as_file(files("engine.intake") / "demo_audience.csv") as audience:
            report = await import_audience(
                db,
                _enlarged(audience, setting.people, config.data_dir),
                campaign=CAMPAIGN,
                author=author(),
                origin="demo",
                country="BR",
            )
        print(
            f"demo: {report.taken:,} people taken, {report.refused} refused, {report.folded} folded; "
            f"the same from a file of your own: tidegate import FILE --campaign {CAMPAIGN} --country BR",
            file=sys.stderr,
        )
        await commands.start_campaign(CAMPAIGN)


def _enlarged(audience: Path, people: int, directory: Path) -> Path:
    """The audience, or a file with it and with people who are made up."""
    lines = audience.read_text("utf-8").splitlines()
    if people < len(lines):
        return audience
    more = (f"+55119{60_000_000 + n},Maria Teste,28/09 11:00" for n in range(people - len(lines) + 1))
    path = directory / "audience.csv"
    path.write_text("\n".join((*lines, *more)) + "\n", "utf-8")
    return path


def _keep_token(directory: Path, token: str) -> str:
    path = directory / "token"
    path.touch(mode=0o600)
    path.write_text(token, "utf-8")
    return f"file:{path}"


@contextmanager
def _simulator(scenario: Path, secret: str, token: str, webhook: str) -> Iterator[str]:
    """The provider's double in a process of its own; ends with us, also when we are killed (its stdin closes)."""
    environment = {
        **os.environ,
        "TIDEGATE_APP_SECRET": secret,
        "TIDEGATE_SIMULATOR_TOKEN": token,
        "TIDEGATE_SIMULATOR_WEBHOOK": webhook,
    }
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "engine.simulator",
            "--port",
            "0",
            "--scenario",
            scenario,
            "--exit-with-stdin",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # a ctrl-c is for us; it ends when we have drained
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield str(json.loads(line)["listening"])
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def _directory() -> Iterator[Path]:
    """A fresh directory, locked while in use and removed afterwards; those of demos that were killed go too."""
    _remove_left_over()
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory
    finally:
        os.close(lock)
        _remove(directory)


def _remove_left_over() -> None:
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            lock = os.open(directory / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # another user's, or one that is just being made
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _stop_left_over(directory / EMBEDDED)
            _remove(directory)
        except BlockingIOError:  # in use
            continue
        finally:
            os.close(lock)


def _stop_left_over(embedded: Path) -> None:
    """A server that a killed demo left behind: whoever uses it last stops it. What is no cluster any more, for its
    removal was cut off, is not made one again."""
    with suppress(EmbeddedError, OSError):
        if (prepare(embedded).data / "PG_VERSION").exists():
            with server(embedded):
                pass


def _remove(directory: Path) -> None:
    elsewhere = directory / EMBEDDED / "elsewhere"
    if (
        elsewhere.is_symlink()
    ):  # where the server's files are when this directory cannot be reached by its user
        shutil.rmtree(elsewhere.resolve(), ignore_errors=True)
    shutil.rmtree(directory, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
