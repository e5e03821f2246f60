"""From a number to an error code, to the rows behind it, to one row's timeline; campaigns, holds and the journal."""

from dataclasses import replace
from datetime import timedelta

import pytest

from console.screens.campaign import CampaignScreen
from console.screens.confirm import ConfirmScreen
from console.screens.rows import CodesScreen, RowScreen, RowsScreen
from console.screens.typed import TypedScreen
from engine.domain.act import CancelCampaign, LiftHold, PauseCampaign, ResumeNumber, RetryFailed
from engine.domain.inspection import (
    CodeCount,
    Codes,
    CodesOf,
    Journal,
    JournalLine,
    JournalOf,
    NoAnswer,
    RowOf,
    Rows,
    RowsOf,
    Story,
)
from engine.domain.snapshot import Past
from tests.console.answers import CODES, HOLDS, JOURNAL, NODES, ROW, ROWS, STORY
from tests.console.support import (
    HELD,
    HOSTILE,
    NIGHT,
    FakeLink,
    Running,
    a_number,
    bad_night,
    normal,
    running,
)

SIZES = [(80, 24), (120, 40)]


def answering(link: FakeLink) -> None:
    """Everything is answered at once."""
    link.answers = {CodesOf: CODES, RowsOf: ROWS, RowOf: STORY}


async def down_to_the_row(run: Running) -> None:
    answering(run.link)
    await run.press("enter", "enter", "enter", "enter")
    assert isinstance(run.app.screen, RowScreen)


@pytest.mark.parametrize("size", SIZES)
async def test_enter_leads_from_a_number_to_a_row_s_raw_answer_and_escape_back(size: tuple[int, int]) -> None:
    async with running(bad_night(), size) as run:
        await down_to_the_row(run)
        assert run.link.asked == [
            CodesOf(None, HELD.id),
            RowsOf("natl-07", HELD.id, 131048, "failed"),
            RowOf(4711),
        ]
        shown = run.text()
        assert "FAILED 131048 spam rate limit" in shown
        assert "03:14:05.000Z" in shown
        assert "refused" in shown
        assert "Spam rate limit hit" in shown
        back = []
        for _ in range(2):
            await run.press("escape")
            back.append(type(run.app.screen))
        assert back == [RowsScreen, CodesScreen]
        await run.press("escape", "escape")
        assert run.on_overview


async def test_the_cursor_chooses_the_code_and_the_row() -> None:
    async with running(bad_night()) as run:
        answering(run.link)
        await run.press("enter", "enter", "j", "enter", "j", "enter")
        assert run.link.asked[1:] == [RowsOf("natl-07", HELD.id, 131026, "failed"), RowOf(4712)]


async def test_a_question_that_stays_open_blocks_nothing_and_its_answer_appears_by_itself() -> None:
    async with running(bad_night()) as run:
        await run.press("enter", "enter")
        assert "asking the database" in run.text()
        await run.press("escape", "escape", "p")
        assert len(run.link.submitted) == 1


async def test_no_answer_says_why() -> None:
    async with running(bad_night()) as run:
        run.link.answers[CodesOf] = NoAnswer("the database is away (OSError)")
        await run.press("enter", "enter")
        assert "the database is away" in run.text()


async def test_v_asks_for_the_phone_number_and_read_only_does_not() -> None:
    async with running(bad_night()) as run:
        await down_to_the_row(run)
        run.link.answers[RowOf] = replace(STORY, row=replace(ROW, phone="+5511988880001"))
        await run.press("v")
        assert run.link.asked[-1] == RowOf(4711, reveal=True)
        assert "+5511988880001" in run.text()
    async with running(bad_night(read_only=True)) as run:
        await down_to_the_row(run)
        await run.press("v")
        assert run.link.asked[-1] == RowOf(4711)
        assert "read-only" in run.text()


async def test_errors_lead_to_the_rows_of_all_numbers() -> None:
    async with running(bad_night()) as run:
        answering(run.link)
        await run.press("2", "enter")
        assert run.link.asked == [CodesOf(None, None)]


@pytest.mark.parametrize("size", SIZES)
async def test_a_campaign_shows_books_funnel_and_reasons_and_can_be_acted_on(size: tuple[int, int]) -> None:
    async with running(normal(), size) as run:
        answering(run.link)
        await run.press("c", "enter")
        assert isinstance(run.app.screen, CampaignScreen)
        shown = run.text()
        assert "delivered" in shown
        assert "902,581" in shown, "delivered and read"
        assert "131026" in shown
        await run.press("p")
        assert run.link.submitted == [PauseCampaign("natl-07")]
        await run.press("F")
        assert isinstance(run.app.screen, TypedScreen)
        await run.press("escape")
        assert len(run.link.submitted) == 1


async def test_a_campaign_says_how_many_rows_will_miss_its_deadline() -> None:
    shown = normal()
    late = replace(shown.campaigns[0], deadline=NIGHT + timedelta(hours=1), late=1_234)
    async with running(replace(shown, campaigns=(late, *shown.campaigns[1:])), (120, 40)) as run:
        answering(run.link)
        await run.press("c", "enter")
        assert "1,234 rows will miss it" in run.text()


