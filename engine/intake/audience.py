"""An audience file as a stream: each record becomes a row to keep, a refusal with its reason, or a blank."""

import io
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, TextIO

from engine.domain.phone import PhoneRefused, read_phone
from engine.intake import encoding
from engine.intake.fault import FileFault
from engine.intake.heading import Heading, is_blank, read_heading
from engine.intake.records import Record, Records

PARAM_CHARS = 1_024

_LINE_END = re.compile("[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]")
_MANY_BLANKS = re.compile("[ \u00a0]{5}")


class Row(NamedTuple):
    """One person: `phone` in E.164, `country` ISO alpha-2 or '', `params` the template's by their columns."""

    line: int
    phone: str
    country: str
    params: dict[str, str]

    def __repr__(self) -> str:
        return f"Row(line={self.line}, …)"  # who it is must not reach a log by accident


class Refusal(NamedTuple):
    """A record that cannot be kept. `column` is None when its fault is not one cell's; `raw` is its text."""

    line: int
    column: str | None
    reason: str
    raw: str

    def __repr__(self) -> str:
        return f"Refusal(line={self.line}, column={self.column!r}, reason={self.reason!r}, …)"


class Blank(NamedTuple):
    """A line, or a record of separators only, that holds nothing."""

    line: int


@dataclass(frozen=True, slots=True)
class Needs:
    """What a campaign asks of a file. `country`: as from `engine.domain.phone.country_code`, or None."""

    phone_column: str
    body: Sequence[str]
    country: str | None
    encoding: str | None = None


class Audience:
    """An open file whose encoding and heading are decided. Use as a context manager; iterate once.

    Opening reads the file once to its end for the encoding. Raises FileFault, then or while iterating, and OSError.
    """

    def __init__(self, path: Path, needs: Needs) -> None:
        self._path = path
        self._country: Final = needs.country
        self.encoding: Final = encoding.decide(path, needs.encoding)
        self.heading: Final[Heading] = read_heading(self._open, needs.phone_column, needs.body)
        self.heading_records = 0  # the header, and the sep= line if there is one
        self.bytes_total = path.stat().st_size
        self._binary: BinaryIO = path.open("rb")
        self._source = self._text(self._binary)

    def __enter__(self) -> "Audience":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()

    @property
    def bytes_done(self) -> int:
        """How far the file is read, in bytes; ahead of the records by one buffer at most."""
        return self._binary.tell()

    def __iter__(self) -> Iterator[Row | Refusal | Blank]:
        try:
            for record in Records(self._source, self.heading.separator):
                if record.line <= self.heading.line and not is_blank(record):
                    self.heading_records += 1
                    continue
                yield self._judge(record)
        except UnicodeDecodeError:
            raise FileFault(None, "the file was changed while it was being read: import it again") from None

    def _open(self) -> TextIO:
        return self._text(self._path.open("rb"))

    def _text(self, binary: BinaryIO) -> TextIO:
        name = self.encoding
        return io.TextIOWrapper(binary, encoding.codec(name), encoding.errors(name), newline="")

    def _judge(self, record: Record) -> Row | Refusal | Blank:
        """What becomes of one record after the header."""
        heading = self.heading
        line, cells, fault, raw = record
        if fault:
            named = fault.cell is not None and fault.cell < len(heading.names)
            column = heading.names[fault.cell] if named and fault.cell is not None else None
            return Refusal(line, column, fault.reason, raw)
        if len(cells) != len(heading.names):
            return Blank(line) if is_blank(record) else Refusal(line, None, _miscounted(cells, heading), raw)
        try:
            phone = read_phone(cells[heading.phone], self._country)
        except PhoneRefused as refused:
            if is_blank(record):
                return Blank(line)
            return Refusal(line, heading.names[heading.phone], str(refused), raw)
        params = {}
        for name, place in heading.params:
            value = cells[place].strip()
            if why := unfit_param(value):
                return Refusal(line, name, why, raw)
            params[name] = value
        return Row(line, phone.e164, phone.country, params)


def unfit_param(value: str) -> str | None:
    """Why WhatsApp would refuse `value` in a template (its errors 132000, 132005 and 132018), or None."""
    if not value or not (value.isascii() or any(map(_visible, value))):
        return "is empty, and the template needs it"
    if len(value) > PARAM_CHARS:
        return f"is longer than the {PARAM_CHARS:,} characters that a template's parameter may have"
    if _LINE_END.search(value):
        return "holds a line break or a tab, which WhatsApp refuses in a template"
    if _MANY_BLANKS.search(value):
        return "holds more than four blanks in a row, which WhatsApp refuses in a template"
    return None


def _visible(character: str) -> bool:
    return not character.isspace() and unicodedata.category(character) != "Cf"


def _miscounted(cells: Sequence[str], heading: Heading) -> str:
    count, expected = len(cells), len(heading.names)
    if count < expected:
        return f"has {count} of the {expected} cells that the header names"
    return f"has {count} cells where the header names {expected}: quote a cell that holds the separator"
