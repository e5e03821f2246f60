"""tidegate rows export"""

import csv
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from engine.cli.session import Json, database, print_json, run_once, settings
from engine.domain.count import counted

if TYPE_CHECKING:
    from engine.config import Config
    from engine.domain.recipient import State

COLUMNS = (
    "id", "line", "phone", "state", "number", "tries", "attempts", "code", "reason", "next_attempt_at", "moved_at",
)  # fmt: skip


def register(group: typer.Typer) -> None:
    """Add the command to the group of rows."""
    group.command()(export)


def export(
    ctx: typer.Context,
    campaign: Annotated[str, typer.Option("--campaign", metavar="NAME", help="Whose rows.")],
    output: Annotated[
        Path, typer.Option("--output", metavar="FILE", help="A new CSV file, readable by you alone.")
    ],
    state: Annotated[
        str | None, typer.Option("--state", help="Only these: pending, failed, delivered, …")
    ] = None,
    show_phones: Annotated[
        bool, typer.Option("--show-phones", help="Whole phone numbers, unmasked.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Rows of a campaign into a CSV file, with their state and why.

    \b
    Example:
      tidegate rows export --campaign reminder --state failed --output failed.csv
    """
    from engine.domain.recipient import State

    wanted = next((s for s in State if s.word == state), None)
    if state is not None and wanted is None:
        raise typer.BadParameter(f"{state!r} is no state: one of {', '.join(s.word for s in State)}")
    if output.exists():
        raise typer.BadParameter(f"{output} is there already: name a new file with --output")
    if not output.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {output.parent} for the file")
    written = run_once(_export(settings(ctx), campaign, wanted, output, show_phones))
    if as_json:
        print_json({"campaign": campaign, "rows": written, "file": str(output)})
        return
    print(f"{output} holds {counted(written, 'row')} of campaign {campaign}.")


@contextmanager
def _placed(output: Path) -> Iterator[TextIO]:
    """Written beside and then put in place, so that a file is whole or not there; mode 0600."""
    descriptor, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "w", newline="", encoding="utf-8") as out:
            yield out
        beside.replace(output)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


async def _export(
    config: "Config", campaign: str, state: "State | None", output: Path, show_phones: bool
) -> int:
    from engine.domain.errors import describe
    from engine.domain.message import masked
    from engine.postgres import exports

    written = 0
    async with database(config) as (pool, commands):
        found = await commands.show_campaign(campaign)
        with _placed(output) as out:
            table = csv.writer(out)
            table.writerow(COLUMNS)
            async for row in exports.rows(pool, found.campaign.campaign_id, state):
                phone = row.phone if show_phones else masked(row.phone)
                reason = describe(row.code).title if row.code is not None else None
                table.writerow(
                    (row.id, row.line, phone, row.state.word, row.number, row.tries, row.attempts, row.code,
                     reason, _moment(row.next_attempt_at), _moment(row.moved_at))
                )  # fmt: skip
                written += 1
    return written


def _moment(at: object) -> str | None:
    from datetime import datetime

    return at.isoformat() if isinstance(at, datetime) else None
