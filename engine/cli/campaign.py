"""tidegate campaign …"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.report import print_controls
from engine.cli.root import new_group
from engine.cli.session import Json, Name, act, database, print_json, print_table, run_once, settings
from engine.domain.count import counted
from engine.domain.heard import engines

if TYPE_CHECKING:
    from engine.domain.heard import Heard
    from engine.postgres.campaigns import CampaignReport

group = new_group("Campaigns: one template to one audience.")

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the others.")]


@group.command()
def start(
    ctx: typer.Context,
    name: Name,
    confirm: Annotated[
        bool,
        typer.Option("--confirm", help="You have looked: many equal numbers, or a late start, are right."),
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
def cancel(
    ctx: typer.Context,
    name: Name,
    reason: Reason = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask. Only a terminal is asked, a script never.")
    ] = False,
    as_json: Json = False,
) -> None:
    """End it for ever: rows that have not left are cancelled; rows under way stay open until they are settled.

    At a terminal it says how many rows that are, and asks.

    \b
    Example:
      tidegate campaign cancel reminder --reason "sent by mistake"
    """
    if not yes and not as_json and at_terminal():
        _ask_to_cancel(ctx, name)
    act(ctx, as_json, lambda commands: commands.cancel_campaign(name, reason))


def at_terminal() -> bool:
    """Whether a person can read a question here, and answer it."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask_to_cancel(ctx: typer.Context, name: str) -> None:
    """Raises Refused when the answer is no. What has ended already needs no question."""
    from engine.commands import Refused
    from engine.domain.recipient import State

    report = _look(ctx, name)
    if report.campaign.state in ("finished", "cancelled"):
        return
    ends = report.counts[State.PENDING] + report.counts[State.CLAIMED]
    under_way = sum(report.counts[state] for state in (State.SENDING, State.UNKNOWN, State.ASSESSING))
    print(
        f"Campaign {name} is {report.campaign.word}: {counted(ends, 'row')} will never be sent, "
        f"{under_way:,} under way stay open until settled. This cannot be undone."
    )
    if not typer.confirm(f"Cancel {name}?"):
        raise Refused(f"Nothing is changed: campaign {name} is as it was.")


def _look(ctx: typer.Context, name: str) -> "CampaignReport":
    config = settings(ctx)

    async def once() -> "CampaignReport":
        async with database(config) as (_, commands):
            return await commands.show_campaign(name)

    return run_once(once())


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

    reports = run_once(once())
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

    async def once() -> "tuple[CampaignReport, list[Heard]]":
        async with database(config) as (_, commands):
            return await commands.show_campaign(name), await commands.heard_nodes()

    from engine.commands.campaign import report_json

    found, heard = run_once(once())
    shown = report_json(found)
    if as_json:
        print_json(shown)
        return
    _print_report(shown, engines(heard))
    if found.controls:
        print()
        print_controls(found.controls)


def _summary(report: "CampaignReport") -> list[object]:
    from engine.domain.recipient import OPEN, State

    counts, row = report.counts, report.campaign
    taken = sum(counts[state] for state in (State.SENT, State.DELIVERED, State.READ))
    open_ = sum(counts[state] for state in OPEN)
    return [
        row.name, row.word, row.planned, counts[State.PENDING], taken, counts[State.FAILED], open_, row.reason
    ]  # fmt: skip


def _print_report(shown: dict[str, Any], running: str) -> None:
    print(
        f"{shown['name']}  {shown['state'].upper()}" + (f"  ({shown['reason']})" if shown["reason"] else "")
    )
    print(f"numbers {', '.join(shown['numbers']) or '-'}")
    print(
        f"started {shown['started_at'] or '-'}  finished {shown['finished_at'] or '-'}  eta {shown['eta'] or '-'}"
    )
    if shown["start_at"] or shown["deadline"]:
        print(f"starts by itself {shown['start_at'] or '-'}  deadline {shown['deadline'] or '-'}")
    if shown["state"] not in ("finished", "cancelled"):
        print(running)
    if shown["canary"]:
        print(f"canary {shown['canary']}")
    if shown["late"]:
        rows = counted(shown["late"], "row")
        print(f"At this rate {rows} will miss the deadline, and expire instead of going out late.")
    for wait in shown["waits"]:
        print(f"waits for {wait['text']}")
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
