"""An audience file as a stream: each record becomes a row to keep, a refusal with its reason, or a blank."""

import io
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, TextIO

from engine.domain.content import Content
from engine.domain.parameter import body_too_long, unfit
from engine.domain.phone import Phone, PhoneRefused, read_phone
from engine.intake import encoding
from engine.intake.fault import FileFault
from engine.intake.heading import Heading, is_blank, read_heading
from engine.intake.records import Record, Records

_SPREADSHEET_TEXT = re.compile(r'=\s*"([^"]*)"')
_MARKS = ("=", "'", "`", "\u2018", "\u2019")
_AS_TEXT = "was marked as text by a spreadsheet: the mark was taken off"
_UNSEEN = "held characters that cannot be seen, or digits of another script: written plainly"
_DECIMALS = "was a whole number with decimals: they were taken off"


class Cleaned(NamedTuple):
    """What was taken off a cell before it was used."""

    column: str
    reason: str


class Row(NamedTuple):
    """One person: `phone` in E.164, `country` ISO alpha-2 or '', `params` the template's by their columns."""

    line: int
    phone: str
    country: str
    params: dict[str, str]
    cleaned: tuple[Cleaned, ...] = ()

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
    content: Content
    country: str | None
    encoding: str | None = None


class Audience:
    """An open file whose encoding and heading are decided. Use as a context manager; iterate once.

    Opening reads the file once to its end for the encoding. Raises FileFault, then or while iterating, and OSError.
    """

    def __init__(self, path: Path, needs: Needs) -> None:
        self._path = path
        self._country: Final = needs.country
        self._kinds: Final = needs.content.columns()
        self._body: Final = tuple(variable.value for variable in needs.content.body)
        self.encoding: Final = encoding.decide(path, needs.encoding)
        self.heading: Final[Heading] = read_heading(self._open, needs.phone_column, tuple(self._kinds))
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
        return self._with_params(record, phone)

    def _with_params(self, record: Record, phone: Phone) -> Row | Refusal:
        """The row with what its template needs, or the first value that WhatsApp would refuse."""
        line, cells, _, raw = record
        heading = self.heading
        params: dict[str, str] = {}
        cleaned: tuple[Cleaned, ...] = ()
        if why := _cleaned(cells[heading.phone]):
            cleaned = (Cleaned(heading.names[heading.phone], why),)
        for name, place in heading.params:
            value = cells[place].strip()
            if marked := _SPREADSHEET_TEXT.fullmatch(value):
                value = marked[1].strip()
                cleaned += (Cleaned(name, _AS_TEXT),)
            if fault := self._unfit(name, value):
                return Refusal(line, name, fault, raw)
            params[name] = value
        if too_long := self._body_too_long(params):
            return Refusal(line, None, too_long, raw)
        return Row(line, phone.e164, phone.country, params, cleaned)

    def _unfit(self, column: str, value: str) -> str | None:
        return next((why for kind in self._kinds[column] if (why := unfit(value, kind))), None)

    def _body_too_long(self, params: Mapping[str, str]) -> str | None:
        return body_too_long([value.of(params) for value in self._body]) if len(self._body) > 1 else None


def _cleaned(phone: str) -> str | None:
    """What `read_phone` takes off this cell beyond the signs that people write, or None."""
    text = phone.strip()
    if text.startswith(_MARKS):
        return _AS_TEXT
    if text.endswith((".0", ",0")):
        return _DECIMALS
    return _UNSEEN if not text.isascii() and any(map(_odd, text)) else None


def _odd(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) in ("Cf", "Nd")


def _miscounted(cells: Sequence[str], heading: Heading) -> str:
    count, expected = len(cells), len(heading.names)
    if count < expected:
        return f"has {count} of the {expected} cells that the header names"
    return f"has {count} cells where the header names {expected}: quote a cell that holds the separator"
