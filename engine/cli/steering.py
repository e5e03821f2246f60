"""tidegate campaign retry-failed, campaign number"""

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.session import Json, Name, act, database, print_json, print_table, run_once, settings

if TYPE_CHECKING:
    from engine.commands.steering import Retried


def register(group: typer.Typer) -> None:
    """Add the commands to the group of campaigns."""
    group.command("retry-failed")(retry_failed)
    group.command("number")(number)


def retry_failed(
    ctx: typer.Context,
    name: Name,
    code: Annotated[
        int | None, typer.Option("--code", metavar="N", help="Only rows that failed with this code.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count: what would be sent again, what not, and why.")
    ] = False,
    retry_marketing_limit: Annotated[
        bool,
        typer.Option("--retry-marketing-limit", help="Also 131049, for rows that failed more than 24 h ago."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Send failed rows again whose failure may pass: transient faults, throttling. Counts by code come first.

    \b
    Example:
      tidegate campaign retry-failed reminder --dry-run
      tidegate campaign retry-failed reminder --code 131000
    """
    config = settings(ctx)

    async def once(dry: bool) -> "Retried":
        async with database(config) as (_, commands):
            return await commands.retry_failed(name, code, dry_run=dry, marketing_limit=retry_marketing_limit)

    found = run_once(once(dry_run))
    if as_json:
        print_json(found.as_json())
        return
    if found.offers:
        print_table(
            ["CODE", "FAILED", "AGAIN", "TITLE", "WHY NOT"],
            [
                (str(o.code) if o.code is not None else None, o.failed, o.retried, o.title, o.why_not)
                for o in found.offers
            ],
        )
        print()
    print(found.text)
    for warning in found.warnings:
        typer.echo(warning, err=True)


def number(
    ctx: typer.Context,
    name: Name,
    add: Annotated[
        str | None, typer.Option("--add", metavar="ID", help="Send from this number, too.")
    ] = None,
    remove: Annotated[
        str | None, typer.Option("--remove", metavar="ID", help="Send from this number no longer.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change the numbers that a campaign is sent from, also while it runs.

    \b
    Example:
      tidegate campaign number reminder --add 106540352242923
      tidegate campaign number reminder --remove 106540352242922
    """
    act(ctx, as_json, lambda commands: commands.change_numbers(name, add, remove))
