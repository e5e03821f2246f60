"""tidegate receive: webhook receivers alone, beside the engines."""

from typing import Annotated

import typer

from engine.cli.session import settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("receive")(receive)


def receive(
    ctx: typer.Context,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, help="Processes that share the address.")
    ] = 2,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply what is stored here, too; else the engines do.")
    ] = False,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="HOST:PORT", help="Webhooks and health.")
    ] = None,
) -> None:
    """Take webhooks in processes of their own, so that a storm of them costs the senders nothing.

    Engines on the same database apply what is stored here within a second; run them with --no-webhook, or on
    another address. Ends with 1 when a process dies, after the others have finished.

    \b
    Example:
      tidegate receive --workers 4 --listen 0.0.0.0:8080
    """
    from engine.config import ConfigError, refuse_open_doors
    from engine.receive import run_receivers

    config = settings(ctx, listen=listen)
    if not config.app_secret:
        raise ConfigError(
            "TIDEGATE_APP_SECRET is not set, so no webhook could be trusted: set it to the app's secret."
        )
    refuse_open_doors(config, webhook=True)
    raise typer.Exit(run_receivers(config, workers, apply=apply))
