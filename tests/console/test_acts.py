"""Each key to the act that it submits, and what is asked before."""

from dataclasses import replace
from datetime import timedelta

import pytest

from console.screens.confirm import ConfirmScreen
from console.screens.rate import RateScreen
from console.screens.reconcile import ReconcileScreen
from console.screens.typed import TypedScreen
from engine.domain.act import (
    AcknowledgeAlerts,
    PauseAll,
    PauseNumber,
    Reconcile,
    ResumeAll,
    ResumeNumber,
    SetRate,
    StopEngine,
)
from tests.console.support import (
    HELD,
    NIGHT,
    Running,
    a_campaign,
    a_number,
    bad_night,
    normal,
    preview,
    running,
)

SIZES = [(80, 24), (120, 40)]
WELL = normal().numbers[0].id


@pytest.mark.parametrize("size", SIZES)
async def test_p_pauses_the_number_under_the_cursor_at_once(size: tuple[int, int]) -> None:
    async with running(bad_night(), size) as run:
        await run.press("p")
        assert run.link.submitted == [PauseNumber(HELD.id)]
        await run.press("j", "p")
        assert run.link.submitted[1] == PauseNumber("10654035220017")
        assert "act#a2 PAUSE …0017 sent" in run.text()


async def test_an_act_is_shown_from_sent_to_acknowledged_to_in_effect() -> None:
    async with running(bad_night()) as run:
        await run.press("p")
        assert "act#a1 PAUSE …0042 sent" in run.text()
        run.link.answer("a1", "acknowledged", text="PAUSE …0042")
        await run.tick()
        assert "act#a1 PAUSE …0042 ack 18ms → ?" in run.text()
        run.link.answer("a1", "in effect", text="PAUSE …0042")
        await run.tick()
        assert "act#a1 PAUSE …0042 ack 18ms → in effect ✓" in run.text()
        run.link.answer("a1", "refused", text="PAUSE …0042", detail="no such number")
        await run.tick()
        assert "REFUSED ✗ no such number" in run.text()


async def test_r_resumes_a_person_s_pause_at_once_and_asks_after_a_hold() -> None:
    async with running(bad_night()) as run:
        await run.press("r")
        assert isinstance(run.app.screen, ConfirmScreen)
        assert "131048" in run.text()
        await run.press("escape", "j", "j", "r")
        assert run.link.submitted == [ResumeNumber("10654035220020")]


async def test_r_on_a_sending_number_submits_nothing_and_says_why() -> None:
    async with running(normal()) as run:
        await run.press("r")
        assert run.link.submitted == []
        assert "is active, not paused" in run.text()


async def test_only_y_accepts_a_question_and_enter_does_nothing() -> None:
    async with running(bad_night()) as run:
        await run.press("r", "enter", "space", "x")
        assert isinstance(run.app.screen, ConfirmScreen)
        assert run.link.submitted == []
        await run.press("y", "enter")
        assert run.link.submitted == []
        assert "A reason is needed" in run.text()
        await run.press(*"fixed", "enter")
        assert run.link.submitted == [ResumeNumber(HELD.id, "fixed")]
        assert run.on_overview


@pytest.mark.parametrize("way_out", ["escape", "n"])
async def test_a_question_left_by_escape_or_n_submits_nothing(way_out: str) -> None:
    async with running(bad_night()) as run:
        await run.press("r", way_out)
        assert run.on_overview
        assert run.link.submitted == []


async def test_a_question_is_refused_when_its_target_changed_meanwhile() -> None:
    async with running(bad_night()) as run:
        await run.press("r")
        run.link.change(HELD.id, reason="131031 account locked")
        await run.press("y")
        assert run.link.submitted == []
        assert "changed meanwhile" in run.text()
        await run.press("y")
        assert run.link.submitted == []


async def test_a_question_shows_live_facts() -> None:
    async with running(bad_night()) as run:
        await run.press("r")
        run.link.change(HELD.id, pending=7)
        await run.tick()
        assert "pending 7," in run.text()


async def test_a_rate_is_staged_by_five_percent_and_applied_by_enter() -> None:
    async with running(normal()) as run:
        await run.press("minus")
        assert run.link.submitted == []
        assert "80→76" in run.text()
        await run.press("minus", "enter")
        assert run.link.submitted == [SetRate(WELL, 72.0)]
        assert "80→72⏎" not in run.text()


async def test_escape_drops_a_staged_rate() -> None:
    async with running(normal()) as run:
        await run.press("minus", "escape")
        assert "80→76" not in run.text()
        await run.press("enter")
        assert run.link.submitted == []


