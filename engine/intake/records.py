"""From text to records: the grammar of CSV, with the line of everything and bounded memory.

Not the csv module: it names no line where a quote opens, ends the whole read at an over-long cell, and keeps an
unclosed quote's cell, which is the rest of the file, in memory. `csv` is the oracle in the tests instead.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TextIO

from engine.intake.fault import FileFault

PIECE_CHARS = 65_536  # what is read of a physical line at a time, and kept of a refused record
CELL_CHARS = 4_096
CELL_LINES = 20
CELLS = 4_096

NUL = "holds a NUL byte"
SURROGATE = "holds half of a surrogate pair, which is no character"
TOO_LONG = f"is longer than {CELL_CHARS:,} characters"
TOO_MANY_LINES = f"runs over more than {CELL_LINES} lines"
TOO_MANY_CELLS = f"has more than {CELLS:,} cells"
AFTER_QUOTE = "has text after its closing quote: write a quote inside a quoted cell twice"
UNCLOSED = "the quote that opens in this line is never closed, or closed in the middle of a cell further down"

_UNFIT = re.compile("[\x00\ud800-\udfff]")
_QUOTE_AHEAD = re.compile('[ \u00a0]*"')
_BLANKS = re.compile("[ \u00a0]*")


class CellFault(NamedTuple):
    """What makes a record unusable; `cell` counts from 0, None when it is the record as a whole."""

    cell: int | None
    reason: str


class Record(NamedTuple):
    """`line` is its first physical line, from 1; `raw` its text as it was, at most about PIECE_CHARS of it."""

    line: int
    cells: list[str]
    fault: CellFault | None
    raw: str

    def __repr__(self) -> str:
        return f"Record(line={self.line}, fault={self.fault!r}, …)"  # people's data must not reach a log


class Records:
    """The records of `source` (opened with newline=""), blank ones included. Raises FileFault while iterating."""

    def __init__(self, source: TextIO, separator: str) -> None:
        self._source = source
        self._separator = separator
        self._ahead = ""
        self._line = 0
        self._line_begins = True

    def __iter__(self) -> Iterator[Record]:
        while piece := self._piece():
            if '"' in piece or len(piece) >= PIECE_CHARS:
                yield self._assemble(piece)
                continue
            cells = piece.rstrip("\r\n").split(self._separator)
            fault = _fault_of(cells) if len(piece) > CELL_CHARS or _UNFIT.search(piece) else None
            yield Record(self._line, cells, fault, piece)

    def _piece(self) -> str:
        """The next physical line with its end, or the next part of a very long one; '' when there is no more."""
        piece = self._ahead + self._source.readline(PIECE_CHARS - len(self._ahead))
        self._ahead = ""
        if len(piece) == PIECE_CHARS and piece[-1] == "\r":  # its \n, if one follows, is no line of its own
            following = self._source.readline(1)
            if following == "\n":
                piece += following
            else:
                self._ahead = following
        if self._line_begins and piece:
            self._line += 1
        self._line_begins = piece.endswith(("\n", "\r"))
        return piece

    def _assemble(self, piece: str) -> Record:
        first = self._line
        assembly = _Assembly(self._separator)
        while piece and not assembly.feed(piece, self._line):
            piece = self._piece()
        if not piece:
            assembly.end_of_file()
        return Record(first, assembly.cells, assembly.fault, "".join(assembly.raw))


def _fault_of(cells: list[str]) -> CellFault | None:
    if len(cells) > CELLS:
        return CellFault(None, TOO_MANY_CELLS)
    return next((CellFault(place, why) for place, cell in enumerate(cells) if (why := _unfit(cell))), None)


def _unfit(cell: str) -> str | None:
    if len(cell) > CELL_CHARS:
        return TOO_LONG
    if unfit := _UNFIT.search(cell):
        return NUL if unfit[0] == "\x00" else SURROGATE
    return None


class _Assembly:
    """One record that needs more than a split: quotes, several lines, or a line longer than a piece.

    A state is a method that takes in text from `place` on and returns where it stopped, -1 at the record's end.
    """

    def __init__(self, separator: str) -> None:
        self.cells: list[str] = []
        self.fault: CellFault | None = None
        self.raw: list[str] = []
        self._separator = separator
        self._end_of_cell = re.compile(f"[{re.escape(separator)}\r\n]")
        self._room = PIECE_CHARS
        self._line = self._opened = 0
        self._begin_cell()

    def feed(self, piece: str, line: int) -> bool:
        """Take in `piece`, which stands in `line`; whether the record ended with it. Raises FileFault."""
        self._line = line
        if self._room > 0:
            self.raw.append(piece[: self._room])
            self._room -= len(piece)
        place = 0
        while 0 <= place < len(piece):
            place = self._state(piece, place)
        return place < 0

    def end_of_file(self) -> None:
        """Close what is open. Raises FileFault when that is a quote."""
        if self._state == self._quoted:
            raise FileFault(self._opened, UNCLOSED)
        self._close_cell()

    def _begin_cell(self) -> None:
        self._text: list[str] = []
        self._size = 0
        self._lines = 1
        self._state: Callable[[str, int], int] = self._start

    def _start(self, piece: str, place: int) -> int:
        quote = _QUOTE_AHEAD.match(piece, place)
        if quote is None:
            self._state = self._plain
            return place
        self._state = self._quoted
        self._opened = self._line
        return quote.end()

    def _plain(self, piece: str, place: int) -> int:
        end = self._end_of_cell.search(piece, place)
        self._add(piece[place : end.start() if end else None])
        return self._end(piece, end.start()) if end else len(piece)

    def _quoted(self, piece: str, place: int) -> int:
        end = piece.find('"', place)
        self._add(piece[place : end if end >= 0 else None])
        if end >= 0:
            self._state = self._closed
            return end + 1
        if piece.endswith(("\n", "\r")):
            self._lines += 1
            if self._lines > CELL_LINES:
                self._refuse(TOO_MANY_LINES)
        return len(piece)

    def _closed(self, piece: str, place: int) -> int:
        if piece[place] == '"':
            self._add('"')
            self._state = self._quoted
            return place + 1
        self._state = self._after_quote
        return self._after_quote(piece, place)

    def _after_quote(self, piece: str, place: int) -> int:
        blanks = _BLANKS.match(piece, place)
        place = blanks.end() if blanks else place
        if place == len(piece):
            return place
        if self._end_of_cell.match(piece, place):
            return self._end(piece, place)
        if self._lines > 1:  # far likelier an unclosed quote that met the next one than a cell of many lines
            raise FileFault(self._opened, UNCLOSED)
        self._refuse(AFTER_QUOTE)
        self._state = self._plain
        return place

    def _end(self, piece: str, place: int) -> int:
        self._close_cell()
        return place + 1 if piece[place] == self._separator else -1

    def _close_cell(self) -> None:
        cell = "".join(self._text)
        if why := _unfit(cell):
            self._refuse(why)
        if len(self.cells) < CELLS:
            self.cells.append(cell)
        else:
            self.fault = self.fault or CellFault(None, TOO_MANY_CELLS)
        self._begin_cell()

    def _add(self, text: str) -> None:
        if self._size <= CELL_CHARS:  # one text more than fits, so that it shows; what follows is let go
            self._text.append(text)
        self._size += len(text)

    def _refuse(self, reason: str) -> None:
        self.fault = self.fault or CellFault(len(self.cells), reason)
