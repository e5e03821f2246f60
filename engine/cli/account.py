"""tidegate account …"""

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.root import new_group
from engine.cli.session import Json, act, database, print_json, print_table, run_once, settings

if TYPE_CHECKING:
    from engine.postgres.reach import Account

group = new_group("WhatsApp business accounts: how many people they may reach.")


@group.command()
def limit(
    ctx: typer.Context,
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Its WABA id.", show_default=False)],
    people: Annotated[
        str,
        typer.Argument(metavar="N|none", help="Different people within any 24 hours.", show_default=False),
    ],
    as_json: Json = False,
) -> None:
    """The messaging limit that Meta shows for the portfolio: the account waits before it is reached.

    \b
    Example:
      tidegate account limit WABA1 100000
      tidegate account limit WABA1 none
    """
    if people != "none" and not people.isdecimal():
        raise typer.BadParameter(f"{people!r} is no number of people: write digits alone, or none")
    wanted = None if people == "none" else int(people)
    act(ctx, as_json, lambda commands: commands.limit_account(account, wanted))


@group.command("list")
def list_(ctx: typer.Context, as_json: Json = False) -> None:
    """All accounts with their limits, and whom they have reached within 24 hours.

    \b
    Example:
      tidegate account list
    """
    config = settings(ctx)

    async def once() -> "list[Account]":
        async with database(config) as (_, commands):
            return await commands.list_accounts()

    found = [one.as_json() for one in run_once(once())]
    if as_json:
        print_json(found)
        return
    print_table(
        ["ACCOUNT", "NUMBERS", "RATE", "LIMIT", "REACHED 24 H"], [list(one.values()) for one in found]
    )
