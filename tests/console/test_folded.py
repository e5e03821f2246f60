"""At 80 columns what to do is never what is cut off."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console.line import Line
from console.screens.number import BOUNDS
from console.screens.rows import RowScreen
from engine.domain.errors import describe
from engine.domain.inspection import RowOf, Story
from engine.domain.snapshot import AlertView
from tests.console.answers import STORY
from tests.console.support import NIGHT, a_campaign, a_number, normal, running

LONG = (
    "look at the phone number's quality in the manager, stop the template that people report, and only then r"
)


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_line_that_fits_is_left_as_it_is() -> None:
    line = Line("short", "strong")
    assert line.folded(5) == [line]


def test_a_line_is_broken_between_words_and_keeps_its_roles() -> None:
    line = Line("one two ", "strong").add("three four", "warning")
    folded = line.folded(9, 2)
    assert [one.plain.rstrip() for one in folded] == ["one two", "  three", "  four"]
    assert ("three", "warning") in folded[1].parts


LETTERS = st.characters(codec="utf-8", exclude_categories=["C", "Z", "M"])


@given(st.lists(st.text(LETTERS, min_size=1)), st.integers(20, 90))
def test_nothing_is_lost_and_nothing_is_wider_than_the_screen(parts: list[str], width: int) -> None:
    line = Line(" ".join(parts))
    folded = line.folded(width)
    assert all(cell_len(one.plain.rstrip()) <= width for one in folded)
    assert "".join("".join(one.plain.split()) for one in folded) == "".join(line.plain.split())


async def test_the_advice_of_an_alert_is_whole() -> None:
    alert = AlertView("k", "critical", "1065403522", "HELD 131048 spam rate limit", LONG, NIGHT, True, False)
    async with running(normal(alerts=(alert,))) as run:
        await run.press("exclamation_mark")
        await run.until(lambda: LONG in words(run.text()))


async def test_what_a_campaign_waits_for_is_told_with_the_whole_command() -> None:
    wait = "evidence or a person: 14 unknown rows: `tidegate reconcile --campaign natl-07 --dry-run`, and then again"
    async with running(normal(campaigns=(a_campaign(waits=(wait,)),))) as run:
        await run.press("c")
        await run.until(lambda: f"waits for {wait}" in words(run.text()))
        await run.press("enter")
        await run.until(lambda: f"waits for {wait}" in words(run.text()) and "CAMPAIGN natl-07" in run.text())


async def test_a_row_with_a_code_says_what_to_do() -> None:
    assert STORY.row is not None
    row = replace(STORY.row, code=131048, reason="spam rate limit", state="failed")
    async with running(normal()) as run:
        run.link.answers[RowOf] = Story(row, STORY.tries)
        run.app.push_screen(RowScreen(run.app.session, row.id))
        await run.until(lambda: words(describe(131048).advice) in words(run.text()))


@pytest.mark.parametrize("bound", ["no node", "lease"])
async def test_a_number_that_nobody_sends_from_says_what_to_do(bound: str) -> None:
    async with running(normal(numbers=(a_number("0011", bound_by=bound, owner=None),))) as run:
        await run.press("enter")
        await run.until(lambda: BOUNDS[bound] in words(run.text()))
