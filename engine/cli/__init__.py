"""The commands of `tidegate`. Each module holds one group; what takes time to import is imported when it is used.

root      the top: global flags, errors as one sentence, exit codes
session   what commands share: settings, the database, what is printed
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.cli import (
    account,
    audience,
    campaign,
    check,
    create,
    everything,
    export,
    hold,
    number,
    preview,
    prove,
    receive,
    report,
    rows,
    run,
    schema,
    steering,
    suppress,
)
from engine.cli.root import new_app, root

if TYPE_CHECKING:
    from engine.config import Config, RunOptions

__all__ = ["app", "open_console", "run_command"]

open_console: "Callable[[Config, RunOptions], int] | None" = None
"""Set by the console's entry point. Without it `run` knows only --no-ui: the engine never imports a screen."""

app = new_app(root)
check.register(app)
schema.register(app)
app.add_typer(number.group, name="number")
app.add_typer(account.group, name="account")
app.add_typer(campaign.group, name="campaign")
create.register(campaign.group)
preview.register(campaign.group)
steering.register(campaign.group)
report.register(campaign.group)
audience.register(app)
app.add_typer(hold.group, name="hold")
app.add_typer(suppress.group, name="suppress")
run.register(app)
receive.register(app)
everything.register(app)
prove.register(app)
app.add_typer(rows.group, name="rows")
export.register(rows.group)


def run_command() -> None:
    """`tidegate …` as the process's whole work; ends the process with the exit code."""
    app(prog_name="tidegate")
