"""tidegate campaign …"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.campaign_file import content_of_file, read_campaign_file
from engine.cli.root import new_group
from engine.cli.session import Json, Name, act, database, print_json, print_table, settings
from engine.cli.values import columns, moment, seconds, share

if TYPE_CHECKING:
    from engine.postgres.campaigns import CampaignReport

group = new_group("Campaigns: one template to one audience.")

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the others.")]


@group.command()
def create(
    ctx: typer.Context,
    name: Name,
    number: Annotated[
        list[str],
        typer.Option("--number", metavar="ID", help="A number to send from; repeat it for several."),
    ],
    template: Annotated[str, typer.Option("--template", help="The approved template's name.")],
    language: Annotated[str, typer.Option("--language", metavar="CODE", help="Such as pt_BR.")],
    body: Annotated[
        str | None,
        typer.Option(
            "--body", metavar="COLUMNS", help="Columns for the body's variables, in order: name,date."
        ),
    ] = None,
    category: Annotated[
        str, typer.Option("--category", metavar="marketing|utility|authentication", help="As approved.")
    ] = "utility",
    priority: Annotated[int, typer.Option("--priority", help="Higher goes first on a shared number.")] = 0,
    deadline: Annotated[
        Any,
        typer.Option("--deadline", metavar="ISO8601", parser=moment, help="Rows not sent by then expire."),
    ] = None,
    unknown: Annotated[
        str,
        typer.Option(
            "--unknown", metavar="hold|resend|assume_sent", help="What becomes of rows whose answer was lost."
        ),
    ] = "hold",
    unknown_after: Annotated[
        Any, typer.Option("--unknown-after", metavar="TIME", parser=seconds, help="When, after the try.")
    ] = "30m",
    max_attempts: Annotated[int, typer.Option("--max-attempts", help="Definite answers per row.")] = 8,
    try_budget: Annotated[
        int | None, typer.Option("--try-budget", metavar="N", help="Requests in all (default: 3 per row).")
    ] = None,
    max_failed: Annotated[
        Any,
        typer.Option(
            "--max-failed", metavar="SHARE", parser=share, help="More failures: a run ends with code 3."
        ),
    ] = "100%",
    file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            callback=read_campaign_file,
            is_eager=True,
            help="A TOML file with any of these, and header, body and buttons; flags overrule it.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """A new campaign, in state draft: import its audience, then start it.

    \b
    Example:
      tidegate campaign create reminder --number 106540352242922 --template reminder_v2 \\
          --language pt_BR --body name,date
      tidegate campaign create ticket --from ticket.toml
    \b
    ticket.toml, where a value is a column of the audience or a text for everybody:
      number = ["106540352242922"]
      template = "ticket_v1"
      language = "pt_BR"
      body = [{ column = "name", name = "first_name" }, { text = "12 March", name = "day" }]
    \b
      [header]                          # text, image, video or document
      type = "document"
      link = { column = "ticket_url" }  # or id = "…" of an upload
      filename = "ticket.pdf"
    \b
      [[buttons]]                       # url, quick_reply or copy_code
      type = "url"
      index = 0
      column = "code"
    """
    from engine.postgres.campaigns import Draft

    draft = Draft(
        name=name,
        numbers=tuple(dict.fromkeys(number)),
        template=template,
        language=language,
        body=columns(body),
        content=content_of_file(ctx) if file else None,
        category=category,
        priority=priority,
        deadline=deadline,
        unknown_policy=unknown,
        unknown_after=unknown_after,
        max_attempts=max_attempts,
        try_budget=try_budget,
        max_failed=max_failed,
    )
    act(ctx, as_json, lambda commands: commands.create_campaign(draft))


@group.command()
def start(
    ctx: typer.Context,
    name: Name,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="You have looked: many equal numbers in a file are right.")
    ] = False,
    as_json: Json = False,
) -> None:
    """From draft to running.

    \b
    Example:
      tidegate campaign start reminder
    """
    act(ctx, as_json, lambda commands: commands.start_campaign(name, confirm))


@group.command()
def pause(ctx: typer.Context, name: Name, reason: Reason = None, as_json: Json = False) -> None:
    """No request of this campaign starts until it is resumed.

    \b
    Example:
      tidegate campaign pause reminder --reason "wrong date in the text"
    """
    act(ctx, as_json, lambda commands: commands.pause_campaign(name, reason))


@group.command()
def resume(ctx: typer.Context, name: Name, as_json: Json = False) -> None:
    """From paused, or from held once you have looked, to running.

    \b
    Example:
      tidegate campaign resume reminder
    """
    act(ctx, as_json, lambda commands: commands.resume_campaign(name))


@group.command()
def cancel(ctx: typer.Context, name: Name, reason: Reason = None, as_json: Json = False) -> None:
    """End it: rows that have not left are cancelled; rows under way stay open until they are settled.

    \b
    Example:
      tidegate campaign cancel reminder --reason "sent by mistake"
    """
    act(ctx, as_json, lambda commands: commands.cancel_campaign(name, reason))


@group.command("list")
def list_(ctx: typer.Context, as_json: Json = False) -> None:
    """All campaigns with their books.

    \b
    Example:
      tidegate campaign list
    """
    config = settings(ctx)

    async def once() -> "list[CampaignReport]":
        async with database(config) as (_, commands):
            return await commands.list_campaigns()

    from engine.commands.campaign import report_json

    reports = asyncio.run(once())
    if as_json:
        print_json([report_json(report) for report in reports])
        return
    print_table(
        ["NAME", "STATE", "PLANNED", "PENDING", "TAKEN", "FAILED", "OPEN", "REASON"],
        [_summary(report) for report in reports],
    )


@group.command()
def show(ctx: typer.Context, name: Name, as_json: Json = False) -> None:
    """One campaign with its books, errors and refusals.

    \b
    Example:
      tidegate campaign show reminder --json
    """
    config = settings(ctx)

    async def once() -> "CampaignReport":
        async with database(config) as (_, commands):
            return await commands.show_campaign(name)

    from engine.commands.campaign import report_json

    shown = report_json(asyncio.run(once()))
    if as_json:
        print_json(shown)
        return
    _print_report(shown)


def _summary(report: "CampaignReport") -> list[object]:
    from engine.domain.recipient import OPEN, State

    counts, row = report.counts, report.campaign
    taken = sum(counts[state] for state in (State.SENT, State.DELIVERED, State.READ))
    open_ = sum(counts[state] for state in OPEN)
    return [
        row.name, row.state, row.planned, counts[State.PENDING], taken, counts[State.FAILED], open_, row.reason
    ]  # fmt: skip


def _print_report(shown: dict[str, Any]) -> None:
    print(
        f"{shown['name']}  {shown['state'].upper()}" + (f"  ({shown['reason']})" if shown["reason"] else "")
    )
    print(f"numbers {', '.join(shown['numbers']) or '-'}")
    print(
        f"started {shown['started_at'] or '-'}  finished {shown['finished_at'] or '-'}  eta {shown['eta'] or '-'}"
    )
    print()
    print_table(["STATE", "ROWS"], [*shown["counts"].items(), ("planned", shown["planned"])])
    print()
    counters = ("accepted", "tries", "attempts", "possible_duplicates", "assumed_sent")
    print_table(["COUNTER", "N"], [(name.replace("_", " "), shown[name]) for name in counters])
    for heading in ("errors", "refusals"):
        if shown[heading]:
            print()
            print_table(
                [heading.upper(), "SCOPE", "N", "EXAMPLE", "WHAT IT MEANS"],
                [
                    (str(e["code"]), e["scope"], e["count"], _example(e), f"{e['title']}. {e['advice']}")
                    for e in shown[heading]
                ],
            )


def _example(line: dict[str, Any]) -> str | None:
    example = line["example"]
    return f"row {example['row']}, {example['phone']}" if example else None