async def test_a_small_raise_happens_at_once_and_a_raise_to_the_limit_asks() -> None:
    async with running(normal()) as run:
        await run.press("plus", "enter")
        assert run.link.submitted == [SetRate(WELL, 84.0)]
        await run.press(*["plus"] * 9)
        assert "80→100" in run.text()
        await run.press("enter")
        assert isinstance(run.app.screen, ConfirmScreen)
        assert "provider's limit" in run.text()
        await run.press("y")
        assert run.link.submitted[1] == SetRate(WELL, 100.0)


async def test_an_exact_rate_follows_the_same_levels() -> None:
    async with running(normal()) as run:
        await run.press("equals_sign", "4", "0", "enter")
        assert run.link.submitted == [SetRate(WELL, 40.0)]
        await run.press("equals_sign", "9", "9", "enter")
        assert isinstance(run.app.screen, ConfirmScreen)
        await run.press("y")
        assert run.link.submitted[1] == SetRate(WELL, 99.0)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("abc", "'abc' is not a rate"),
        ("", "'Nothing' is not a rate"),
        ("101", "above the provider's limit of 100/s"),
    ],
)
async def test_a_bad_exact_rate_gets_a_sentence_and_submits_nothing(typed: str, sentence: str) -> None:
    async with running(normal()) as run:
        await run.press("equals_sign", *typed, "enter")
        assert isinstance(run.app.screen, RateScreen)
        assert sentence in run.text()
        assert run.link.submitted == []


async def test_reconcile_shows_its_dry_run_before_y_counts() -> None:
    async with running(bad_night()) as run:
        await run.press("R")
        assert run.link.submitted == [Reconcile(None, dry_run=True)]
        await run.press("y")
        assert len(run.link.submitted) == 1
        assert run.link.current is not None
        run.link.current = replace(run.link.current, reconcile={"a1": preview()})
        await run.tick()
        assert "100 → sent" in run.text()
        assert "possible duplicates 2" in run.text()
        await run.press("enter")
        assert len(run.link.submitted) == 1
        await run.press("y")
        assert run.link.submitted[1] == Reconcile(None, dry_run=False)


async def test_a_dry_run_says_until_when_rows_wait_and_what_happens_then() -> None:
    first = NIGHT + timedelta(seconds=42)
    waiting = preview(
        to_sent=0, to_pending=0, stay_unknown=0, waiting=10, stuck_to_unknown=0,
        first=first, last=first + timedelta(minutes=5), then=(("hold", 10),),
        conditions=tuple(f"{n}: 1 row waits" for n in range(5)),
    )  # fmt: skip
    async with running(normal(at=NIGHT, unknown=10), (80, 24)) as run:
        await run.press("R")
        assert run.link.current is not None
        run.link.current = replace(run.link.current, reconcile={"a1": waiting})
        await run.tick()
        text = run.text()
        assert "dry run over 10 unknown " in text
        assert "Windows of 10 rows end: first in 42 s, all by" in text
        assert "10 for a person (hold)" in text
        assert "by itself every 15 s" in text
        assert "and 2 more" in text
        assert "Cancel (Esc)" in text
        run.link.current = replace(run.link.current, unknown=12)
        await run.tick()
        assert "dry run over 10 unknown; unknown now 12: it is made again" in run.text()


async def test_a_dry_run_is_made_again_while_rows_become_unknown_and_y_counts_under_a_fresh_one() -> None:
    async with running(bad_night()) as run:
        await run.press("R")
        assert run.link.current is not None
        run.link.current = replace(run.link.current, reconcile={"a1": preview()})
        await run.tick()
        run.link.current = replace(run.link.current, unknown=5)
        run.clock.pass_(2.5)
        await run.tick()
        assert run.link.submitted == [Reconcile(None, dry_run=True)] * 2
        run.link.current = replace(run.link.current, reconcile={"a2": preview(to_pending=77)}, unknown=6)
        await run.tick()
        assert "possible duplicates 77" in run.text()
        await run.press("y")
        assert run.link.submitted[-1] == Reconcile(None, dry_run=False)


async def test_reconcile_is_refused_when_the_unknown_rows_changed_since_an_old_dry_run() -> None:
    async with running(bad_night()) as run:
        await run.press("R")
        assert run.link.current is not None
        run.link.current = replace(run.link.current, reconcile={"a1": preview()})
        await run.tick()
        run.link.current = replace(run.link.current, unknown=5)
        run.clock.pass_(7)
        await run.press("y")
        assert Reconcile(None, dry_run=False) not in run.link.submitted
        assert "changed meanwhile" in run.text()


async def test_a_refused_dry_run_is_said_in_the_dialog() -> None:
    async with running(bad_night()) as run:
        await run.press("R")
        run.link.answer("a1", "refused", detail="the inbox is not drained")
        await run.tick()
        assert isinstance(run.app.screen, ReconcileScreen)
        assert "the inbox is not drained" in run.text()


