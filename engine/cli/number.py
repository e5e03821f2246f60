"""tidegate number …"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.root import new_group
from engine.cli.session import (
    Json,
    Number,
    act,
    database,
    print_json,
    print_table,
    report,
    run_once,
    settings,
)
from engine.domain.heard import engines, owner

if TYPE_CHECKING:
    from engine.commands import Done
    from engine.config import Config
    from engine.postgres.numbers import NumberRow

group = new_group("Business numbers: what may send, and how fast.")

Rate = Annotated[
    float, typer.Argument(metavar="RATE", help="Messages per second; 0 is a pause.", show_default=False)
]


@group.command()
def add(
    ctx: typer.Context,
    number: Number,
    display: Annotated[
        str, typer.Option("--display", metavar="+PHONE", help="The number as people know it.")
    ],
    account: Annotated[
        str, typer.Option("--account", metavar="WABA", help="The WhatsApp business account's id.")
    ],
    limit: Annotated[
        float, typer.Option("--limit", help="What Meta grants, messages per second (80 unless upgraded).")
    ],
    token: Annotated[
        str, typer.Option("--token", metavar="file:PATH|env:NAME", help="Where the access token is.")
    ],
    rate: Annotated[
        float | None, typer.Option("--rate", help="What campaigns may take of it (default: 80 %).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a number known. The access token itself is never stored, only where it is.

    \b
    Example:
      tidegate number add 106540352242922 --display +5511988880001 --account WABA1 \\
          --limit 80 --token file:/etc/tidegate/token
    """
    if token.startswith("file:") and len(token) > 5:  # the engine may run in another directory
        token = f"file:{Path(token[5:]).expanduser().absolute()}"

    async def once() -> "Done":
        from dataclasses import replace

        from engine.credentials import CredentialError, permission_warning, resolve_token

        async with database(settings(ctx)) as (_, commands):
            done = await commands.add_number(
                number, display=display, account=account, token=token, limit=limit, rate=rate
            )
        try:
            resolve_token(token)
        except CredentialError as error:
            return replace(done, warnings=(*done.warnings, str(error)))
        warning = permission_warning(token)
        return replace(done, warnings=(*done.warnings, warning)) if warning else done

    report(run_once(once()), as_json)


@group.command("list")
def list_(ctx: typer.Context, as_json: Json = False) -> None:
    """All numbers as they stand.

    \b
    Example:
      tidegate number list --json
    """
    config = settings(ctx)

    async def once() -> "tuple[list[NumberRow], str]":
        async with database(config) as (_, commands):
            return await commands.list_numbers(), engines(await commands.heard_nodes())

    found, running = run_once(once())
    rows = [row.as_json() for row in found]
    if as_json:
        print_json(rows)
        return
    for row, number in zip(rows, found, strict=True):
        row["owner"] = number.owner and owner(number.owner, number.owner_silent_s)
    shown = ("id", "display", "account", "owner", "state", "rate", "limit", "ceiling", "reason")
    print_table([name.upper() for name in shown], [[row[name] for name in shown] for row in rows])
    print(running)


@group.command()
def show(ctx: typer.Context, number: Number, as_json: Json = False) -> None:
    """One number as it stands.

    \b
    Example:
      tidegate number show 106540352242922
    """
    config = settings(ctx)

    async def once() -> "NumberRow":
        async with database(config) as (_, commands):
            return await commands.show_number(number)

    row = run_once(once())
    if as_json:
        print_json(row.as_json())
        return
    for name, value in {**row.as_json(), "token": row.token_ref}.items():
        print(f"{name:22} {'-' if value is None else value}")


@group.command()
def pause(
    ctx: typer.Context,
    number: Number,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the others.")
    ] = None,
    as_json: Json = False,
) -> None:
    """No request starts from this number until it is resumed. Works without the database, on this machine.

    \b
    Example:
      tidegate number pause 106540352242922 --reason "quality rating fell"
    """
    report(run_once(_pause(settings(ctx), number, reason)), as_json)


@group.command()
def resume(ctx: typer.Context, number: Number, as_json: Json = False) -> None:
    """Take back a pause, by a person or by the engine.

    \b
    Example:
      tidegate number resume 106540352242922
    """
    act(ctx, as_json, lambda commands: commands.resume_number(number))


@group.command()
def rate(ctx: typer.Context, number: Number, rate: Rate, as_json: Json = False) -> None:
    """What campaigns may take, messages per second; never above the provider's limit.

    \b
    Example:
      tidegate number rate 106540352242922 40
    """
    act(ctx, as_json, lambda commands: commands.set_rate(number, rate))


@group.command()
def limit(
    ctx: typer.Context,
    number: Number,
    limit: Annotated[float, typer.Argument(metavar="LIMIT", help="Messages per second that Meta grants.")],
    rate: Annotated[
        float | None, typer.Option("--rate", help="The rate to go with it (default: as it is).")
    ] = None,
    as_json: Json = False,
) -> None:
    """What Meta grants. A limit that falls below the rate takes the rate down with it, in proportion.

    \b
    Example:
      tidegate number limit 106540352242922 1000 --rate 800
    """
    act(ctx, as_json, lambda commands: commands.set_limit(number, limit, rate))


@group.command()
def remove(ctx: typer.Context, number: Number, as_json: Json = False) -> None:
    """Forget a number that no unfinished campaign uses.

    \b
    Example:
      tidegate number remove 106540352242922
    """
    act(ctx, as_json, lambda commands: commands.remove_number(number))


async def _pause(config: "Config", number: str, reason: str | None) -> "Done":
    """The file first: a stop must not wait for a database, nor for finding out that there is none."""
    from engine import clock
    from engine.author import author
    from engine.commands.number import kept_beside
    from engine.pause_file import Pause, PauseFiles
    from engine.postgres.embedded import EmbeddedError
    from engine.postgres.pool import DatabaseUnreachable

    files = PauseFiles(config.data_dir)
    if not number.isdecimal():
        raise typer.BadParameter(f"{number!r} is no number's id: digits alone, such as 106540352242922")
    try:
        wrote = files.write(Pause(number, author(), reason, clock.now().isoformat()))
        kept = True
    except OSError:
        wrote = kept = False
    try:
        async with database(config) as (_, commands):
            known = [row.id for row in await commands.list_numbers()]
            if wrote and number not in known:
                files.remove(number)
            return await commands.pause_number(number, reason)
    except (DatabaseUnreachable, EmbeddedError) as error:
        if not kept:
            raise
        return kept_beside(number, str(files.directory), str(error).rstrip("."))
