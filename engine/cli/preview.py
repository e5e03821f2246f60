"""tidegate campaign preview"""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.session import Json, Name, database, print_json, run_once, settings
from engine.domain.count import counted

if TYPE_CHECKING:
    from engine.commands.preview import AudiencePreview, RequestPreview
    from engine.config import Config


def register(group: typer.Typer) -> None:
    """Add the command to the group of campaigns."""
    group.command()(preview)


def preview(
    ctx: typer.Context,
    name: Name,
    row: Annotated[int | None, typer.Option("--row", metavar="ID", help="Of this row.")] = None,
    line: Annotated[
        int | None, typer.Option("--line", metavar="N", help="Of the row in this line of its file.")
    ] = None,
    audience: Annotated[bool, typer.Option("--audience", help="A dry run over everybody instead.")] = False,
    show_phones: Annotated[bool, typer.Option("--show-phones", help="The whole phone number.")] = False,
    as_json: Json = False,
) -> None:
    """What would go out: the exact request of one row (the first, unless told), or all of the audience in figures.

    \b
    Example:
      tidegate campaign preview reminder --line 2
      tidegate campaign preview reminder --audience
    """
    if row is not None and line is not None:
        raise typer.BadParameter("--row and --line name a row each: give one of them")
    if audience and (row is not None or line is not None):
        raise typer.BadParameter("--audience is about everybody: leave out --row and --line")
    config = settings(ctx)
    if audience:
        _show_audience(run_once(_audience(config, name)), as_json)
    else:
        _show_request(run_once(_request(config, name, row, line, show_phones)), config.api_url, as_json)


async def _request(
    config: "Config", name: str, row: int | None, line: int | None, show_phones: bool
) -> "RequestPreview":
    async with database(config) as (_, commands):
        return await commands.preview_request(name, row, line, show_phone=show_phones)


async def _audience(config: "Config", name: str) -> "AudiencePreview":
    async with database(config) as (_, commands):
        return await commands.preview_audience(name)


def _show_request(found: "RequestPreview", api_url: str, as_json: bool) -> None:
    url = f"{api_url.rstrip('/')}/{found.number or 'NUMBER'}/messages"
    if as_json:
        told = {"row": found.row, "line": found.line, "state": found.state, "aside": found.aside or None}
        print_json({**told, "method": "POST", "url": url, "body": found.body})
        return
    aside = ", kept aside" if found.aside and found.state == "pending" else ""
    print(f"row {found.row}, line {found.line}, {found.state}{aside}")
    print(f"POST {url}")
    print(json.dumps(found.body, ensure_ascii=False, indent=2))


def _show_audience(found: "AudiencePreview", as_json: bool) -> None:
    if as_json:
        print_json(_audience_json(found))
        return
    imports = found.imports
    print(f"{found.campaign}  {found.state.upper()}  {found.planned:,} planned")
    print(
        f"  imported from {counted(imports.files, 'file')}: {counted(imports.refused, 'line')} refused, "
        f"{imports.folded:,} folded, "
        f"{imports.already:,} there already, {imports.blank:,} blank"
    )
    for n, what in (
        (found.would_send, "would be sent"),
        (found.suppressed, "suppressed: they do not want it"),
        (found.expired, "past their deadline: they expire"),
        (found.aside, f"kept aside as likely duplicates: tidegate rows release --campaign {found.campaign}"),
        (found.held, "held"),
    ):
        print(f"  {n:>12,}  {what}")
    if found.quiet:
        print(f"It is quiet now where {found.quiet:,} of them live: they wait for the morning.")
    if found.reach_limit is not None:
        print(
            f"The account may reach {found.reach_limit:,} people within 24 h, and has reached {found.reached:,}."
        )
        if (beyond := found.would_send - found.late - (found.reach_limit - found.reached)) > 0:
            print(f"At least {beyond:,} of them wait until people of the last 24 h do not count any more.")
    if found.never_delivered:
        print(
            f"Of those that would be sent, {found.never_delivered:,} are US numbers, and Meta delivers no marketing "
            "there: each costs a request and fails."
        )
    if found.late:
        print(f"At this rate {found.late:,} of them miss their deadline, and expire instead.")
    for doubt in found.doubts:
        print(f"The start asks for --confirm: {doubt}.")
    if found.eta is None or found.seconds is None:
        print("No number of the campaign may send now: there is no end in sight.")
    else:
        lasts, until = _lasts(found.seconds), found.eta.isoformat(timespec="seconds")
        print(f"At {found.rate:g}/s it takes {lasts}: until {until}, if it began now.")


def _lasts(seconds: float) -> str:
    """Roughly, for people: `2 h 5 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _audience_json(found: "AudiencePreview") -> dict[str, object]:
    return {
        "campaign": found.campaign,
        "state": found.state,
        "planned": found.planned,
        "waiting": found.waiting,
        "would_send": found.would_send,
        "suppressed": found.suppressed,
        "expired": found.expired,
        "aside": found.aside,
        "held": found.held,
        "late": found.late,
        "quiet": found.quiet,
        "reach_limit": found.reach_limit,
        "reached": found.reached,
        "marketing_to_us": found.never_delivered,
        "refused": found.imports.refused,
        "folded": found.imports.folded,
        "already": found.imports.already,
        "blank": found.imports.blank,
        "doubts": list(found.doubts),
        "rate": found.rate,
        "seconds": found.seconds,
        "eta": found.eta.isoformat(timespec="seconds") if found.eta else None,
        "deadline": found.deadline.isoformat() if found.deadline else None,
    }
