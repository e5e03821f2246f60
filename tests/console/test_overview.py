"""What the overview says, in which size, and what it does when things go wrong."""

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from console.app import check_terminal
from console.widgets.chart import AcceptedChart
from console.widgets.numbers import NumbersGrid
from engine.domain.act import PauseAll
from engine.domain.snapshot import Snapshot
from tests.console.support import (
    HELD,
    NIGHT,
    a_campaign,
    a_number,
    bad_night,
    hostile,
    huge,
    normal,
    running,
)

SIZES = [(80, 24), (120, 40), (200, 50)]


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_rows_answer_the_first_questions(size: tuple[int, int]) -> None:
    async with running(bad_night(), size) as run:
        first, second = run.row(0), run.row(1)
        assert "natl-07 ▶RUNNING" in first
        assert "LIVE 0.4s" in first
        assert "eng1:4711" in first
        assert " RW " in first
        assert "!!1" in second
        assert "…0042 HELD 131048" in second
        assert "1,204,118/4,000,000 30%" in run.text()
        assert "ETA 2h26m" in run.text()
        assert "STUCK 41" in run.text()
        assert "unknown 3" in run.text()


async def test_no_line_is_wider_than_the_screen_and_the_last_one_names_the_urgent_keys() -> None:
    async with running(bad_night()) as run:
        lines = run.text().split("\n")
        assert len(lines) == 24
        assert all(key in lines[-1] for key in ("?help", "p:pause", "P:pause all", "q:leave", "Q:stop"))


@pytest.mark.parametrize("state", ["running", "paused", "held", "finished"])
async def test_row_one_says_the_campaign_s_state_in_capitals(state: str) -> None:
    async with running(normal(campaigns=(a_campaign(state=state),))) as run:
        assert state.upper() in run.row(0)


async def test_row_one_speaks_of_a_running_campaign_and_counts_the_others() -> None:
    others = (a_campaign("zz", state="held"), a_campaign("aa", state="paused"), a_campaign("mm"))
    async with running(normal(campaigns=others)) as run:
        assert "mm ▶RUNNING" in run.row(0)
        assert "+1 held +1 paused" in run.row(0)


async def test_tries_stand_beside_accepted_only_where_they_differ() -> None:
    async with running(normal()) as run:
        assert "tries" not in run.row(2)
    async with running(bad_night()) as run:
        assert "tries" in run.row(2)
        assert "41.2/58" in run.text()


async def test_the_picture_goes_stale_when_the_engine_publishes_nothing_new() -> None:
    async with running(normal()) as run:
        assert "LIVE 0.4s" in run.row(0)
        run.clock.pass_(2.0)
        await run.tick()
        assert "STALE 2.4s" in run.row(0)
        run.link.current = normal(at=run.clock.at)
        await run.tick()
        assert "LIVE 0.0s" in run.row(0)


async def test_a_wrong_clock_cannot_make_a_dead_engine_look_live() -> None:
    async with running(normal(at=NIGHT + timedelta(hours=1))) as run:
        run.clock.pass_(3.0)
        await run.tick()
        assert "STALE 3.0s" in run.row(0)


async def test_before_the_first_snapshot_the_screen_says_that_it_waits() -> None:
    async with running(None) as run:
        assert "waiting for the engine's first snapshot" in run.row(0)
        await run.press("p", "r", "P", "Q", "plus", "enter", "f", "w", "j", "G")
        assert run.link.submitted == []
        assert run.app.session.fault == ""


async def test_f_freezes_the_picture_and_f_again_shows_the_newest() -> None:
    async with running(normal()) as run:
        await run.press("f")
        run.clock.pass_(12.0)
        run.link.current = normal(at=run.clock.at, numbers=(HELD,))
        await run.tick()
        assert "FROZEN 12s" in run.row(0)
        assert "03:14:09Z" in run.row(0)
        assert "…0011" in run.text()
        await run.press("f")
        assert "LIVE" in run.row(0)
        assert "…0011" not in run.text()


async def test_bad_numbers_float_to_the_top_in_every_order() -> None:
    async with running(huge()) as run:
        for _ in range(9):
            heads = run.text().split("\n")[7:9]
            assert any("…0042" in line for line in heads)
            assert any("…0017" in line for line in heads)
            await run.press("greater_than_sign")


async def test_the_cursor_follows_its_row_when_the_order_changes() -> None:
    async with running(normal()) as run:
        await run.press("G")
        last = run.app.session.cursor
        assert last is not None
        run.link.change(last, state="held", reason="131048")
        await run.tick()
        line = next(line for line in run.text().split("\n") if line.startswith(">"))
        assert "✖" in line
        assert run.app.session.cursor == last
        assert run.text().split("\n").index(line) == 7


async def test_the_grid_scrolls_with_the_cursor_and_says_how_much_is_below() -> None:
    async with running(huge()) as run:
        assert "↓290 more" in run.text()
        await run.press("G")
        assert "more" not in run.row(5)
        assert any(line.startswith(">") for line in run.text().split("\n"))
        await run.press("pageup", "g")
        assert run.row(7).startswith(">✖")


