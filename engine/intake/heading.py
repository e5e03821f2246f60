"""The head of an audience file: its separator, and where the columns are that a campaign needs."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

from engine.intake.fault import FileFault
from engine.intake.records import Record, Records

SEPARATORS = (",", ";", "\t", "|")

_SEPARATOR_LINE = re.compile(r'\s*"?sep=(.?)"?[\s,;|]*', re.IGNORECASE | re.DOTALL)
_UNSEEN = "\ufeff\u200b\u200c\u200d\u2060"
_MANY_DIGITS = re.compile(r"(?:\d[^\d]{0,3}){7}")


@dataclass(frozen=True, slots=True)
class Heading:
    """`line` is the header's first physical line; `phone` and the values of `params` are places in a record."""

    separator: str
    line: int
    names: tuple[str, ...]
    phone: int
    params: tuple[tuple[str, int], ...]


def read_heading(open_text: Callable[[], TextIO], phone_column: str, columns: Sequence[str]) -> Heading:
    """The heading of the file that `open_text` opens anew at each call. Raises FileFault.

    Without a `sep=` line the separator is the one that finds the most of the columns that are needed, then the
    one that finds the most columns.
    """
    needed = {_key(phone_column), *map(_key, columns)}
    separator = _announced(open_text)
    readings: list[tuple[str, Record]] = []
    faults: list[FileFault] = []
    for candidate in (separator,) if separator else SEPARATORS:
        try:
            readings.append((candidate, _header(open_text, candidate)))
        except FileFault as fault:
            faults.append(fault)
    best, header = max(readings, key=lambda each: _score(each[1], needed), default=("", None))
    if header is None or (faults and not _score(header, needed)[0]):
        raise faults[0]
    return _heading(best, header, phone_column, columns)


def is_separator_line(record: Record) -> bool:
    """Whether the record is the line by which a spreadsheet says how it separates."""
    return record.line == 1 and _SEPARATOR_LINE.fullmatch(record.raw.lstrip(_UNSEEN)) is not None


def is_blank(record: Record) -> bool:
    """Whether the record holds nothing at all."""
    return record.fault is None and not any(cell and not cell.isspace() for cell in record.cells)


def _announced(open_text: Callable[[], TextIO]) -> str | None:
    with open_text() as source:
        found = _SEPARATOR_LINE.fullmatch(source.readline(64).lstrip(_UNSEEN))
    if found is None:
        return None
    if found[1] not in SEPARATORS:
        raise FileFault(1, "the sep= line names none of the separators that are read: , ; | or a tab")
    return found[1]


def _header(open_text: Callable[[], TextIO], separator: str) -> Record:
    with open_text() as source:
        for record in Records(source, separator):
            if not is_blank(record) and not is_separator_line(record):
                return record
    raise FileFault(1, "the file is empty: it needs a header line with the names of its columns")


def _score(header: Record, needed: set[str]) -> tuple[int, int]:
    keys = set(map(_key, header.cells))
    return len(needed & keys), len(header.cells)


def _heading(separator: str, header: Record, phone_column: str, columns: Sequence[str]) -> Heading:
    if header.fault:
        raise FileFault(header.line, f"the header {header.fault.reason}")
    names = tuple(map(_clean, header.cells))
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        if name and places.setdefault(_key(name), place) != place:
            raise FileFault(header.line, f"two columns are called {name[:40]!r}: rename or remove one")
    missing = [name for name in columns if _key(name) not in places]
    if _key(phone_column) not in places:
        raise FileFault(header.line, _no_phone_column(phone_column, missing, names))
    if missing:
        raise FileFault(header.line, _no_columns(missing, columns, phone_column, names))
    params = tuple((name, places[_key(name)]) for name in columns)
    return Heading(separator, header.line, names, places[_key(phone_column)], params)


def _no_columns(
    missing: Sequence[str], columns: Sequence[str], phone_column: str, names: Sequence[str]
) -> str:
    """All of them at once, and both ways out: a campaign's columns do not change once it is created."""
    known = {_key(phone_column), *map(_key, columns)}
    spare = [name for name in names if name and _key(name) not in known]
    such = f", such as --body {','.join(spare)}" if len(spare) == len(missing) == len(columns) else ""
    return (
        f"there is no column {_either(missing)}, which the campaign's template needs; there is {_listed(names)}: "
        f"rename them in the file, or create another campaign whose --body names the file's columns{such}"
    )


def _either(names: Sequence[str]) -> str:
    return " nor ".join(repr(name[:40]) for name in names)


def _no_phone_column(phone_column: str, missing: Sequence[str], names: Sequence[str]) -> str:
    if any(map(_MANY_DIGITS.search, names)):  # data, which has no place in a message
        return "the first line looks like a row: the file needs a header line with the names of its columns"
    others = f", nor {_either(missing)}, which the campaign's template needs" if missing else ""
    return (
        f"there is no column {phone_column!r}{others}; name the right one with --phone-column; "
        f"there is {_listed(names)}"
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(repr(name[:40]) for name in names[:12] if not _MANY_DIGITS.search(name))
    return listed + (" and more" if len(names) > 12 else "")


def _clean(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip(_UNSEEN).strip()


def _key(name: str) -> str:
    """By what two names are the same: neither case nor blanks count."""
    return "".join(_clean(name).casefold().split())
