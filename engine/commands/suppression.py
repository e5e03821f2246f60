"""Who must not be written to: added by hand or by file, lifted, listed. Claims and marks look there."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from engine.clock import now
from engine.commands.act import Acts, Done, Refused
from engine.domain.count import counted
from engine.domain.message import masked
from engine.domain.phone import PhoneRefused, UnknownCountry, country_code, read_phone
from engine.intake.fault import FileFault
from engine.intake.phone_list import Listed, read_list
from engine.postgres import suppressions
from engine.postgres.suppressions import OptOut, Suppressed

SCOPES = ("marketing", "all")
PAGE = 5000
SHOWN = 10


class SuppressionCommands(Acts):
    """suppress add, import, list, remove. `scope`: `all`, or `marketing` campaigns alone."""

    async def suppress(self, phones: Sequence[str], scope: str = "all", reason: str | None = None) -> Done:
        """Write to these people no more, under any spelling of their numbers. Numbers in full, with their +."""
        read = [_phone(text) for text in phones]
        async with self._act("suppress", _named(read), reason) as (db, entry):
            people = [OptOut(phone, _scope(scope), "person", reason, now()) for phone in read]
            new = await suppressions.add(db, people)
            entry.after = scope
            if not new:
                entry.result = "already"
        if not new:
            return Done(f"{_named(read)} {_are(read)} suppressed already.", already=True)
        return Done(f"{_named(read)} {_are(read)} suppressed ({scope}).", after=scope)

    async def unsuppress(self, phones: Sequence[str], scope: str | None = None) -> Done:
        """Write to these people again. None lifts both scopes."""
        read = [_phone(text) for text in phones]
        async with self._act("unsuppress", _named(read)) as (db, entry):
            gone = await suppressions.remove(db, read, _scope(scope) if scope is not None else None)
            entry.before = scope or "all, marketing"
            if not gone:
                entry.result = "already"
        if not gone:
            return Done(f"{_named(read)} {_are(read)} not suppressed.", already=True)
        return Done(f"{_named(read)} {_are(read)} suppressed no more.", before=entry.before)

    async def import_suppressions(self, path: Path, scope: str = "all", country: str | None = None) -> Done:
        """Suppress everybody in a file, in one transaction: each line is taken, or refused with its reason."""
        taken = new = 0
        refused: list[Listed] = []
        async with self._act("import suppressions", str(path)) as (db, entry):
            lines = _lines(path, _country(country))
            while page := await asyncio.to_thread(_page, lines, path):
                people = [
                    OptOut(one.phone.e164, _scope(scope), "import", path.name, now())
                    for one in page
                    if one.phone is not None
                ]
                refused += [one for one in page if one.phone is None]
                taken += len(people)
                new += await suppressions.add(db, people)
            if not taken:
                first = f": line {refused[0].line} {refused[0].reason}" if refused else ""
                raise Refused(f"{path} holds no number that could be taken{first}.")
            entry.after = f"{taken} taken, {len(refused)} refused"
        return Done(
            f"{taken:,} of {counted(taken + len(refused), 'number')} suppressed ({scope}).",
            already=not new,
            after=entry.after,
            warnings=_warnings(refused),
        )

    async def list_suppressions(
        self, scope: str | None = None, after: tuple[str, str] = ("", ""), most: int = 1000
    ) -> tuple[int, list[Suppressed]]:
        """How many lines there are, and a page of them."""
        wanted = _scope(scope) if scope is not None else None
        return (
            await suppressions.count(self._pool, wanted),
            await suppressions.listing(self._pool, wanted, after, most),
        )


def _scope(scope: str) -> str:
    if scope not in SCOPES:
        raise Refused(f"{scope[:20]!r} is no scope: write all or marketing.")
    return scope


def _phone(text: str) -> str:
    try:
        return read_phone(text).e164
    except PhoneRefused as refused:
        raise Refused(f"The number {masked(text)} {refused}.") from None


def _country(country: str | None) -> str | None:
    try:
        return country_code(country) if country is not None else None
    except UnknownCountry as unknown:
        raise Refused(str(unknown)) from None


def _lines(path: Path, country: str | None) -> Iterator[Listed]:
    return iter(read_list(path, country))


def _page(lines: Iterator[Listed], path: Path) -> list[Listed]:
    """The next lines; read in a thread, for a file may be large and a disk slow."""
    try:
        return list(islice(lines, PAGE))
    except FileFault as fault:
        where = f", line {fault.line}" if fault.line else ""
        raise Refused(f"{path}{where}: {fault.reason}; nothing was kept.") from None
    except OSError as error:
        raise Refused(f"{path} cannot be read ({error.strerror or error}); nothing was kept.") from None


def _named(phones: Sequence[str]) -> str:
    return masked(phones[0]) if len(phones) == 1 else f"{len(phones)} numbers"


def _are(phones: Sequence[str]) -> str:
    return "is" if len(phones) == 1 else "are"


def _warnings(refused: Sequence[Listed]) -> tuple[str, ...]:
    shown = tuple(f"line {one.line} {one.reason}" for one in refused[:SHOWN])
    more = len(refused) - len(shown)
    return (*shown, f"and {counted(more, 'more refused line')}") if more else shown
