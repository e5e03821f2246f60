"""tidegate reconcile, audit"""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.session import Json, database, print_json, print_table, run_once, settings

if TYPE_CHECKING:
    from engine.control.audit import Audit
    from engine.domain.snapshot import ReconcilePreview

BROKEN = 5

NOT_LOOKED_AT = (
    "Not looked at: 4 (pause means stop), 6 (one owner) and 7 (a failed try never recreates its work). They are about "
    "moments that no row keeps; the project's tests prove them."
)

Campaign = Annotated[
    str | None, typer.Option("--campaign", metavar="NAME", help="This one alone (default: all).")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("reconcile")(reconcile)
    app.command("audit")(audit)


def reconcile(
    ctx: typer.Context,
    campaign: Campaign = None,
    decide: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="resend|assume_sent",
            help="Your word for one campaign's rows, this once, in place of its policy; a row is resent once.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    as_json: Json = False,
) -> None:
    """Settle rows whose answer was lost, by each campaign's policy, where silence means something by now.

    \b
    Example:
      tidegate reconcile --campaign reminder --dry-run
      tidegate reconcile --campaign reminder --as resend
    """
    from engine import clock
    from engine.domain.settling import coming

    config = settings(ctx)

    async def once() -> "ReconcilePreview":
        async with database(config) as (_, commands):
            return await commands.reconcile(campaign, policy=decide, dry_run=dry_run)

    done = run_once(once())
    if as_json:
        print_json({"dry_run": dry_run, **asdict(done)})
        return
    print("Nothing is changed: this is a dry run." if dry_run else "Done.")
    print_table(
        ["ROWS", "WHAT"],
        [
            (done.to_sent, "unknown → sent (assumed, counted apart)"),
            (done.to_pending, "unknown → pending (sent once more: possible duplicates)"),
            (done.stay_unknown, "stay unknown, for evidence or a person"),
            (done.waiting, "wait, for what is said below"),
            (done.stuck_to_unknown, "sending → unknown (their owner is gone)"),
        ],
    )
    said = [*coming(done, clock.now()), *done.conditions]
    for line in said:
        print(line)
    if done.note and not said:
        print(done.note, file=sys.stderr)


def audit(ctx: typer.Context, campaign: Campaign = None, as_json: Json = False) -> None:
    """Recount everything; prove from rows, tries and stamps that the invariants 1, 2, 3 and 5 hold.

    Exit code 5 when one does not.

    \b
    Example:
      tidegate audit --campaign reminder
    """
    from engine.commands import Refused
    from engine.control import audit as audits

    config = settings(ctx)

    async def once() -> "Audit":
        async with database(config) as (pool, _):
            return await audits.run(pool, campaign)

    try:
        done = run_once(once())
    except audits.UnknownCampaignError:
        raise Refused(
            f"There is no campaign {campaign}: `tidegate campaign list` shows those that exist."
        ) from None
    if as_json:
        print_json(_json(done))
    else:
        _print(done)
    if not done.holds:
        raise typer.Exit(BROKEN)


def _json(done: "Audit") -> dict[str, Any]:
    return {
        "at": done.at.isoformat(),
        "holds": done.holds,
        "checks": [asdict(check) for check in done.checks],
        "windows": [
            {
                **asdict(window),
                "at": window.at.isoformat() if window.at else None,
                "busiest_at": window.busiest_at.isoformat() if window.busiest_at else None,
            }
            for window in done.windows
        ],
    }


def _print(done: "Audit") -> None:
    print_table(
        ["INVARIANT", "WHAT", "RESULT", "LOOKED AT"],
        [
            (str(check.invariant), check.name, "holds" if check.holds else "BROKEN", check.text)
            for check in done.checks
        ],
    )
    print(NOT_LOOKED_AT)
    if done.windows:
        print()
        print_table(
            ["NUMBER", "SENDS", "FULLEST SECOND", "ENDED AT", "BUSIEST SECOND", "ENDED AT"],
            [
                (
                    window.number,
                    window.sends,
                    f"{window.worst:,} of {window.allowed:,} allowed ({window.share:.0%})",
                    window.at.isoformat(timespec="milliseconds") if window.at else None,
                    f"{window.busiest:,} of {window.busiest_allowed:,} allowed",
                    window.busiest_at.isoformat(timespec="milliseconds") if window.busiest_at else None,
                )
                for window in done.windows
            ],
        )
        print(
            "Fullest: the largest share of what the rate allowed then. Busiest: the most sends. Of campaigns."
        )
    for check in done.checks:
        for offender in check.offenders:
            print(f"invariant {check.invariant}: {offender}")