async def test_the_grid_makes_only_the_rows_in_sight() -> None:
    async with running(huge()) as run:
        grid = run.app.overview.query_one(NumbersGrid)
        assert len(grid._lines) == grid.size.height


async def test_a_filter_shows_how_many_it_hides_and_escape_shows_all_again() -> None:
    async with running(bad_night()) as run:
        await run.press("slash", *"tim", "enter")
        assert "filter:tim (7 hidden, 2 of them bad)" in run.text()
        assert "…0042 vivo" not in run.text()
        await run.press("escape")
        assert "filter:none" in run.text()
        assert "…0042 vivo" in run.text()


async def test_a_filter_is_plain_text() -> None:
    async with running(bad_night()) as run:
        await run.press("slash", "full_stop", "asterisk", "left_square_bracket", "enter")
        assert "no number contains this text; Esc shows all 9" in run.text()


async def test_w_turns_through_the_windows() -> None:
    async with running(normal()) as run:
        seen = [run.row(4).split()[0]]
        for _ in range(5):
            await run.press("w")
            seen.append(run.row(4).split()[0])
        assert seen == ["5m", "15m", "1h", "6h", "1m", "5m"]


async def test_tab_and_digits_choose_the_panel_that_j_moves() -> None:
    async with running(bad_night()) as run:
        await run.press("2", "j")
        assert "131048 spam" in run.text()
        await run.press("tab", "tab", "tab", "tab", "j")
        assert run.row(8).startswith(">")


async def test_both_layouts_use_the_same_widgets_mounted_once() -> None:
    async with running(bad_night()) as run:
        grid, chart = run.app.overview.query_one(NumbersGrid), run.app.overview.query_one(AcceptedChart)
        assert not chart.display or chart.size.height == 0
        await run.pilot.resize_terminal(120, 40)
        await run.until(lambda: chart.size.height > 0)
        await run.tick()
        assert "BOUND BY" in run.text()
        assert "TOKW99" in run.text()
        assert "ACCEPTED/s" in run.text()
        assert "webhook lag" in run.text()
        assert run.app.overview.query_one(NumbersGrid) is grid


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (79, 24), (80, 23), (500, 3)])
async def test_below_80x24_one_line_says_the_state_and_the_pause_key(size: tuple[int, int]) -> None:
    async with running(bad_night(), size) as run:
        text = run.text()
        assert text.startswith("▶RUNNING p:pause all"[: size[0]])
        assert "NUMBERS" not in text
        await run.press("j", "plus", "enter", "r", "a", "R", "u")
        assert run.link.submitted == []
        assert run.app.session.fault == ""


async def test_below_80x24_p_pauses_everything_after_a_name_and_a_reason() -> None:
    async with running(bad_night(), (20, 5)) as run:
        await run.press("p", *"all", "enter", *"spam", "enter")
        assert run.link.submitted == [PauseAll("spam")]


@pytest.mark.parametrize("size", [*SIZES, (20, 5), (1, 1)])
async def test_hostile_text_is_shown_literally_on_every_screen(size: tuple[int, int]) -> None:
    async with running(hostile(), size) as run:
        for key in ["e", "l", "c", "h", "exclamation_mark", "enter", "r", "P", "equals_sign", "R", "ctrl+p"]:
            await run.press(key)
            shown = run.text()
            assert not [c for c in shown if c != "\n" and (ord(c) < 32 or c in "\x7f\x9b\u202e\u2066\ud800")]
            await run.press("escape", "escape", "escape")
        assert run.app.session.fault == ""
        if size == (120, 40):
            assert "[/foo] [bold red]x[/]" in run.text()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_an_empty_engine_is_a_screen_too(size: tuple[int, int]) -> None:
    empty = Snapshot(NIGHT, 1, "eng1", "eng1", 1, 0.5, "ana", read_only=False, draining=False)
    async with running(empty, size) as run:
        assert "IDLE" in run.row(0)
        assert "no alerts" in run.row(1)
        assert "no numbers yet" in run.text()
        await run.press(
            "p", "r", "plus", "minus", "equals_sign", "enter", "j", "a", "c", "escape", "e", "escape"
        )
        assert run.link.submitted == []
        assert run.app.session.fault == ""


async def test_a_fault_of_the_screen_becomes_one_line_and_the_next_tick_goes_on() -> None:
    async with running(normal()) as run:
        run.link.broken = ValueError("[/boom]\x1b[31m")
        await run.tick()
        await run.tick()
        assert "screen fault (the engine is not touched): ValueError [/boom]·[31m" in run.text()
        assert "LIVE" in run.row(0)
        await run.press("p")
        assert len(run.link.submitted) == 1
        assert "screen fault" not in run.text()


async def test_a_fault_of_one_widget_leaves_the_rest_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(normal()) as run:
        monkeypatch.setattr(NumbersGrid, "lines", lambda *_: 1 / 0)
        run.link.current = normal(in_flight=999)
        await run.tick()
        await run.tick()
        assert "ZeroDivisionError" in run.text()
        assert "inflight 999" in run.text()


