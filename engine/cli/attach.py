"""tidegate attach: the console over the database, for nodes that run without a screen."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.session import settings

if TYPE_CHECKING:
    from engine.config import Config, RunOptions

open_attached: "Callable[[Config, RunOptions], int] | None" = None
"""Set by the console's entry point: the engine never imports a screen."""

Mouse = Annotated[
    bool, typer.Option("--mouse", help="The screen takes clicks (the terminal selects no text then).")
]
Refresh = Annotated[
    float | None,
    typer.Option(
        "--refresh",
        metavar="HZ",
        min=0.1,
        max=10,
        help="Paints a second (default: 1, on a large terminal 2).",
    ),
]


def attach(
    ctx: typer.Context,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Watch only: every act is refused, not only hidden.")
    ] = False,
    mouse: Mouse = False,
    refresh: Refresh = None,
) -> None:
    """The same screens as `run`, for all nodes on the database; q ends the viewer, never a node.

    \b
    Example:
      tidegate attach
      tidegate attach --read-only
    """
    from engine.config import ConfigError, RunOptions

    if open_attached is None:
        raise ConfigError(
            "This program has no screen: `tidegate campaign list` and the metrics show the same."
        )
    options = RunOptions(read_only=read_only, mouse=mouse, refresh_hz=refresh)
    raise typer.Exit(open_attached(settings(ctx), options))
