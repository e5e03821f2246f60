"""`tidegate import`: a file of people becomes pending rows of a campaign, all of them or none."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from engine.domain.content import Content
from engine.domain.count import counted
from engine.domain.phone import UnknownCountry, country_code
from engine.intake.audience import Audience, Needs
from engine.intake.doubt import doubt
from engine.intake.encoding import codec
from engine.intake.fault import FileFault
from engine.intake.feed import Feed, Progress
from engine.intake.rejects import RejectsFile
from engine.intake.report import LISTED, Fold, Report, Twin
from engine.postgres.audience_imports import Facts
from engine.postgres.imports import Import, ImportRefused, Merged, open_import
from engine.postgres.journal import Entry
from engine.postgres.pool import Executor

__all__ = ["ImportRefused", "ImportStopped", "Report", "import_audience"]


class ImportStopped(Exception):
    """The import was stopped in the middle. The message says that nothing was kept."""


@dataclass(frozen=True, slots=True)
class _Wish:
    path: Path
    needs: Needs
    author: str
    origin: str
    dry_run: bool
    strict: bool
    confirm: bool
    rejects: Path | None
    progress: Progress | None


async def import_audience(
    db: Executor,
    path: Path,
    *,
    campaign: str,
    author: str,
    origin: str = "cli",
    phone_column: str = "phone",
    country: str | None = None,
    encoding: str | None = None,
    dry_run: bool = False,
    strict: bool = False,
    confirm: bool = False,
    rejects: Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Import the CSV file `path` into `campaign` in one transaction, and account for each of its lines.

    A fault of the file (with `strict`: any row's fault) refuses the file: the report has `file_fault`. `dry_run`
    does everything and undoes it. `confirm`: a person has looked, so that many equal numbers stop no start. `rejects`
    gets the refused rows when the import was kept, and also after a dry run or a strict refusal, where it is what was
    asked for. `progress(bytes done, bytes in all)` is called on the loop after each chunk.

    Raises ImportRefused when there is nothing to read or nowhere to put it, and ImportStopped when its task is
    cancelled before the commit began; in both cases nothing was kept.
    """
    code = _country(country)
    _check_paths(path, rejects)
    needs = Needs(phone_column, Content(), code, encoding)
    wish = _Wish(path, needs, author, origin, dry_run, strict, confirm, rejects, progress)
    try:
        async with open_import(db, campaign) as act:
            return await _carry_out(act, wish)
    except asyncio.CancelledError:
        raise ImportStopped(f"Stopped: nothing of {path.name} was kept in campaign {campaign}.") from None


async def _carry_out(act: Import, wish: _Wish) -> Report:
    report = Report()
    needs = replace(wish.needs, content=act.target.content)
    with ExitStack() as files:
        try:
            with _files_at_fault(wish.path):
                audience = files.enter_context(await _apart(wish.path, needs))
                rejects = files.enter_context(_rejects(wish.rejects, audience)) if wish.rejects else None
        except FileFault as fault:
            report.refuse(fault.line, fault.reason)
            return report
        report.encoding, report.separator = audience.encoding, audience.heading.separator
        if not await _stage(act, wish, report, audience, rejects):
            return report
        if wish.strict and report.refused:
            _refuse_strictly(report)
        else:
            await _merge(act, wish, report)
        if rejects:
            _keep_rejects(rejects, wish)
    return report


async def _stage(
    act: Import, wish: _Wish, report: Report, audience: Audience, rejects: RejectsFile | None
) -> bool:
    """Read all of the file into the staging table; whether the file is whole."""
    feed = Feed(audience, report, rejects, wish.progress, by_zone=act.target.by_zone)
    async with aclosing(feed.chunks()) as chunks:
        await act.stage(chunks)
    report.lines += audience.heading_records
    with _files_at_fault(wish.path):
        if isinstance(feed.fault, FileFault):
            report.refuse(feed.fault.line, feed.fault.reason)
            return False
        if feed.fault:
            raise feed.fault
        if rejects:
            rejects.complete()
    return True


async def _apart(path: Path, needs: Needs) -> Audience:
    """Open the audience in a thread: it reads the whole file for its encoding."""
    opening = asyncio.ensure_future(asyncio.to_thread(Audience, path, needs))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close)
        raise


def _close(opening: "asyncio.Future[Audience]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


async def _merge(act: Import, wish: _Wish, report: Report) -> None:
    merged = await act.merge(LISTED)
    report.taken, report.folded, report.already = merged.taken, merged.folded, merged.already
    report.folds = [Fold(line, into_line) for line, into_line in merged.folds]
    if merged.aside:
        report.aside, report.twins = merged.aside, [Twin(line, of_line) for line, of_line in merged.twins]
    usable = merged.taken + merged.folded + merged.already
    why = (
        doubt(merged.most, merged.folded, usable) if merged.taken else None
    )  # else nobody would get anything
    if why:
        report.doubt = why
    if not wish.dry_run:
        entry = Entry(wish.author, wish.origin, "import", act.target.name, result=report.result)
        await act.keep(merged.taken, entry, _facts(wish, report, merged, why))


def _facts(wish: _Wish, report: Report, merged: Merged, why: str | None) -> Facts:
    return Facts(
        author=wish.author,
        file=wish.path.name,
        lines=report.lines,
        taken=merged.taken,
        aside=merged.aside,
        refused=report.refused,
        folded=merged.folded,
        already=merged.already,
        blank=report.blank,
        doubt=why,
        confirmed=wish.confirm,
    )


def _rejects(path: Path, audience: Audience) -> RejectsFile:
    heading = audience.heading
    return RejectsFile(
        path, encoding=codec(audience.encoding), separator=heading.separator, names=heading.names
    )


def _refuse_strictly(report: Report) -> None:
    first, refused = report.rejects[0], report.refused
    where = f"the column {first.column!r} " if first.column else "the row "
    report.refuse(
        first.line,
        f"{where}{first.reason}; with --strict that refuses the file ({counted(refused, 'row')} at fault)",
    )


def _country(country: str | None) -> str | None:
    try:
        return country_code(country) if country is not None else None
    except UnknownCountry as error:
        raise ImportRefused(str(error)) from None


def _check_paths(path: Path, rejects: Path | None) -> None:
    if not path.exists():
        raise ImportRefused(f"There is no file {path}.")
    if not path.is_file():
        raise ImportRefused(
            f"{path} is not a file: an import reads it more than once, so save it as one first."
        )
    if rejects is None:
        return
    if not rejects.parent.is_dir():
        raise ImportRefused(f"There is no directory {rejects.parent} for the rejects file.")
    if rejects.exists() and (not rejects.is_file() or rejects.samefile(path)):
        raise ImportRefused(f"The rejects would overwrite {rejects}: name another file with --rejects.")


@contextmanager
def _files_at_fault(path: Path) -> Iterator[None]:
    """Around what touches files alone, so that their errors are not taken for the database's."""
    try:
        yield
    except OSError as error:
        raise ImportRefused(
            f"{error.filename or path} cannot be used ({error.strerror or error}); nothing was kept."
        ) from error


def _keep_rejects(rejects: RejectsFile, wish: _Wish) -> None:
    try:
        rejects.keep()
    except OSError as error:
        kept = "nothing was to be kept" if wish.dry_run or wish.strict else "the rows were kept"
        raise ImportRefused(
            f"The rejects file {wish.rejects} cannot be written ({error.strerror or error}); {kept}."
        ) from error
