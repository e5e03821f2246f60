"""What the terminal shows, cell by cell, so that only what differs is sent: few bytes over SSH, whatever was drawn.

Textual sends a line of a widget from its start up to its last change, each piece with its whole style before it and
a reset behind it. Here a tick costs the digits that moved.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

GAP = 6
"""Unchanged cells that are sent again rather than jumped over: a jump takes about as many bytes."""

_ATTRIBUTES = {
    "bold": 1, "dim": 2, "italic": 3, "underline": 4, "blink": 5, "blink2": 6, "reverse": 7, "conceal": 8,
    "strike": 9, "underline2": 21,
}  # fmt: skip
"""rich's names and the terminal's codes."""

_OFF = {1: 22, 2: 22, 3: 23, 4: 24, 5: 25, 6: 25, 7: 27, 8: 28, 9: 29, 21: 24}
_BOLD_AND_DIM = frozenset({1, 2})
_SEEN_ON_A_BLANK = frozenset({4, 5, 6, 7, 9, 21})


class Pen(NamedTuple):
    """How a cell is drawn, in the codes of a terminal: attributes, and both colours ("" is the terminal's own)."""

    attributes: frozenset[int] = frozenset()
    ink: str = ""
    paper: str = ""

    def on_blank(self) -> "Pen":
        """All of it that can be seen where nothing is written."""
        return self if self.attributes & _SEEN_ON_A_BLANK else Pen(paper=self.paper)

    def draws_blank_as(self, wanted: "Pen") -> bool:
        """Whether a blank that is drawn with this pen looks as one that is drawn with `wanted`."""
        return self == wanted or (
            self.paper == wanted.paper and not self.attributes & _SEEN_ON_A_BLANK and not wanted.attributes
        )

    def turned_to(self, to: "Pen") -> str:
        """The sequence that makes this pen that one; "" when they are the same."""
        codes: list[str] = []
        kept = self.attributes
        if gone := kept - to.attributes:
            off = {_OFF[code] for code in gone}
            codes += map(str, sorted(off))
            kept = to.attributes & kept - (_BOLD_AND_DIM if 22 in off else frozenset())
        codes += map(str, sorted(to.attributes - kept))
        if self.ink != to.ink:
            codes.append(to.ink or "39")
        if self.paper != to.paper:
            codes.append(to.paper or "49")
        return f"\x1b[{';'.join(codes)}m" if codes else ""


PLAIN = Pen()
Cell = tuple[str, Pen]
"""What one cell shows; the second cell of a wide character holds an empty string."""

NOTHING: Cell = ("\0", PLAIN)
"""A cell of which is not known what it shows: unlike all others."""


class Picture:
    """The cells that the terminal has been sent. One for each app, for all of its screens."""

    def __init__(self) -> None:
        self._lines: list[list[Cell]] = []
        self._of: object = None
        self._size = (0, 0)

    def change(self, screen: object, update: LayoutUpdate | ChopsUpdate) -> "Change":
        """The same update of a screen, as what differs from the picture."""
        return Change(self, screen, update)

    def begin(self, screen: object, width: int, height: int) -> None:
        """A whole screen comes. If another one or of another size, all of it is sent whatever the terminal shows,
        which also mends what others wrote to it."""
        if screen is not self._of or (width, height) != self._size:
            self._of, self._size = screen, (width, height)
            self._lines = [[NOTHING] * width for _ in range(height)]

    def drawn(self, pieces: Iterable[tuple[int, int, Sequence[Cell]]]) -> str:
        """Take pieces of lines (y, x, cells) into the picture: the sequences that draw what they change."""
        pen, out = PLAIN, list[str]()
        for y, x, cells in pieces:
            if y < len(self._lines):
                pen = self._draw(y, x, cells, pen, out)
        out.append(pen.turned_to(PLAIN))
        return "".join(out)

    def _draw(self, y: int, x: int, cells: Sequence[Cell], pen: Pen, out: list[str]) -> Pen:
        line = self._lines[y]
        cells = list(cells[: max(0, len(line) - x)])
        if 0 < x < len(line) and not line[x][0]:  # where half a wide character is overwritten, all of it goes
            x, cells = x - 1, [(" ", line[x - 1][1].on_blank()), *cells]
        if x + len(cells) < len(line) and not line[x + len(cells)][0]:
            cells.append((" ", line[x + len(cells)][1].on_blank()))
        for first, end in _runs(line[x : x + len(cells)], cells):
            out.append(f"\x1b[{y + 1};{x + first + 1}H")
            for char, wanted in cells[first:end]:
                if wanted is not pen and char and not (char == " " and pen.draws_blank_as(wanted)):
                    out.append(pen.turned_to(wanted))
                    pen = wanted
                out.append(char)
        line[x : x + len(cells)] = cells
        return pen


class Change(CompositorUpdate):
    """An update that is compared with the picture at the moment when it is sent, and then is the picture."""

    def __init__(self, picture: Picture, screen: object, update: LayoutUpdate | ChopsUpdate) -> None:
        self._picture, self._screen, self._update = picture, screen, update

    def render_segments(self, console: Console) -> str:
        """The sequences to send."""
        system = console._color_system or ColorSystem.TRUECOLOR  # as Textual's own strips do
        if isinstance(self._update, LayoutUpdate):
            self._picture.begin(self._screen, *self._update.region.size)
            pieces = _of_layout(self._update)
        else:
            pieces = _of_chops(self._update)
        return self._picture.drawn((y, x, _cells(strip, system)) for y, x, strip in pieces)


def _of_layout(update: LayoutUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Line by line as a whole; strips may be longer than the screen."""
    left, top, width, height = update.region
    for y, strips in enumerate(update.strips[:height], top):
        yield y, left, Strip.join(list(strips)).crop(0, width)


def _of_chops(update: ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """The parts of lines that are to be drawn anew; a line is cut where widgets meet."""
    for y, first, end in update.spans:
        for until, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            start, stop = max(x, first), min(until, end)
            if strip is not None and start < stop:
                yield y, start, strip.crop(start - x, stop - x)


def _runs(old: Sequence[Cell], new: Sequence[Cell]) -> list[tuple[int, int]]:
    """[first, end) of what differs. Where terminals do not agree how wide a character is, nothing may be left
    standing behind it: then it is all from the first difference on."""
    runs: list[tuple[int, int]] = []
    for x, (before, after) in enumerate(zip(old, new, strict=True)):
        if before == after:
            continue
        if runs and x - runs[-1][1] <= GAP:
            runs[-1] = (runs[-1][0], x + 1)
        else:
            runs.append((x, x + 1))
    if runs and (_of_doubtful_width(old) or _of_doubtful_width(new)):
        return [(_head(new, runs[0][0]), len(new))]
    return runs


def _head(cells: Sequence[Cell], x: int) -> int:
    """Where the character in a cell begins."""
    while x and not cells[x][0]:
        x -= 1
    return x


def _of_doubtful_width(cells: Sequence[Cell]) -> bool:
    """Whether there is a wide character or a combined one."""
    text = [char for char, _ in cells]
    return "" in text or len("".join(text)) != len(text)


def _cells(strip: Strip, system: ColorSystem) -> list[Cell]:
    cells: list[Cell] = []
    for text, style, control in strip:
        if control:
            continue
        pen, blank = _pens(style, system)
        if text.isascii():
            cells += [blank if char == " " else (char, pen) for char in text]
            continue
        for char in text:
            size = cell_len(char)
            if size == 0 and cells:
                cells[-1] = (cells[-1][0] + char, cells[-1][1])
            elif size:
                cells.append(blank if char == " " else (char, pen))
                cells += [("", pen)] * (size - 1)
    return cells


@lru_cache(maxsize=1024)
def _pens(style: Style | None, system: ColorSystem) -> tuple[Pen, Cell]:
    """For what is written, and the cell where nothing is."""
    if style is None:
        return PLAIN, (" ", PLAIN)
    ink, paper = style.color, style.bgcolor
    pen = Pen(
        frozenset(code for name, code in _ATTRIBUTES.items() if getattr(style, name)),
        ";".join(ink.downgrade(system).get_ansi_codes()) if ink is not None else "",
        ";".join(paper.downgrade(system).get_ansi_codes(foreground=False)) if paper is not None else "",
    )
    return pen, (" ", pen.on_blank())
