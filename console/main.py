"""The `tidegate` command: the engine's commands, and the screen for `run` and `demo`.

textual is imported only when a screen opens; signals go straight to the engine's thread, then to the screen.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine.cli as cli
from console.tty import keeper
from engine.cli import attach

if TYPE_CHECKING:
    from console.app import ConsoleApp
    from console.attached import AttachedLink
    from console.host import EngineHost
    from engine.config import Config, RunOptions

DRAINING = (signal.SIGTERM, signal.SIGINT)


def main() -> None:
    """Entry point of the distribution."""
    cli.open_console = open_console
    attach.open_attached = open_attached
    cli.run_command()


def open_console(config: "Config", options: "RunOptions") -> int:
    """The engine in its thread, the console in this one. Returns the exit code."""
    from console.app import ConsoleApp, check_terminal
    from console.host import SWITCH, EngineHost
    from engine.config import ConfigError
    from engine.observe.log import logging_to

    if (why_not := check_terminal()) is not None:
        raise ConfigError(why_not)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    config.data_dir.mkdir(parents=True, exist_ok=True)
    sys.setswitchinterval(SWITCH)
    with (config.data_dir / "tidegate.log").open("a", encoding="utf-8") as log, logging_to(log):
        host = EngineHost(config, options)
        host.start()
        app = ConsoleApp(
            host,
            mode="demo" if options.demo else "run",
            refresh_hz=options.refresh_hz,
            mouse=options.mouse,
        )
        app.export_dir = _exports(config, options)
        with _signals(host, app) as signalled:
            try:
                with _job_control():
                    left = app.run()
            except BaseException:
                host.drain("the screen failed")
                raise
            if left == "quit" or options.demo:
                host.drain("the console was left")
            else:
                _say_headless(config, signalled)
            outcome = host.join()
    _print_report(outcome.report, signalled)
    ended_by = next((n for n in signalled if n in DRAINING), None)
    return 128 + ended_by if ended_by and outcome.code == 0 else outcome.code


def _exports(config: "Config", options: "RunOptions") -> Path:
    """S writes beside the log; a demo's directory goes with it, so there into the working directory."""
    return Path() if options.demo else config.data_dir


def open_attached(config: "Config", options: "RunOptions") -> int:
    """The console over the database. Returns the exit code."""
    from console.app import ConsoleApp, check_terminal
    from console.attached import AttachedLink
    from engine.config import ConfigError
    from engine.observe.log import logging_to

    if (why_not := check_terminal()) is not None:
        raise ConfigError(why_not.replace("run with --no-ui", "`tidegate campaign list` tells the same"))
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    config.data_dir.mkdir(parents=True, exist_ok=True)
    with (config.data_dir / "attach.log").open("a", encoding="utf-8") as log, logging_to(log):
        link = AttachedLink(config, read_only=options.read_only)
        link.start()
        app = ConsoleApp(link, mode="attach", refresh_hz=options.refresh_hz, mouse=options.mouse)
        app.export_dir = config.data_dir
        try:
            with _signals(link, app) as signalled:
                app.run()
        finally:
            link.close()
    ended_by = next((n for n in signalled if n in DRAINING), None)
    return 128 + ended_by if ended_by else 0


@contextmanager
def _signals(host: "EngineHost | AttachedLink", app: "ConsoleApp") -> Iterator[list[int]]:
    """TERM and INT drain the engine, HUP only ends the screen; a second TERM or INT gives the terminal
    back and exits at once."""
    signalled: list[int] = []
    give_back = keeper()

    def leave_screen(word: str) -> None:
        loop = getattr(app, "_loop", None)
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(app.exit, word)

    def on_signal(number: int, _: object) -> None:
        if number in DRAINING:
            if any(n in DRAINING for n in signalled):
                give_back()
                os._exit(128 + number)
            host.drain(signal.Signals(number).name)
        signalled.append(number)
        leave_screen("quit" if number in DRAINING else "headless")

    handled = (*DRAINING, signal.SIGHUP)
    before: dict[int, Callable[..., Any] | int | None] = {n: signal.signal(n, on_signal) for n in handled}
    try:
        yield signalled
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _job_control() -> Iterator[None]:
    """What the screen does when the process is stopped and goes on ends with it: without a screen it would raise, and
    end the engine."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say_headless(config: "Config", signalled: list[int]) -> None:
    import structlog

    structlog.get_logger().info("the screen is gone, the engine goes on", hangup=signal.SIGHUP in signalled)
    _print_report(
        f"tidegate goes on without a screen (pid {os.getpid()}, log {config.data_dir / 'tidegate.log'}); "
        "ctrl+c drains it.",
        signalled,
    )


def _print_report(text: str, signalled: list[int]) -> None:
    if signal.SIGHUP in signalled:  # nobody reads, and writing to a terminal that is gone raises
        return
    print(text, flush=True)


if __name__ == "__main__":
    main()
