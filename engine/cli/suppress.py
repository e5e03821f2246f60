"""tidegate suppress add, import, list, remove: who must not be written to."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.root import new_group
from engine.cli.session import Json, act, database, print_json, print_table, run_once, settings

if TYPE_CHECKING:
    from engine.postgres.suppressions import Suppressed

group = new_group(
    "People who must not be written to. Whoever answers STOP (or another stop word) is added with the scope all."
)

Phones = Annotated[
    list[str], typer.Argument(metavar="PHONE…", help="In full: + and country code.", show_default=False)
]
Scope = Annotated[str, typer.Option("--scope", metavar="SCOPE", help="all campaigns, or marketing alone.")]
OneScope = Annotated[
    str | None, typer.Option("--scope", metavar="SCOPE", help="all or marketing (default: both).")
]


@group.command("add")
def add(
    ctx: typer.Context,
    phones: Phones,
    scope: Scope = "all",
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="For the list.")] = None,
    as_json: Json = False,
) -> None:
    """Write to these people no more, also under the other spelling of a number of Brazil, Mexico or Argentina.

    \b
    Example:
      tidegate suppress add +5511988880001 --scope marketing
    """
    act(ctx, as_json, lambda commands: commands.suppress(phones, scope, reason))


@group.command("import")
def import_(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="One number a line, or a CSV with a column phone.", show_default=False
        ),
    ],
    scope: Scope = "all",
    country: Annotated[
        str | None, typer.Option("--country", metavar="CODE", help="Of numbers without +, such as BR.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Suppress everybody in a file; lines that hold no number are told and left out.

    \b
    Example:
      tidegate suppress import opted-out.csv --country BR
    """
    act(ctx, as_json, lambda commands: commands.import_suppressions(file, scope, country))


@group.command("list")
def list_(
    ctx: typer.Context,
    scope: OneScope = None,
    show_phones: Annotated[
        bool, typer.Option("--show-phones", help="Numbers in full; else they are masked.")
    ] = False,
    most: Annotated[int, typer.Option("--most", min=1, help="At most so many.")] = 100,
    after: Annotated[str, typer.Option("--after", metavar="PHONE", help="Go on after this number.")] = "",
    as_json: Json = False,
) -> None:
    """Who is suppressed, since when, and by what: a person, a file, a stop word, a preference, or code 131050.

    \b
    Example:
      tidegate suppress list --scope marketing --json
    """
    from engine.domain.message import masked

    config = settings(ctx)

    async def once() -> "tuple[int, list[Suppressed]]":
        async with database(config) as (_, commands):
            return await commands.list_suppressions(scope, (after, "zzz"), most)

    count, found = run_once(once())
    lines = [
        {
            "phone": one.phone if show_phones else masked(one.phone),
            "scope": one.scope,
            "source": one.source,
            "detail": one.detail,
            "at": one.at.isoformat(),
        }
        for one in found
    ]
    if as_json:
        print_json(lines)
    elif not lines:
        print("Nobody is suppressed.")
    else:
        print_table(["PHONE", "SCOPE", "SOURCE", "DETAIL", "SINCE"], [[*line.values()] for line in lines])
        if count > len(lines):
            print(f"{len(lines):,} of {count:,}")


@group.command("remove")
def remove(ctx: typer.Context, phones: Phones, scope: OneScope = None, as_json: Json = False) -> None:
    """Write to these people again: only when they asked for it.

    \b
    Example:
      tidegate suppress remove +5511988880001
    """
    act(ctx, as_json, lambda commands: commands.unsuppress(phones, scope))
