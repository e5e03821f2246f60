"""Pure text: figures a person can trust, and outside text that cannot hurt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console import format as fmt
from console.format import ASCII, UTF8, Glyphs
from console.line import Line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0ms"), (0.212, "212ms"), (1.94, "1.9s"), (45.9, "45s"), (662, "11m02s"), (8790, "2h26m"),
     (273_600, "3d04h"), (-5, "0ms")],
)  # fmt: skip
def test_durations_read_at_a_glance(seconds: float | None, text: str) -> None:
    assert fmt.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (9.9, "9s"), (720, "12m"), (7300, "2h"), (10**9, "99d")]
)
def test_an_age_takes_three_cells_at_most(seconds: float | None, text: str) -> None:
    assert fmt.age(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "-"), (0.0, "0%"), (0.29, "29%"), (0.9999, "99%"), (1.0, "100%"), (1.2, "120%")],
)
def test_a_hundred_percent_means_all_of_it(share: float | None, text: str) -> None:
    assert fmt.percent(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.2, "0.2"), (0.05, "0.05"), (41.25, "41.2"), (80.0, "80"), (318.4, "318")],
)
def test_rates_show_a_fraction_only_where_it_counts(value: float | None, text: str) -> None:
    assert fmt.rate(value) == text


@given(st.text(alphabet=st.characters(), max_size=60))
@pytest.mark.parametrize("glyphs", [UTF8, ASCII])
def test_clean_text_never_moves_the_cursor_and_can_be_encoded(glyphs: Glyphs, text: str) -> None:
    shown = fmt.clean(text, glyphs)
    shown.encode("ascii" if glyphs.ascii else "utf-8")
    assert not [
        c
        for c in shown
        if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029\u202e\u200f\u061c\ufeff"
    ]


@given(st.text(max_size=60), st.integers(0, 40), st.sampled_from("<>"))
def test_a_fitted_text_takes_exactly_its_cells(text: str, width: int, align: str) -> None:
    assert cell_len(fmt.fit(fmt.clean(text), width, align)) == width


@given(st.text(max_size=40), st.integers(1, 50))
def test_a_line_s_strip_is_exactly_as_wide_as_the_screen(text: str, width: int) -> None:
    from rich.style import Style

    strip = Line("x").add(fmt.clean(text), "warning").strip(width, Style())
    assert strip.cell_length == width
    assert cell_len(strip.text) == width


def test_a_full_phone_number_is_never_shown() -> None:
    assert fmt.masked("to +5511988880042 now", {}) == "to …0042 now"
    assert fmt.masked("held:10654035220042", {"10654035220042": "…0042"}) == "held:…0042"
    assert fmt.masked("error 131048 in 2026", {}) == "error 131048 in 2026"


def test_labels_are_short_and_never_the_same_for_two_numbers() -> None:
    labels = fmt.short_labels(
        {"1": "+55119990042", "2": "+55118880042", "3": "+551177", "4": "+55119990042x"}
    )
    assert labels["3"] == "…1177"
    assert len(set(labels.values())) == 4


@given(st.lists(st.floats(0, 1e6), max_size=400), st.integers(1, 400), st.integers(0, 80))
def test_sampling_keeps_the_mean_and_the_width(values: list[float], window: int, width: int) -> None:
    points = fmt.sampled(values, window, width)
    assert len(points) <= width
    recent = values[-window:]
    if points:
        assert min(recent) - 1e-6 <= min(points)
        assert max(points) <= max(recent) + 1e-6


def test_a_short_past_is_drawn_as_finely_as_it_can_be() -> None:
    assert fmt.sampled([1.0, 2.0, 3.0], 300, 60) == [1.0, 2.0, 3.0]
    assert len(fmt.sampled([1.0] * 90, 300, 60)) == 44  # means of two seconds; the running one is not full


def test_a_spark_starts_at_zero_and_a_bar_is_full_only_at_the_end() -> None:
    assert fmt.spark([0, 50, 100], UTF8.spark) == "▁▅█"
    assert fmt.spark([], UTF8.spark) == ""
    assert fmt.spark([0, 0], ASCII.spark) == "__"
    assert fmt.bar(0.999, 12, ASCII) == "[#########.]"
    assert fmt.bar(7.0, 12, ASCII) == "[##########]"


@pytest.mark.parametrize(
    ("environ", "glyphs"),
    [
        ({}, UTF8),
        ({"LANG": "en_US.UTF-8"}, UTF8),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, ASCII),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, ASCII),
        ({"LC_CTYPE": "C.UTF-8"}, UTF8),
        ({"LANG": "de_DE.ISO-8859-1"}, ASCII),
        ({"LC_ALL": "C.utf8"}, UTF8),
    ],
)
def test_the_glyphs_follow_the_locale(environ: dict[str, str], glyphs: Glyphs) -> None:
    assert fmt.glyphs_for(environ) is glyphs


def test_both_sets_have_one_sign_for_each_step_of_a_spark() -> None:
    assert len(UTF8.spark) == len(ASCII.spark) == 8
    assert all(v.isascii() for v in (getattr(ASCII, name) for name in ASCII.__slots__) if isinstance(v, str))
