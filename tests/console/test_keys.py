"""The guard against pastes and held keys, and the one table of keys."""

import asyncio
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from console.guard import KeyGuard, Kind, Verdict
from console.keys import ACTIONS, BEGIN, END, KEY_LINE, LEAVING, PAGES_ONLY, Level, by_name, markdown
from console.screens.overview import OverviewScreen
from console.screens.page import PageScreen
from console.screens.typed import TypedScreen
from engine.domain.act import PauseNumber
from tests.console.support import HELD, Running, bad_night, normal, running


def press_all(guard: KeyGuard, keys: str, gap: float, start: float = 0.0) -> list[Verdict]:
    """Letters pressed at a steady pace; j and k move, + steps."""
    kinds = {"j": Kind.MOVE, "k": Kind.MOVE, "+": Kind.STEP}
    return [guard.press(key, kinds.get(key, Kind.ONCE), start + i * gap) for i, key in enumerate(keys)]


def test_keys_at_a_hand_s_pace_wait_their_moment_and_count() -> None:
    assert press_all(KeyGuard(), "prua", 0.2) == [Verdict.WAIT] * 4


def test_a_different_key_within_the_moment_is_no_hand() -> None:
    assert press_all(KeyGuard(), "ry", 0.001) == [Verdict.WAIT, Verdict.BURST]


def test_more_than_twenty_changes_of_key_a_second_are_a_burst() -> None:
    verdicts = press_all(KeyGuard(), "pr" * 15, 0.04)
    assert Verdict.BURST not in verdicts[:20]
    assert set(verdicts[20:]) == {Verdict.BURST}


def test_after_a_quiet_second_keys_count_again() -> None:
    guard = KeyGuard()
    press_all(guard, "pr" * 15, 0.04)
    assert guard.press("p", Kind.ONCE, 10.0) is Verdict.WAIT


def test_a_held_key_acts_once_however_long_it_is_held() -> None:
    guard = KeyGuard()
    assert guard.press("u", Kind.ONCE, 0.0) is Verdict.WAIT
    repeats = [guard.press("u", Kind.ONCE, 0.5 + i / 30) for i in range(90)]
    assert set(repeats) == {Verdict.HELD}


def test_a_held_arrow_moves_on_and_an_act_after_it_counts() -> None:
    guard = KeyGuard()
    assert set(press_all(guard, "j" * 60, 1 / 30)) == {Verdict.PASS}
    assert guard.press("p", Kind.ONCE, 2.2) is Verdict.WAIT


def test_a_rate_may_be_stepped_quickly_by_hand() -> None:
    assert set(press_all(KeyGuard(), "+" * 8, 0.1)) == {Verdict.WAIT}


async def test_a_key_acts_after_its_moment() -> None:
    async with running(bad_night(), guard=KeyGuard()) as run:
        await run.pilot.press("p")
        await run.until(lambda: bool(run.link.submitted))
        assert run.link.submitted == [PauseNumber(HELD.id)]


async def burst(run: Running, text: str) -> None:
    """Keys as they come from a terminal without bracketed paste: all in one read."""
    for char in text:
        name = {"\r": "enter"}.get(char, char)
        run.app.post_message(events.Key(name, char))
    await run.pilot.pause()
    async with asyncio.timeout(60):
        while run.app._waiting_key is not None:
            await run.pilot.pause()


@pytest.mark.parametrize(
    "pasted", ["ry", "py\r", "Aap", "Qall\rreason\r", "P" + "all\r" * 8, "uuuurrrryyyy", "q\r"]
)
async def test_an_unbracketed_paste_acts_on_nothing_and_is_said(pasted: str) -> None:
    async with running(bad_night(), guard=KeyGuard()) as run:
        await burst(run, pasted)
        assert run.link.submitted == []
        assert run.app.return_value is None
        assert "faster than a hand types" in run.text(run.app.overview)


async def test_a_bracketed_paste_acts_on_nothing_and_is_said() -> None:
    async with running(bad_night()) as run:
        run.app.post_message(events.Paste("pPQ\nall\ny"))
        await run.pilot.pause()
        assert run.link.submitted == []
        assert run.on_overview
        assert "pasted text never acts" in run.text()


async def test_a_name_cannot_be_pasted_but_a_reason_can() -> None:
    async with running(bad_night()) as run:
        await run.press("Q")
        run.app.post_message(events.Paste("all"))
        await run.pilot.pause()
        assert isinstance(run.app.screen, TypedScreen)
        assert run.app.screen.query_one("#name", Input).value == ""
        await run.press("a", "l", "l", "enter")
        run.app.post_message(events.Paste("INC-4711"))
        await run.pilot.pause()
        assert run.app.screen.query_one("#reason", Input).value == "INC-4711"


@pytest.mark.parametrize("mode", ["run", "attach", "demo"])
async def test_ctrl_c_says_exactly_what_q_and_capital_q_do(mode: str) -> None:
    async with running(normal(), (200, 50), mode=mode) as run:  # type: ignore[arg-type]
        await run.press("ctrl+c")
        assert LEAVING[mode].replace("\n", " ") in run.text()
        assert run.app.return_value is None


