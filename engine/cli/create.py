"""tidegate campaign create"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.cli.campaign_file import content_of_file, read_campaign_file
from engine.cli.session import Json, Name, act
from engine.cli.values import canary, columns, moment, pair, quiet_hours, seconds, share, zone
from engine.domain.closing import DEFAULT_MAX_FAILED
from engine.domain.control import Control as ControlPhones

Numbers = Annotated[
    list[str], typer.Option("--number", metavar="ID", help="A number to send from; repeat it for several.")
]
Template = Annotated[str, typer.Option("--template", help="The approved template's name.")]
Language = Annotated[str, typer.Option("--language", metavar="CODE", help="Such as pt_BR.")]
Body = Annotated[
    str | None,
    typer.Option("--body", metavar="COLUMNS", help="Columns for the body's variables, in order: name,date."),
]
Category = Annotated[
    str, typer.Option("--category", metavar="marketing|utility|authentication", help="As approved.")
]
Priority = Annotated[int, typer.Option("--priority", help="Higher goes first on a shared number.")]
Deadline = Annotated[
    Any, typer.Option("--deadline", metavar="ISO8601", parser=moment, help="Rows not sent by then expire.")
]
StartAt = Annotated[
    Any,
    typer.Option(
        "--start-at",
        metavar="ISO8601",
        parser=moment,
        help="It starts by itself then, unless that is overdue.",
    ),
]
QuietHours = Annotated[
    Any,
    typer.Option("--quiet", metavar="FROM-TO", parser=quiet_hours, help="Nothing leaves then: 21:00-08:00."),
]
Zone = Annotated[
    Any,
    typer.Option(
        "--timezone", metavar="ZONE|recipient", parser=zone, help="Whose clocks tell the quiet hours."
    ),
]
Unknown = Annotated[
    str,
    typer.Option(
        "--unknown", metavar="hold|resend|assume_sent", help="What becomes of rows whose answer was lost."
    ),
]
UnknownAfter = Annotated[
    Any, typer.Option("--unknown-after", metavar="TIME", parser=seconds, help="When, after the try.")
]
MaxAttempts = Annotated[int, typer.Option("--max-attempts", help="Definite answers per row.")]
TryBudget = Annotated[
    int | None, typer.Option("--try-budget", metavar="N", help="Requests in all (default: 3 per row).")
]
MaxFailed = Annotated[
    Any,
    typer.Option(
        "--max-failed", metavar="SHARE", parser=share, help="More failures: a run ends with code 3."
    ),
]
RetryMarketing = Annotated[
    bool,
    typer.Option("--retry-marketing-limit", help="`campaign retry-failed` takes 131049, too, after 24 h."),
]
First = Annotated[
    Any,
    typer.Option(
        "--canary", metavar="N|X%", parser=canary, help="So many first; all others when these did well."
    ),
]
CanaryMaxFailed = Annotated[
    Any,
    typer.Option(
        "--canary-max-failed", metavar="SHARE", parser=share, help="More failures and stops: it is held."
    ),
]
CanaryWait = Annotated[
    Any,
    typer.Option("--canary-wait", metavar="TIME", parser=seconds, help="For statuses, before it is judged."),
]
Control = Annotated[
    list[str] | None,
    typer.Option("--control", metavar="PHONE", help="One of your own phones, that gets it first; repeat it."),
]
ControlEvery = Annotated[
    Any,
    typer.Option(
        "--control-every", metavar="TIME", parser=seconds, help="And again so often while the campaign runs."
    ),
]
ControlValues = Annotated[
    list[Any] | None,
    typer.Option(
        "--control-values",
        metavar="COLUMN=TEXT",
        parser=pair,
        help="What control phones read there; repeat it.",
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FILE",
        callback=read_campaign_file,
        is_eager=True,
        help="A TOML file with any of these, and header, body and buttons; flags overrule it.",
    ),
]


def register(group: typer.Typer) -> None:
    """Add the command to the group of campaigns."""
    group.command()(create)


def create(
    ctx: typer.Context,
    name: Name,
    number: Numbers,
    template: Template,
    language: Language,
    body: Body = None,
    category: Category = "utility",
    priority: Priority = 0,
    start_at: StartAt = None,
    deadline: Deadline = None,
    quiet: QuietHours = None,
    timezone: Zone = None,
    canary: First = None,
    canary_max_failed: CanaryMaxFailed = "10%",
    canary_wait: CanaryWait = "1m",
    control: Control = None,
    control_every: ControlEvery = None,
    control_values: ControlValues = None,
    unknown: Unknown = "hold",
    unknown_after: UnknownAfter = "30m",
    max_attempts: MaxAttempts = 8,
    try_budget: TryBudget = None,
    max_failed: MaxFailed = f"{DEFAULT_MAX_FAILED:.0%}",
    retry_marketing_limit: RetryMarketing = False,
    file: File = None,
    as_json: Json = False,
) -> None:
    """A new campaign, in state draft: import its audience, then start it.

    \b
    Example:
      tidegate campaign create reminder --number 106540352242922 --template reminder_v2 \\
          --language pt_BR --body name,date
      tidegate campaign create ticket --from ticket.toml
      tidegate campaign create sale --number 106540352242922 --template sale_v1 --language pt_BR --canary 2% \\
          --start-at 2027-03-12T09:00-03:00 --quiet 21:00-08:00 --timezone recipient \\
          --control +5511988887777 --control-every 30m
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

    first = replace(canary, max_failed=canary_max_failed, wait_s=canary_wait) if canary is not None else None
    draft = Draft(
        name=name, numbers=tuple(dict.fromkeys(number)), template=template, language=language,
        body=columns(body), content=content_of_file(ctx) if file else None, category=category,
        priority=priority, start_at=start_at, deadline=deadline, quiet=quiet, zone=timezone,
        canary=first, control=_control(control, control_every, control_values),
        unknown_policy=unknown, unknown_after=unknown_after, max_attempts=max_attempts,
        try_budget=try_budget, max_failed=max_failed, retry_marketing_limit=retry_marketing_limit,
    )  # fmt: skip
    act(ctx, as_json, lambda commands: commands.create_campaign(draft))


def _control(
    phones: list[str] | None, every: float | None, values: list[tuple[str, str]] | None
) -> ControlPhones | None:
    if phones:
        return ControlPhones(tuple(phones), dict(values or ()), every)
    if every is not None or values:
        raise typer.BadParameter("--control-every and --control-values are for --control: give a phone, too")
    return None
