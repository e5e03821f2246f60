"""The top of the command line: global flags, and every error as one sentence with the contract's exit code."""

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from engine.cli.session import Flags

WRONG = 2
INTERRUPTED = 130

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # click's, from wherever typer has it


_PLAIN = (
    (r"Input should be a valid number.*", "write a number, such as 40 or 0.5"),
    (r"Input should be a valid integer.*", "write a whole number, such as 40"),
    (r"No such option: (-[0-9.]+)$", r"\1 is below 0, which nothing here can be"),
)
"""Words of the parsers', and what a person can do with them."""


class Root(typer.core.TyperGroup):
    """Turns what a person can mend into one sentence; anything else stays a traceback, for it is a fault of ours."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """As typer's; a command's return value is the exit code."""
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(
                given, prog_name or "tidegate", complete_var, False, windows_expand_args, **extra
            )
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except Exception as error:
            explained = _explain(error)
            if explained is None:
                raise
            sentence, code = explained
            if "--json" in given:
                print(json.dumps({"error": sentence}, ensure_ascii=False))
            print(f"tidegate: {sentence}", file=sys.stderr)
        code = code if isinstance(code, int) else 0
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # typer's own context
        """As typer's; a reader that has gone away, as `| head` does, had what it wanted."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the interpreter's last flush
            return 0
        return code


def new_app(callback: Callable[..., None]) -> typer.Typer:
    """The application, without typer's own boxes and tracebacks."""
    made = typer.Typer(
        cls=Root,
        name="tidegate",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    made.callback(invoke_without_command=True)(callback)
    return made


def new_group(text: str) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(help=text, rich_markup_mode=None, no_args_is_help=False, add_completion=False)


def root(
    ctx: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Settings file instead of tidegate.toml.")
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option("--data-dir", metavar="DIR", help="Embedded database, log, kept pauses.")
    ] = None,
    api_url: Annotated[
        str | None, typer.Option("--api-url", metavar="URL", help="The Cloud API, its version included.")
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Send WhatsApp template messages to millions of people, at a proven pace.

    Settings come from flags, then TIDEGATE_* variables, then tidegate.toml; `tidegate check` shows them all.

    \b
    Example:
      tidegate demo
      tidegate check
      tidegate run
    """
    ctx.obj = Flags(config, {"data_dir": data_dir, "api_url": api_url})
    if version:
        from importlib.metadata import version as installed

        print(f"tidegate {installed('tidegate')}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def _explain(error: Exception) -> tuple[str, int] | None:
    """(sentence, exit code) of an error that a person can mend, else None."""
    if isinstance(error, _UsageError):
        return _usage(error), WRONG
    # Imported only now: a command that works need not wait for the classes of errors it never meets.
    from engine.commands import Refused
    from engine.config import ConfigError
    from engine.credentials import CredentialError
    from engine.intake.importer import ImportStopped
    from engine.postgres.embedded import EmbeddedError
    from engine.postgres.faults import DATABASE_FAULTS
    from engine.postgres.imports import ImportRefused
    from engine.postgres.migrate import MigrationError
    from engine.postgres.pool import DatabaseUnreachable
    from engine.server import ListenError

    if isinstance(error, ImportStopped):
        return str(error), INTERRUPTED
    known = (
        ConfigError, CredentialError, DatabaseUnreachable, EmbeddedError, ImportRefused, ListenError, MigrationError,
        Refused,
    )  # fmt: skip
    if isinstance(error, known):
        return str(error), WRONG
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}.", WRONG
    if isinstance(error, DATABASE_FAULTS):
        return (
            f"The database was lost in the middle ({type(error).__name__}): nothing is half done, try again.",
            WRONG,
        )
    return None


def _usage(error: Any) -> str:
    message = str(error.format_message()).rstrip(".?")
    for machine, plain in _PLAIN:
        message = re.sub(machine, plain, message)
    where = error.ctx.command_path if getattr(error, "ctx", None) else "tidegate"
    return f"{message}; see `{where} --help`."
