"""tidegate hold list, lift: what the engine has stopped, and letting it go on."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.root import new_group
from engine.cli.session import Json, act, database, print_json, print_table, run_once, settings

if TYPE_CHECKING:
    from datetime import datetime

    from engine.postgres.breakers import Breaker

group = new_group(
    "Holds: what an error has stopped (number, account, credential, template, country), and why."
)


@group.command("list")
def list_(ctx: typer.Context, as_json: Json = False) -> None:
    """All that is stopped right now, with the reason and what to do.

    \b
    Example:
      tidegate hold list --json
    """
    config = settings(ctx)

    async def once() -> "list[Breaker]":
        async with database(config) as (_, commands):
            return await commands.list_holds()

    holds = run_once(once())
    if as_json:
        print_json([asdict(hold) for hold in holds])
    elif not holds:
        print("Nothing is held.")
    else:
        print_table(
            ["ID", "SCOPE", "WHAT", "STATE", "CODE", "SINCE", "UNTIL", "REASON"],
            [
                (
                    h.breaker_id,
                    h.scope.value,
                    h.key,
                    h.state,
                    h.code,
                    _time(h.tripped_at),
                    _time(h.until),
                    h.reason,
                )
                for h in holds
            ],
        )


@group.command("lift")
def lift(
    ctx: typer.Context,
    hold: Annotated[int, typer.Argument(metavar="ID", help="From `tidegate hold list`.", show_default=False)],
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="For the journal.")] = None,
    as_json: Json = False,
) -> None:
    """Let it go on: mend the cause first, for the next refusal holds it again.

    \b
    Example:
      tidegate hold lift 3 --reason "payment method mended"
    """
    act(ctx, as_json, lambda commands: commands.lift_hold(hold, reason))


def _time(at: "datetime | None") -> str | None:
    return f"{at:%Y-%m-%d %H:%M:%S}Z" if at is not None else None