async def type_in(run: Running, text: str) -> None:
    await run.press(*["space" if c == " " else "minus" if c == "-" else c for c in text], "enter")


async def test_stopping_asks_for_a_name_and_a_reason() -> None:
    async with running(bad_night()) as run:
        await run.press("Q")
        await type_in(run, "wrong")
        assert run.link.submitted == []
        assert 'That is not "natl-07" or "all"' in run.text()
        await run.press(*["backspace"] * 5)
        await type_in(run, "natl-07")
        await run.press("enter")
        assert "A reason is needed" in run.text()
        assert run.link.submitted == []
        await type_in(run, "bad list")
        assert run.link.submitted == [StopEngine("bad list")]


async def test_the_screen_shows_draining_and_leaves_when_the_engine_has_ended() -> None:
    async with running(bad_night()) as run:
        await run.press("Q")
        await type_in(run, "all")
        await type_in(run, "x")
        run.link.current = bad_night(draining=True)
        await run.tick()
        assert "DRAINING" in run.row(0)
        run.link.end = "drained"
        run.app.tick()
        await run.until(lambda: run.app.return_value is not None)
        assert run.app.return_value == "quit"


async def test_pausing_everything_asks_for_a_name_and_a_reason() -> None:
    async with running(bad_night()) as run:
        await run.press("P")
        await type_in(run, "all")
        await type_in(run, "spam")
        assert run.link.submitted == [PauseAll("spam")]


async def test_with_several_open_campaigns_only_all_is_a_name() -> None:
    async with running(bad_night(campaigns=(a_campaign("one"), a_campaign("two")))) as run:
        await run.press("P")
        await type_in(run, "one")
        assert isinstance(run.app.screen, TypedScreen)
        assert 'That is not "all"' in run.text()


async def test_resuming_everything_asks() -> None:
    async with running(bad_night()) as run:
        await run.press("C", "y")
        assert run.link.submitted == [ResumeAll()]


async def test_a_acknowledges_the_alert_shown_and_capital_a_all() -> None:
    async with running(bad_night()) as run:
        await run.press("a")
        assert run.link.submitted == [AcknowledgeAlerts("held:10654035220042")]
        await run.press("4", "j", "a", "A")
        assert run.link.submitted[1:] == [AcknowledgeAlerts("stuck"), AcknowledgeAlerts(None)]


async def test_u_takes_back_the_last_rate_then_the_pause_before_it() -> None:
    async with running(normal()) as run:
        await run.press("p", "minus", "enter", "u", "u", "u")
        assert run.link.submitted == [
            PauseNumber(WELL),
            SetRate(WELL, 76.0),
            SetRate(WELL, 80.0),
            ResumeNumber(WELL),
        ]
        assert "nothing to undo" in run.text()


async def test_u_leaves_a_rate_alone_that_someone_else_has_changed_since() -> None:
    async with running(normal()) as run:
        await run.press("minus", "enter")
        run.link.change(WELL, rate=55.0)
        await run.press("u")
        assert run.link.submitted == [SetRate(WELL, 76.0)]
        assert "no longer 76" in run.text()


async def test_u_forgets_after_five_minutes() -> None:
    async with running(normal()) as run:
        await run.press("p")
        run.clock.pass_(301)
        await run.press("u")
        assert run.link.submitted == [PauseNumber(WELL)]


@pytest.mark.parametrize("key", ["p", "r", "P", "Q", "R", "C", "equals_sign", "a", "A"])
async def test_a_read_only_screen_submits_nothing_and_opens_no_dialog(key: str) -> None:
    async with running(bad_night(read_only=True)) as run:
        await run.press(key)
        assert run.link.submitted == []
        assert run.on_overview
        assert "read-only" in run.text()
        assert " RO " in run.row(0)


async def test_nothing_is_submitted_after_the_engine_has_ended() -> None:
    async with running(bad_night()) as run:
        run.link.end = "killed by signal 9"
        await run.press("p")
        assert run.link.submitted == []
        assert "STOPPED" in run.row(0)


async def test_resuming_a_number_whose_rate_is_0_says_which_key_helps() -> None:
    async with running(normal(numbers=(a_number("0011", state="paused", rate=0.0),))) as run:
        await run.press("r")
        assert run.link.submitted == []
        assert "= gives it a rate" in run.text()


async def test_a_notice_is_gone_at_the_next_key() -> None:
    async with running(normal()) as run:
        await run.press("r")
        assert "not paused" in run.text()
        await run.press("j")
        assert "not paused" not in run.text()


async def test_a_finished_campaign_s_name_stops_the_engine_too() -> None:
    async with running(normal(campaigns=(a_campaign(state="finished"),))) as run:
        await run.press("Q")
        assert '"natl-07" or "all"' in run.text()
