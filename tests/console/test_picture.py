"""What is sent to the terminal: a fraction of Textual's own, and the same picture in the end."""

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from console.picture import Picture

WIDTH, HEIGHT = 24, 4
SCREEN = object()
STYLES = [
    Style.parse(text)
    for text in (
        "white on black", "bold #E69F00 on #0C0F12", "#E69F00 on #0C0F12", "reverse bold #D55E00 on #0C0F12",
        "underline #56B4E9 on #1B2127", "dim italic", "bold dim red", "strike on blue", "none",
    )
]  # fmt: skip
_texts = st.text("ab  0日…▶", max_size=9)
_strips = st.lists(st.tuples(_texts, st.sampled_from(STYLES)), min_size=1, max_size=5).map(
    lambda parts: Strip([Segment(*part) for part in parts]).adjust_cell_length(WIDTH, STYLES[0])
)
_spans = st.tuples(st.integers(0, HEIGHT - 1), st.integers(0, WIDTH - 1), st.integers(1, WIDTH))
_updates = st.lists(st.tuples(_strips, _spans), max_size=8)


def console(system: ColorSystem = ColorSystem.TRUECOLOR) -> Console:
    made = Console(width=WIDTH, height=HEIGHT)
    made._color_system = system
    return made


def layout(strips: list[Strip]) -> LayoutUpdate:
    return LayoutUpdate([[strip] for strip in strips], Region(0, 0, WIDTH, HEIGHT))


def chops(strip: Strip, y: int, first: int, end: int, cuts: tuple[int, ...] = (0, WIDTH)) -> ChopsUpdate:
    """A line to be drawn anew from `first` to before `end`; `cuts`: where its widgets begin and end."""
    parts = strip.divide(cuts[1:])
    lines = [dict(zip(cuts[:-1], parts, strict=True)) if at == y else {} for at in range(HEIGHT)]
    return ChopsUpdate(lines, [(y, first, end)], [list(cuts[1:])] * HEIGHT)


class Glass:
    """A terminal, and what stands on it: characters with their look, blanks without the colour nobody sees."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.Stream(self.screen)

    def show(self, text: str) -> None:
        self._stream.feed(text)

    @property
    def cells(self) -> list[list[tuple[object, ...]]]:
        return [[_look(self.screen.buffer[y][x]) for x in range(WIDTH)] for y in range(HEIGHT)]


def _look(cell: pyte.screens.Char) -> tuple[object, ...]:
    seen = (cell.reverse, cell.underscore, cell.strikethrough)
    if cell.data == " " and not any(seen):
        return (" ", cell.bg)
    return (cell.data, cell.bg, cell.fg, cell.bold, cell.italics, *seen)


@given(st.lists(_strips, min_size=HEIGHT, max_size=HEIGHT), _updates)
def test_the_terminal_ends_with_the_same_picture_as_with_all_of_it_drawn_anew(
    first: list[Strip], updates: list[tuple[Strip, tuple[int, int, int]]]
) -> None:
    picture, frugal, lavish = Picture(), Glass(), Glass()
    frugal.show(picture.change(SCREEN, layout(first)).render_segments(console()))
    lines = list(first)
    for strip, (y, start, end) in updates:
        if start < end:
            frugal.show(picture.change(SCREEN, chops(strip, y, start, end)).render_segments(console()))
            old = lines[y]
            lines[y] = Strip.join([old.crop(0, start), strip.crop(start, end), old.crop(end, WIDTH)])
    lavish.show(Picture().change(SCREEN, layout(lines)).render_segments(console()))
    assert frugal.cells == lavish.cells


@given(st.lists(_strips, min_size=HEIGHT, max_size=HEIGHT))
def test_a_whole_picture_looks_as_textual_draws_it(strips: list[Strip]) -> None:
    ours, stock = Glass(), Glass()
    ours.show(Picture().change(SCREEN, layout(strips)).render_segments(console()))
    stock.screen.set_mode(20)  # Textual goes to the next line by a line feed
    stock.show(layout(strips).render_segments(console()))
    assert ours.cells == stock.cells


def test_what_is_on_the_screen_is_not_sent_again() -> None:
    picture, strip = Picture(), Strip([Segment("sent 1,204 of 4,000     ", STYLES[1])])
    picture.change(SCREEN, layout([strip] * HEIGHT)).render_segments(console())
    assert picture.change(SCREEN, chops(strip, 2, 0, WIDTH)).render_segments(console()) == ""


def test_of_a_line_only_the_digits_that_moved_are_sent() -> None:
    picture = Picture()
    before, after = (Strip([Segment(f"sent {n:>6} of 4,000      ", STYLES[0])]) for n in ("1,204", "1,209"))
    picture.change(SCREEN, layout([before] * HEIGHT)).render_segments(console(ColorSystem.STANDARD))
    sent = picture.change(SCREEN, chops(after, 2, 0, WIDTH)).render_segments(console(ColorSystem.STANDARD))
    assert sent == "\x1b[3;11H\x1b[37;40m9\x1b[39;49m"


def test_a_part_of_one_of_two_widgets_on_a_line_is_drawn_in_its_place() -> None:
    picture, glass = Picture(), Glass()
    before, after = (Strip([Segment(char * WIDTH, STYLES[0])]) for char in "ab")
    glass.show(picture.change(SCREEN, layout([before] * HEIGHT)).render_segments(console()))
    glass.show(picture.change(SCREEN, chops(after, 1, 4, 12, (0, 9, WIDTH))).render_segments(console()))
    assert glass.screen.display == ["a" * WIDTH, "aaaa" + 8 * "b" + 12 * "a", "a" * WIDTH, "a" * WIDTH]


def test_another_screen_is_sent_whole_whatever_the_terminal_showed() -> None:
    picture, strips = Picture(), [Strip([Segment("x" * WIDTH, STYLES[0])])] * HEIGHT
    first = picture.change(SCREEN, layout(strips)).render_segments(console())
    assert first.count("x") == WIDTH * HEIGHT
    assert picture.change(SCREEN, layout(strips)).render_segments(console()) == ""
    assert picture.change(object(), layout(strips)).render_segments(console()) == first


@pytest.mark.parametrize("wide", ["日", "e\u0301"])
def test_nothing_is_left_standing_behind_a_character_of_doubtful_width(wide: str) -> None:
    picture = Picture()
    lines = (
        Strip([Segment(f"{digit} {wide} behind", STYLES[0])]).adjust_cell_length(WIDTH, STYLES[0])
        for digit in "12"
    )
    picture.change(SCREEN, layout([next(lines)] * HEIGHT)).render_segments(console())
    sent = picture.change(SCREEN, chops(next(lines), 0, 0, WIDTH)).render_segments(console())
    assert f"2 {wide} behind" in sent
