"""A file of phone numbers: one a line, or a CSV with a column `phone`. Every line is a number or a reason."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TextIO

from engine.domain.phone import Phone, PhoneRefused, read_phone
from engine.intake.encoding import codec, decide, errors
from engine.intake.fault import FileFault
from engine.intake.heading import is_blank, is_separator_line, read_heading
from engine.intake.records import Record, Records

COLUMN = "phone"
_SEPARATORS = ",;\t|"


class Listed(NamedTuple):
    """What stands in `line`: a phone, or why there is none."""

    line: int
    phone: Phone | None
    reason: str | None


class _Shape(NamedTuple):
    separator: str
    column: int
    begins: int


def read_list(path: Path, country: str | None = None) -> Iterator[Listed]:
    """The numbers of the file in their order, blank lines left out. `country`: of numbers without a +.

    Raises FileFault and OSError before or while iterating.
    """
    name = decide(path)

    def open_text() -> TextIO:
        return path.open(encoding=codec(name), errors=errors(name), newline="")

    shape = _shape(open_text, country)
    with closing(open_text()) as source:
        for record in Records(source, shape.separator):
            if record.line >= shape.begins and not is_blank(record) and not is_separator_line(record):
                yield _listed(record, shape.column, country)


def _shape(open_text: Callable[[], TextIO], country: str | None) -> _Shape:
    """Without a heading the numbers stand first in their lines; a first line that is no number is a heading."""
    for separator in _SEPARATORS:
        with closing(open_text()) as source:
            first = next((record for record in Records(source, separator) if not is_blank(record)), None)
        if first is None:
            raise FileFault(None, "the file holds no numbers")
        if _listed(first, 0, country).phone is not None:
            return _Shape(separator, 0, first.line)
        if not any(any(character.isalpha() for character in cell) for cell in first.cells):
            return _Shape(separator, 0, first.line)
    heading = read_heading(open_text, COLUMN, ())
    return _Shape(heading.separator, heading.phone, heading.line + 1)


def _listed(record: Record, column: int, country: str | None) -> Listed:
    if record.fault is not None:
        return Listed(record.line, None, record.fault.reason)
    try:
        text = record.cells[column] if column < len(record.cells) else ""
        return Listed(record.line, read_phone(text, country), None)
    except PhoneRefused as refused:
        return Listed(record.line, None, str(refused))
