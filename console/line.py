"""One line of cells, built from left to right in roles, then turned into a strip of exact width."""

import re
from typing import Self

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from console.format import fit
from console.theme import STYLES

_PIECES = re.compile(r"\s+|\S+")


class Line:
    """Text parts with roles. Everything from outside must have gone through `format.clean` before."""

    __slots__ = ("parts",)

    def __init__(self, text: str = "", role: str = "text") -> None:
        self.parts: list[tuple[str, str]] = [(text, role)] if text else []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(tuple(self.parts))

    def __repr__(self) -> str:
        return f"Line({self.plain!r})"

    @property
    def plain(self) -> str:
        """The text without roles."""
        return "".join(text for text, _ in self.parts)

    @property
    def width(self) -> int:
        """Cells used so far."""
        return sum(cell_len(text) for text, _ in self.parts)

    def add(self, text: str, role: str = "text") -> Self:
        """Append a part."""
        if text:
            self.parts.append((text, role))
        return self

    def cell(self, text: str, width: int, align: str = "<", role: str = "text", cut: str = "…") -> Self:
        """Append a part of exactly `width` cells."""
        return self.add(fit(text, width, align, cut), role)

    def to(self, column: int, fill: str = " ", role: str = "text") -> Self:
        """Fill up to a column (from 0); nothing happens when the line is already there."""
        return self.add(fill * max(0, column - self.width), role)

    def folded(self, width: int, indent: int = 4) -> "list[Line]":
        """In as many lines as it takes, broken between words: what to do must never be what is cut off."""
        if self.width <= width:
            return [self]
        lines, used, room = [Line()], 0, max(1, width - indent)
        for text, role in self.parts:
            for piece in _PIECES.findall(text):
                size = cell_len(piece)
                if used + size > width and used:
                    lines.append(Line(" " * indent))
                    used = indent
                    if piece.isspace():
                        continue
                chunks = chop_cells(piece, room) if used + size > width else [piece]
                for chunk in chunks[:-1]:
                    lines[-1].add(chunk, role)
                    lines.append(Line(" " * indent))
                    used = indent
                lines[-1].add(chunks[-1], role)
                used += cell_len(chunks[-1])
        return lines

    def end(self, other: "Line", width: int) -> Self:
        """Put another line at the right edge when it fits, else leave it out."""
        if self.width + other.width <= width:
            self.to(width - other.width)
            self.parts.extend(other.parts)
        return self

    def strip(self, width: int, base: Style, over: Style | None = None) -> Strip:
        """The strip to draw: cut or padded to `width`; `over` (a cursor) wins over the roles."""
        segments = [Segment(text, base + STYLES[role]) for text, role in self.parts]
        strip = Strip(segments).adjust_cell_length(width, base).simplify()  # fewer bytes on the wire
        return (
            strip
            if over is None
            else Strip([Segment(s.text, (s.style or base) + over) for s in strip], width)
        )