async def test_a_fault_in_a_key_s_work_does_not_end_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(normal()) as run:
        monkeypatch.setattr(run.link, "submit", lambda _act: 1 / 0)
        await run.press("p")
        assert "ZeroDivisionError" in run.text()
        await run.press("e", "escape", "r")
        assert run.app.return_value is None


async def test_the_bell_rings_once_for_each_new_critical_alert(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(normal()) as run:
        rung: list[int] = []
        monkeypatch.setattr(run.app, "bell", lambda: rung.append(1))
        run.link.current = bad_night()
        for _ in range(3):
            await run.tick()
        assert len(rung) == 1


async def test_phone_numbers_are_masked_and_two_with_the_same_end_stay_apart() -> None:
    twins = (a_number("0042"), replace(a_number("0042"), id="2", display="+5511977770042"))
    async with running(normal(numbers=twins), (120, 40)) as run:
        assert "5511988880042" not in run.text()
        assert "…880042" in run.text()
        assert "…770042" in run.text()


async def test_s_exports_what_is_on_the_screen(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with running(bad_night()) as run:
        run.app.export_dir = tmp_path_factory.mktemp("shots")
        await run.press("S")
        [shot] = run.app.export_dir.iterdir()
        assert shot.read_text().startswith("<svg")
        assert "exported to" in run.text()


async def test_s_into_a_directory_that_is_not_there_is_a_sentence() -> None:
    async with running(bad_night()) as run:
        run.app.export_dir = run.app.export_dir / "no" / "such"
        await run.press("S")
        assert "not exported" in run.text()


async def test_no_color_keeps_words_glyphs_and_reverse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(bad_night()) as run:
        assert run.app.no_color
        assert ">✖‖" in run.text()
        strips = run.app.screen._compositor.render_strips()
        alarm = next(s for s in strips[1] if "!!1" in s.text)
        assert alarm.style is not None
        assert alarm.style.reverse


async def test_a_locale_without_utf8_gets_ascii_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    for size in [(80, 24), (120, 40), (30, 4)]:
        async with running(bad_night(), size) as run:
            for key in ["r", "c", "e", "question_mark", "enter", "exclamation_mark", "P", "R", "equals_sign"]:
                assert run.text().isascii()
                await run.press(key)
                assert run.text().isascii(), key
                await run.press("escape", "escape")
    async with running(bad_night()) as run:
        assert "!!||" in run.text()


@pytest.mark.parametrize("term", ["", "dumb", "unknown"])
def test_a_terminal_that_cannot_show_a_screen_is_refused_with_a_hint(term: str) -> None:
    said = check_terminal({"TERM": term}, is_tty=True)
    assert said is not None
    assert "--no-ui" in said


def test_a_redirected_output_is_refused_and_a_terminal_is_not() -> None:
    said = check_terminal({"TERM": "xterm"}, is_tty=False)
    assert said is not None
    assert "--no-ui" in said
    assert check_terminal({"TERM": "screen"}, is_tty=True) is None


async def test_the_large_layout_ticks_at_2_hz_and_the_small_at_1_hz(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(normal()) as run:
        ticks: list[float] = []
        monkeypatch.setattr(run.app, "tick", lambda: ticks.append(1.0))
        run.app._painted_at = time.monotonic() - 0.6
        run.app._on_interval()
        assert ticks == []
        run.app._painted_at = time.monotonic() - 1.0
        run.app._on_interval()
        assert ticks == [1.0]


async def test_a_terminal_that_takes_no_frames_is_sent_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(normal()) as run:
        ticks: list[float] = []
        monkeypatch.setattr(run.app, "tick", lambda: ticks.append(1.0))
        monkeypatch.setattr(run.app, "_backlog", lambda: 9)
        run.app._painted_at = float("-inf")
        run.app._on_interval()
        assert ticks == []


async def test_a_number_of_another_node_is_not_shown_as_idle() -> None:
    away = a_number(
        "0042", owner="eng2", away=True, sent_per_second=0.0, tries_per_second=0.0, token_wait=None
    )
    async with running(normal(numbers=(a_number("0011"), away)), (120, 40)) as run:
        shown = run.text()
        assert "1 on eng2: tidegate attach shows all" in shown
        row = next(line for line in shown.splitlines() if "0042" in line)
        assert " 0.0 " not in row
        assert "on eng2" in row
        await run.press("j", "enter")
        assert "it sends there, not here" in run.text()


async def test_an_alert_whose_cause_is_gone_says_since_when_and_counts_no_more() -> None:
    alerts = tuple(replace(a, active=False, cleared_at=NIGHT) for a in bad_night().alerts)
    async with running(bad_night(alerts=alerts)) as run:
        assert "cleared 03:14Z" in run.row(1)
        assert "!!" not in run.row(1)


async def test_after_a_pause_the_pace_is_compared_with_what_was_configured_in_the_same_seconds() -> None:
    one, other = a_number("0011"), a_number("0012", state="paused")
    before = normal(numbers=(one, other), rate_series=(160.0,) * 60)
    async with running(before) as run:
        assert "(99%)" in run.row(2)
