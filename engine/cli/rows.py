"""tidegate rows …"""

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.root import new_group
from engine.cli.session import Json, act, database, print_json, print_table, run_once, settings

if TYPE_CHECKING:
    from engine.postgres.rows import Row, Timeline

group = new_group("Single rows: who stands where, and why.")


@group.command("list")
def list_(
    ctx: typer.Context,
    campaign: Annotated[str, typer.Option("--campaign", metavar="NAME", help="Whose rows.")],
    state: Annotated[
        str | None, typer.Option("--state", help="Only these: pending, sending, failed, …")
    ] = None,
    code: Annotated[int | None, typer.Option("--code", help="Only with this error code.")] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="At most so many.")] = 100,
    after: Annotated[int, typer.Option("--after", metavar="ID", help="Go on after this row.")] = 0,
    twins: Annotated[
        bool, typer.Option("--twins", help="Only those kept aside as likely duplicates.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Rows of a campaign, by state and code; phone numbers are masked.

    \b
    Example:
      tidegate rows list --campaign reminder --state failed --code 131026
    """
    from engine.domain.recipient import State
    from engine.postgres import rows

    wanted = next((s for s in State if s.word == state), None)
    if state is not None and wanted is None:
        raise typer.BadParameter(f"{state!r} is no state: one of {', '.join(s.word for s in State)}")
    config = settings(ctx)

    async def once() -> "list[Row]":
        async with database(config) as (pool, commands):
            await commands.show_campaign(campaign)  # a misspelt name is no empty answer
            return await rows.listing(pool, campaign, wanted, code, after, most, "twins" if twins else None)

    found = [row.as_json() for row in run_once(once())]
    if as_json:
        print_json(found)
        return
    shown = ("id", "phone", "state", "number", "tries", "attempts", "code", "reason", "moved_at")
    print_table([n.upper() for n in shown], [[_text(n, row[n]) for n in shown] for row in found])


@group.command()
def show(
    ctx: typer.Context,
    row: Annotated[int, typer.Argument(metavar="ID", help="The row's id.", show_default=False)],
    as_json: Json = False,
) -> None:
    """One row with every try, its statuses by the provider's clock and by ours, and who did what around it.

    \b
    Example:
      tidegate rows show 1204118
    """
    from engine.commands import Refused
    from engine.postgres import rows

    config = settings(ctx)

    async def once() -> "Timeline | None":
        async with database(config) as (pool, _):
            return await rows.timeline(pool, row)

    found = run_once(once())
    if found is None:
        raise Refused(f"There is no row {row}: `tidegate rows list --campaign NAME` shows those that exist.")
    if as_json:
        print_json(found.as_json())
        return
    for name, value in found.row.as_json().items():
        print(f"{name:16} {'-' if value is None else value}")
    print()
    shown = ("n", "outcome", "sent_at", "answered_at", "number", "code", "wamid", "raw")
    print_table(
        [n.upper() for n in shown], [[_text(n, line[n]) for n in shown] for line in found.tries_json()]
    )
    for names, lines in (
        (("n", "status", "said_at", "received_at", "code"), found.statuses_json()),
        (
            ("at", "author", "origin", "act", "target", "before", "after", "reason", "result"),
            found.acts_json(),
        ),
    ):
        if lines:
            print()
            print_table([n.upper() for n in names], [[_text(n, line[n]) for n in names] for line in lines])


Campaign = Annotated[str, typer.Option("--campaign", metavar="NAME", help="Whose rows.")]
Ids = Annotated[
    list[int] | None, typer.Option("--row", metavar="ID", help="Only this row; repeat it for several.")
]


@group.command()
def release(ctx: typer.Context, campaign: Campaign, row: Ids = None, as_json: Json = False) -> None:
    """Send what was kept aside as likely duplicates, like all other rows.

    \b
    Example:
      tidegate rows list --campaign reminder --twins
      tidegate rows release --campaign reminder --row 1204118
    """
    act(ctx, as_json, lambda commands: commands.release_rows(campaign, row))


@group.command()
def discard(ctx: typer.Context, campaign: Campaign, row: Ids = None, as_json: Json = False) -> None:
    """Cancel what was kept aside as likely duplicates: they are the same people.

    \b
    Example:
      tidegate rows discard --campaign reminder
    """
    act(ctx, as_json, lambda commands: commands.discard_rows(campaign, row))


def _text(name: str, value: object) -> object:
    return str(value) if name in ("id", "code") and value is not None else value
