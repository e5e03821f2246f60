"""tidegate pause-all, resume-all"""

from typing import Annotated

import typer

from engine.cli.session import Json, act


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("pause-all")(pause_all)
    app.command("resume-all")(resume_all)


def pause_all(
    ctx: typer.Context,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the others.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Stop every number that is going.

    \b
    Example:
      tidegate pause-all --reason "wrong template went out"
    """
    act(ctx, as_json, lambda commands: commands.pause_all(reason))


def resume_all(ctx: typer.Context, as_json: Json = False) -> None:
    """Lift exactly what pause-all stopped: a number that a person paused by itself stays paused.

    \b
    Example:
      tidegate resume-all
    """
    act(ctx, as_json, lambda commands: commands.resume_all())
