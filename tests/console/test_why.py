"""At 80 columns the grid says in a word why each number sends no faster, and every row still fits."""

from datetime import timedelta

import pytest
from rich.cells import cell_len

from console.format import short_number
from console.why import WORDS, why
from console.widgets.numbers import COLUMNS, laid_out
from engine.domain.snapshot import NumberView
from tests.console.support import NIGHT, a_number, bad_night, normal, running


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (a_number("0001", state="paused", bound_by="hold"), "paused"),
        (a_number("0001", state="held", bound_by="hold"), "held"),
        (a_number("0001", state="waiting", bound_by="provider"), "silent"),
        (a_number("0001", state="slowed", bound_by="provider", ceiling=25.0), "ceiling"),
        (a_number("0001", state="slowed", bound_by="rows", ceiling=25.0), "rows"),
        (a_number("0001", bound_by="database"), "db"),
        (a_number("0001", bound_by="bucket"), "bucket"),
        (a_number("0001", bound_by="no node"), "no node"),
        (a_number("0001", state="waiting", bound_by="lease"), "lease"),
    ],
)
def test_the_word_is_the_state_s_or_what_binds_it_and_fits(number: NumberView, word: str) -> None:
    assert why(number, away=False) == word
    assert cell_len(word) <= 7


def test_what_another_node_sends_is_away_unless_it_is_stopped() -> None:
    assert why(a_number("0001"), away=True) == "away"
    assert why(a_number("0001", state="paused"), away=True) == "paused"


@pytest.mark.parametrize("width", [80, 120])
def test_the_columns_of_each_layout_fit_into_it(width: int) -> None:
    assert 1 + sum(cells for _, cells in laid_out(width)) <= width


def test_every_column_is_in_one_layout_at_least_and_why_stands_where_state_does_not() -> None:
    narrow, wide = ({c.head.strip() for c, _ in laid_out(width)} for width in (80, 120))
    assert narrow | wide == {c.head.strip() for c in COLUMNS}
    assert ("WHY" in narrow, "STATE" in narrow, "WHY" in wide, "STATE" in wide) == (True, False, False, True)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (611_240, "611,240"), (999_999, "999,999"), (1_000_000, "1.000M"), (2_795_627, "2.795M"),
     (99_999_999, "99.999M"), (123_456_789, "123.4M")],
)  # fmt: skip
def test_a_count_is_exact_below_a_million_and_never_wider_than_seven_cells(count: int, text: str) -> None:
    assert short_number(count) == text
    assert len(text) <= 7


async def test_at_80_columns_each_row_says_why_and_no_word_touches_its_neighbour() -> None:
    numbers = (
        *bad_night().numbers,
        a_number("0031", state="waiting", bound_by="provider"),
        a_number("0032", bound_by="database", pending=2_795_627, error_share=1.0),
    )
    async with running(normal(numbers=numbers)) as run:
        rows = {line[7:11]: line.split() for line in run.text().splitlines() if line[6:7] == "…"}
        assert rows["0042"][3] == "held"
        assert rows["0017"][3] == "ceiling"
        assert rows["0020"][3] == "paused"
        assert rows["0031"][3] == "silent"
        assert rows["0032"][3:5] == ["db", "79.6"]
        assert rows["0032"][-5:] == ["100", "131026", "2.795M", "0", "0s"]


async def test_numbers_that_wait_for_a_dead_node_s_lease_say_so_in_the_title_the_row_and_the_page() -> None:
    until = NIGHT + timedelta(seconds=8)
    reason = "silent node eng2 still has its lease"
    waiting = a_number("0042", state="waiting", reason=reason, owner=None, bound_by="lease", until=until)
    async with running(normal(numbers=(a_number("0011"), waiting))) as run:
        assert "1 wait 7s for a silent node's lease" in run.text()
        row = next(line for line in run.text().splitlines() if line[6:7] == "…" and "0042" in line)
        assert " lease " in row
        await run.press("enter")
        await run.until(lambda: f"WAITING, 7.6s more, because {reason}" in run.text())
    async with running(normal(numbers=(a_number("0011"), waiting)), (120, 40)) as run:
        row = next(line for line in run.text().splitlines() if line[6:7] == "…" and "0042" in line)
        assert " waiting 7s " in row
        assert " lease " in row


async def test_the_help_explains_the_words() -> None:
    async with running(normal(), (200, 360)) as run:
        await run.press("question_mark")
        shown = run.text()
        for word, meaning in WORDS:
            assert f"{word} " in shown
            assert meaning in shown