@pytest.mark.parametrize(("mode", "left"), [("run", "headless"), ("attach", "quit"), ("demo", "quit")])
async def test_q_leaves_the_screen_as_its_mode_says(mode: str, left: str) -> None:
    async with running(normal(), mode=mode) as run:  # type: ignore[arg-type]
        await run.press("q")
        assert run.app.return_value == left
        assert run.link.submitted == []


async def test_q_after_the_engine_has_ended_does_not_promise_a_headless_engine() -> None:
    async with running(normal()) as run:
        run.link.end = "finished"
        await run.press("q")
        assert run.app.return_value == "quit"


async def test_escape_never_quits() -> None:
    async with running(normal()) as run:
        await run.press("escape", "escape", "escape")
        assert run.app.return_value is None
        assert run.on_overview


@pytest.mark.parametrize("key", ["e", "l", "c", "h", "exclamation_mark", "question_mark", "enter"])
@pytest.mark.parametrize("way_back", ["escape", "q"])
async def test_a_page_opens_and_goes_back_to_the_overview(key: str, way_back: str) -> None:
    async with running(bad_night()) as run:
        await run.press(key)
        assert isinstance(run.app.screen, PageScreen)
        assert "▶RUNNING" in run.text()
        await run.press("j", "k", "G", "g", "pagedown", "pageup", way_back)
        assert run.on_overview
        assert run.app.return_value is None


async def test_help_shows_every_key_of_the_table() -> None:
    async with running(normal(), (120, 80)) as run:
        await run.press("question_mark")
        shown = run.text()
        assert [a.help for a in ACTIONS if a.help not in shown] == []


def test_every_action_of_the_table_is_done_by_some_screen() -> None:
    everywhere = {
        "help",
        "events",
        "log",
        "campaigns",
        "alerts",
        "holds",
        "journal",
        "nodes",
        "trends",
        "export",
        "freeze",
        "palette",
        "interrupt",
    }
    bound = {str(b.action) for b in OverviewScreen.BINDINGS}  # type: ignore[union-attr]
    assert {a.name for a in ACTIONS if f"key('{a.name}')" not in bound} == everywhere | set(PAGES_ONLY)


def test_no_key_needs_a_function_key_alt_or_a_terminal_s_own_control_key() -> None:
    keys = {key for action in ACTIONS for key in action.keys}
    reserved = {"ctrl+a", "ctrl+b", "ctrl+s", "ctrl+q", "ctrl+z"}
    assert not keys & reserved
    assert not [key for key in keys if key.startswith("alt+") or key in {f"f{i}" for i in range(1, 25)}]


def test_no_key_is_given_twice() -> None:
    keys = [key for action in ACTIONS for key in action.keys]
    assert len(keys) == len(set(keys))


def test_the_readme_shows_the_table_as_it_is() -> None:
    """Made anew by `python -m console.keys README.md`."""
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    assert f"{BEGIN}\n{markdown()}{END}" in readme


def test_the_key_line_and_the_readme_table_come_from_the_table() -> None:
    assert all(by_name(name).short for name in KEY_LINE)
    assert all(f"`{action.shown}`" in markdown() for action in ACTIONS)
    assert {by_name("stop").level, by_name("pause_all").level} == {Level.L2_ALL}
    assert {by_name("cancel").level, by_name("retry_failed").level} == {Level.L2}


async def test_the_palette_runs_the_same_actions() -> None:
    async with running(bad_night()) as run:
        await run.press("ctrl+p", *"acknowledge", "space", *"all")
        await run.until(lambda: "acknowledge all alerts" in run.text())
        await run.press("enter")
        await run.until(lambda: bool(run.link.submitted) or run.on_overview)
        await run.press(*([] if run.link.submitted else ["enter"]))
        await run.until(lambda: bool(run.link.submitted))


async def test_a_key_without_effect_on_a_page_says_where_it_works() -> None:
    async with running(normal()) as run:
        await run.press("e", "p")
        assert "p works on the overview: Esc" in run.text()
        await run.press("enter")
        assert "Enter works on the overview: Esc" in run.text()
        await run.press("escape", "s")
        assert "s works on a campaign's page: c, then Enter" in run.text()
        assert run.link.submitted == []


@pytest.mark.parametrize("key", ["z", "semicolon", "f5"])
async def test_a_key_that_no_table_has_says_where_the_keys_are(key: str) -> None:
    async with running(normal()) as run:
        await run.press(key)
        assert "no such key: ? or ctrl+p" in run.text()
        await run.press("enter", key)
        assert "no such key: ? or ctrl+p" in run.text()


async def test_that_keys_were_refused_is_still_told_after_the_next_key() -> None:
    async with running(bad_night(), guard=KeyGuard()) as run:
        await burst(run, "pjr\rkj")
        await run.press("j")
        run.clock.pass_(7.0)
        await run.tick()
        assert "faster than a hand" in run.text()
        run.clock.pass_(2.0)
        await run.tick()
        assert "faster than a hand" not in run.text()
