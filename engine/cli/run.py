"""tidegate run, attach, simulate, demo: the commands that stay."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.cli.attach import Mouse, Refresh, attach
from engine.cli.session import settings
from engine.cli.values import seconds

JsonLog = Annotated[
    bool, typer.Option("--json", help="Without a screen: log lines as JSON also on a terminal, as in a pipe.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("run")(run)
    app.command("attach")(attach)
    app.command("simulate")(simulate)
    app.command("demo")(demo)


def run(
    ctx: typer.Context,
    no_ui: Annotated[bool, typer.Option("--no-ui", help="No screen: log lines.")] = False,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", help="This node's name (default: the host's).")
    ] = None,
    until_finished: Annotated[
        bool, typer.Option("--until-finished", help="End when nothing is running or scheduled.")
    ] = False,
    linger: Annotated[
        Any, typer.Option("--linger", metavar="TIME", parser=seconds, help="Wait for late statuses.")
    ] = "30s",
    patience: Annotated[
        Any,
        typer.Option("--patience", metavar="TIME", parser=seconds, help="Only holds for so long: exit 4."),
    ] = "10m",
    no_webhook: Annotated[
        bool, typer.Option("--no-webhook", help="Take no webhooks here: no app secret is needed.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Watch only: no act is taken from this screen.")
    ] = False,
    grace: Annotated[
        str | None, typer.Option("--grace", metavar="TIME", help="What requests in flight get at the end.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="HOST:PORT", help="Webhooks, gateway, health.")
    ] = None,
    metrics_listen: Annotated[str | None, typer.Option("--metrics-listen", metavar="HOST:PORT")] = None,
    advertise: Annotated[
        str | None, typer.Option("--advertise", metavar="URL", help="How other nodes reach this one.")
    ] = None,
    as_json: JsonLog = False,
    mouse: Mouse = False,
    refresh: Refresh = None,
) -> None:
    """The engine, with the console around it or by itself.

    \b
    Example:
      tidegate run
      tidegate run --no-ui --until-finished --linger 30s
    """
    from engine import cli
    from engine.config import ConfigError, RunOptions

    config = settings(
        ctx, node=node, grace=grace, listen=listen, metrics_listen=metrics_listen, advertise=advertise
    )
    if not config.app_secret and not no_webhook:
        raise ConfigError(
            "TIDEGATE_APP_SECRET is not set, so no webhook could be trusted: set it, or run with --no-webhook."
        )
    options = RunOptions(
        no_ui=no_ui,
        until_finished=until_finished,
        linger=linger,
        patience=patience,
        no_webhook=no_webhook,
        read_only=read_only,
        json_log=as_json,
        mouse=mouse,
        refresh_hz=refresh,
    )
    if no_ui:
        from engine.app import run_headless

        code = run_headless(config, options)
    elif cli.open_console is None:
        raise ConfigError("This program has no screen: run with --no-ui.")
    else:
        code = cli.open_console(config, options)
    raise typer.Exit(code)


def simulate(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 9090,
    scenario: Annotated[
        Path | None, typer.Option("--scenario", metavar="FILE", help="Limits, latency, faults (JSON).")
    ] = None,
) -> None:
    """Answer like Meta's Cloud API on loopback, to try sending without sending.

    It takes the access token "simulator-token" (TIDEGATE_SIMULATOR_TOKEN), signs webhooks with TIDEGATE_APP_SECRET
    ("simulator-secret") and posts them to TIDEGATE_SIMULATOR_WEBHOOK (http://127.0.0.1:8080/webhook).

    \b
    Example:
      tidegate simulate --port 9090 --scenario storm.json
    """
    from engine import simulator

    raise typer.Exit(simulator.run(port=port, scenario=scenario, exit_with_stdin=False))


def demo(
    no_ui: Annotated[bool, typer.Option("--no-ui", help="No screen: log lines.")] = False,
    drill: Annotated[
        str | None, typer.Option("--drill", metavar="NAME", help="A scripted bad day, for training.")
    ] = None,
    as_json: JsonLog = False,
    list_: Annotated[bool, typer.Option("--list", help="The drills, and what each teaches.")] = False,
    mouse: Mouse = False,
    refresh: Refresh = None,
) -> None:
    """Embedded Postgres, the simulator and a campaign, in a directory of its own; uses none of your settings.

    \b
    Example:
      tidegate demo
      tidegate demo --drill throttle
    """
    from engine import cli, drills
    from engine.demo import options_for, run_demo

    if list_:
        print(drills.listing())
        return
    options = options_for(no_ui, cli.open_console, mouse=mouse, refresh_hz=refresh)
    options = replace(options, json_log=as_json)
    if drill is not None:
        raise typer.Exit(drills.run_drill(drill, options, cli.open_console))
    raise typer.Exit(run_demo(options, cli.open_console))
