"""What commands share: the settings, the database with its acts, and the way results are printed."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from engine.commands import Commands, Done
    from engine.config import Config
    from engine.postgres.pool import Pool

T = TypeVar("T")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Number = Annotated[str, typer.Argument(metavar="ID", help="Meta's phone number id.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The campaign's name.", show_default=False)]


@dataclass(frozen=True, slots=True)
class Flags:
    """The global flags of this call."""

    file: Path | None = None
    values: Mapping[str, object] = field(default_factory=dict)


def settings(ctx: typer.Context, **flags: object) -> "Config":
    """The process's settings, with a command's own flags on top. Raises ConfigError."""
    from engine import config

    given: Flags = ctx.obj if isinstance(ctx.obj, Flags) else Flags()
    return config.load({**given.values, **flags}, file=given.file)


def run_once(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` for a command that a Ctrl-C ends at once. Python's own way looks for signals between two waits of
    the loop, so one in the wrong microsecond is noticed when the wait ends; the loop's own handler ends the wait.

    Raises KeyboardInterrupt, and what `work` raises.
    """
    interrupted = False

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None

        def interrupt() -> None:
            nonlocal interrupted
            interrupted = True
            task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise


@asynccontextmanager
async def database(config: "Config") -> "AsyncIterator[tuple[Pool, Commands]]":
    """The database, and the acts of whoever runs this command."""
    from engine.author import author
    from engine.commands import Commands
    from engine.database import open_database
    from engine.pause_file import PauseFiles

    async with open_database(config) as pool:
        yield (
            pool,
            Commands(
                pool,
                author=author(),
                origin="cli",
                pauses=PauseFiles(config.data_dir),
                unknown_floor=config.unknown_floor,
                request_deadline=config.request_deadline,
            ),
        )


def act(ctx: typer.Context, as_json: bool, doing: "Callable[[Commands], Coroutine[Any, Any, Done]]") -> None:
    """Carry out one act and print what came of it."""
    config = settings(ctx)

    async def once() -> "Done":
        async with database(config) as (_, commands):
            return await doing(commands)

    report(run_once(once()), as_json)


def report(done: "Done", as_json: bool) -> None:
    """The sentence on stdout, warnings on stderr; or one object."""
    if as_json:
        print_json(done.as_json())
        return
    print(done.text)
    for warning in done.warnings:
        print(warning, file=sys.stderr)


def print_json(value: object) -> None:
    """One line; text as it is."""
    print(json.dumps(value, ensure_ascii=False, default=str))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they must be; numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [
        max(len(h), *(len(row[i]) for row in cells)) if cells else len(h) for i, h in enumerate(headings)
    ]
    right = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(headings))]
    for line in [list(headings), *cells]:
        shown = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)]
        print("  ".join(shown).rstrip())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return "".join(
        c if c.isprintable() else "?" for c in text
    )  # text from outside must not steer the terminal


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(",", "").replace(".", "").replace("-", "").isdigit()
