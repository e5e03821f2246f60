"""tidegate import"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.session import Json, database, run_once, settings
from engine.domain.count import counted

if TYPE_CHECKING:
    from engine.intake.report import Rejected, Report

SHOWN = 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_)


def import_(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The audience, a CSV file.", show_default=False)
    ],
    campaign: Annotated[str, typer.Option("--campaign", metavar="NAME", help="Whose audience it is.")],
    phone_column: Annotated[str, typer.Option("--phone-column", metavar="COLUMN")] = "phone",
    country: Annotated[
        str | None, typer.Option("--country", metavar="CODE", help="Of numbers without +, such as BR.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Instead of finding it out, such as cp1252.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do everything, keep nothing.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse the file for any row's fault.")] = False,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="You have looked: many equal numbers in it are right.")
    ] = False,
    rejects: Annotated[
        Path | None,
        typer.Option(
            "--rejects",
            metavar="FILE",
            help="Write the refused rows there, to mend, in a spreadsheet too, and import.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take an audience into a campaign: every line is taken, folded into another, or refused with its reason.

    \b
    Example:
      tidegate import audience.csv --campaign reminder --country BR --rejects refused.csv
    """
    from engine.author import author
    from engine.intake import importer

    config = settings(ctx)

    async def once() -> "Report":
        async with database(config) as (pool, _):
            with _progress(file.name, show=not as_json and sys.stderr.isatty()) as moved:
                return await importer.import_audience(
                    pool,
                    file,
                    campaign=campaign,
                    author=author(),
                    origin="cli",
                    phone_column=phone_column,
                    country=country,
                    encoding=encoding,
                    dry_run=dry_run,
                    strict=strict,
                    confirm=confirm,
                    rejects=rejects,
                    progress=moved,
                )

    report = run_once(once())
    print(report.json()) if as_json else _print(report, file, dry_run=dry_run, confirmed=confirm)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


@contextmanager
def _progress(title: str, *, show: bool) -> Iterator[Callable[[int, int], None] | None]:
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    shown = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        SpinnerColumn(),
    )
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title)

        def moved(done: int, whole: int) -> None:
            kept = (
                ": keeping it" if done >= whole else ""
            )  # the database's part, of which nothing can be told
            bar.update(task, completed=done, total=whole, description=f"{title}{kept}")

        yield moved


def _print(report: "Report", file: Path, *, dry_run: bool, confirmed: bool) -> None:
    fault = report.file_fault
    if fault:
        where = f"{file}, line {fault.line}" if fault.line is not None else str(file)
        print(f"tidegate: {where}: {fault.reason}", file=sys.stderr)
        return
    kept = "would be taken" if dry_run else "taken"
    print(
        f"{counted(report.lines, 'line')} with the header ({report.encoding}, separator {report.separator!r}): "
        f"{report.taken:,} {kept}, "
        f"{report.refused:,} refused, {report.folded:,} folded, "
        f"{report.already:,} already there, {report.blank:,} blank."
    )
    for rejected in report.rejects[:SHOWN]:
        print(_located(rejected))
    if report.refused > SHOWN:
        print(f"  … and {report.refused - SHOWN:,} more: --rejects FILE writes them all.")
    for fold in report.folds[:SHOWN]:
        print(f"  line {fold.line} folded into line {fold.into_line}: the same number")
    if report.folded > SHOWN:
        print(f"  … and {report.folded - SHOWN:,} more folded: --json lists them.")
    _print_cleaned(report)
    _print_doubts(report, confirmed=confirmed)


def _located(found: "Rejected") -> str:
    column = f", column {found.column}" if found.column else ""
    return f"  line {found.line}{column}: {found.reason}"


def _print_cleaned(report: "Report") -> None:
    cleaned = report.cleaned or []
    for cell in cleaned[:SHOWN]:
        print(_located(cell))
    if len(cleaned) > SHOWN:
        print(f"  … and {len(cleaned) - SHOWN:,} more cells that were cleaned: --json lists them.")


def _print_doubts(report: "Report", *, confirmed: bool) -> None:
    if report.aside:
        print(
            f"{counted(report.aside, 'row')} kept aside: likely duplicates, other spellings of numbers in the campaign."
        )
        for twin in (report.twins or [])[:SHOWN]:
            told = f"line {twin.of_line}" if twin.of_line else "somebody who is in the campaign already"
            print(f"  line {twin.line}: another spelling of {told}")
    if report.doubt and not confirmed:
        print(
            f"Look at the file before you start: {report.doubt}. The start asks for --confirm.",
            file=sys.stderr,
        )