async def test_a_campaign_says_what_keeps_it_from_its_end() -> None:
    shown = normal()
    waiting = replace(
        shown.campaigns[0], waits=("a person: 3 rows kept aside: `tidegate rows list --twins`",)
    )
    async with running(replace(shown, campaigns=(waiting, *shown.campaigns[1:])), (120, 40)) as run:
        answering(run.link)
        await run.press("c", "enter")
        assert "waits for a person: 3 rows kept aside" in run.text()


@pytest.mark.parametrize(
    ("key", "act"),
    [("x", CancelCampaign("natl-07", "why")), ("F", RetryFailed("natl-07", "why"))],
)
async def test_cancel_and_retry_ask_for_the_name_and_a_reason(key: str, act: object) -> None:
    async with running(normal()) as run:
        answering(run.link)
        await run.press("c", "enter", key)
        await run.press(*(c if c != "-" else "minus" for c in "natl-07"), "enter", *"why", "enter")
        assert run.link.submitted == [act]


async def test_a_hold_is_lifted_after_a_question_and_a_pause_by_the_engine_is_resumed() -> None:
    async with running(bad_night(holds=HOLDS)) as run:
        await run.press("h", "enter")
        assert isinstance(run.app.screen, ConfirmScreen)
        assert "payment issue" in run.text()
        await run.press("y", *"paid", "enter")
        assert run.link.submitted == [LiftHold(7, "account 102290129340398", "paid")]
        await run.press("j", "enter", "y", *"seen", "enter")
        assert run.link.submitted[1] == ResumeNumber(HELD.id, "seen")


async def test_a_hold_that_changed_meanwhile_is_not_lifted() -> None:
    async with running(bad_night(holds=HOLDS)) as run:
        await run.press("h", "enter")
        run.link.current = bad_night(holds=(replace(HOLDS[0], code=131031), HOLDS[1]))
        await run.press("y")
        assert run.link.submitted == []
        assert "changed meanwhile" in run.text()


async def test_the_journal_shows_what_others_did() -> None:
    async with running(normal()) as run:
        run.link.answers[JournalOf] = JOURNAL
        await run.press("J")
        shown = run.text()
        assert "bob@10.0.0.7" in shown
        assert "80→40" in shown
        assert "refused: no" in shown


@pytest.mark.parametrize("size", SIZES)
async def test_a_dead_node_is_named_dead(size: tuple[int, int]) -> None:
    async with running(bad_night(nodes=NODES), size) as run:
        await run.press("N")
        shown = run.text()
        assert "NODES 2, 1 DEAD" in shown
        assert "DEAD, no sign for 40s" in shown
        assert "eng1 (h1:11) snapshot 0s old" in shown


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_in_answers_is_only_text(text: str) -> None:
    row = replace(ROW, campaign=text, phone=text, reason=text, number=text)
    async with running(bad_night()) as run:
        run.link.answers = {
            CodesOf: Codes((CodeCount(1, text, text, text, 1),)),
            RowsOf: Rows((row,), more=True),
            RowOf: Story(row, tuple(replace(t, raw=text, outcome=text, wamid=text) for t in STORY.tries)),
            JournalOf: Journal((JournalLine(NIGHT, text, text, text, text, text, text, text, text),)),
        }
        for keys in (("enter", "enter"), ("enter",), ("enter",), ("J",)):
            await run.press(*keys)
            assert run.app.session.fault == ""
            assert "\x1b" not in run.text()


async def test_enter_on_panel_3_lists_the_rows_without_an_answer_and_opens_their_timeline() -> None:
    async with running(bad_night()) as run:
        answering(run.link)
        await run.press("3", "enter")
        assert run.link.asked == [RowsOf(unsettled=True)]
        assert "unknown, or sending for more than 2 min" in run.text()
        await run.press("enter")
        assert isinstance(run.app.screen, RowScreen)


async def test_the_trends_page_follows_the_window() -> None:
    past = Past(figures={"unknown": ((1.0,), (2.0, 3.0), (), (), ())})
    async with running(normal(past=past), (120, 40)) as run:
        await run.press("t")
        assert "TRENDS of 5m" in run.text()
        line = next(line for line in run.text().splitlines() if line.startswith(" unknown"))
        assert line.split()[1:4] == ["3", "2", "3"]
        await run.press("w")
        assert "TRENDS of 15m" in run.text()


async def test_a_throttled_number_is_bound_by_the_provider_and_no_raise_is_advised() -> None:
    slowed = a_number("0011", state="slowed", ceiling=25.0, bound_by="provider")
    async with running(normal(numbers=(slowed,)), (120, 40)) as run:
        assert "provider" in next(line for line in run.text().splitlines() if "0011" in line)
        await run.press("d")
        assert "bound by    provider: it grants about 25 of 80/s" in run.text()
        assert "raise it with +" not in run.text()
