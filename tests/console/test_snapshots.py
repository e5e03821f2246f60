"""Pictures of each screen and state, compared with the ones that a person has looked at."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from console.app import ConsoleApp
from engine.domain.inspection import Answer, CodesOf, JournalOf, RowOf, RowsOf
from engine.domain.snapshot import Snapshot
from tests.console.answers import CODES, HOLDS, JOURNAL, NODES, ROWS, STORY
from tests.console.support import Clock, FakeLink, bad_night, console, hostile, normal, preview

Compare = Callable[..., bool]
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40")]
ANSWERS: dict[type[Any], Answer] = {CodesOf: CODES, RowsOf: ROWS, RowOf: STORY, JournalOf: JOURNAL}
both_sizes = pytest.mark.parametrize("size", SIZES)


def picture(
    snap_compare: Compare, snapshot: Snapshot | None, size: tuple[int, int], *keys: str, later: float = 0.0,
    then: Callable[[FakeLink], None] | None = None, answers: dict[type[Any], Answer] | None = None,
) -> bool:  # fmt: skip
    """Press keys, let time pass, compare."""
    link, clock = FakeLink(snapshot, answers=answers or {}), Clock()
    app = console(link, clock)

    async def before(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        if then is not None:
            then(link)
        clock.pass_(later)
        assert isinstance(pilot.app, ConsoleApp)
        pilot.app.tick()
        await pilot.pause()

    run_before: Callable[[Pilot[Any]], Awaitable[None]] = before
    return snap_compare(app, terminal_size=size, run_before=run_before)


@both_sizes
def test_normal(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert picture(snap_compare, normal(), size)


@both_sizes
def test_alerts_held_and_throttled(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert picture(snap_compare, bad_night(), size)


@both_sizes
def test_campaign_held(snap_compare: Compare, size: tuple[int, int]) -> None:
    held = tuple(
        replace(c, state="held", reason="131048 on all numbers", eta_s=None) for c in bad_night().campaigns
    )
    assert picture(snap_compare, bad_night(campaigns=held), size)


@both_sizes
def test_stale(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert picture(snap_compare, normal(), size, later=14.0)


@both_sizes
def test_frozen(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert picture(snap_compare, normal(), size, "f", later=14.0)


@both_sizes
def test_before_the_first_snapshot(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert picture(snap_compare, None, size, later=3.0)


@both_sizes
def test_hostile_text(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert picture(snap_compare, hostile(), size)


@both_sizes
def test_staged_rate(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert picture(snap_compare, bad_night(), size, "j", "minus")


@both_sizes
@pytest.mark.parametrize("key", ["r", "Q", "P", "equals_sign", "C"])
def test_dialogs(snap_compare: Compare, size: tuple[int, int], key: str) -> None:
    assert picture(snap_compare, bad_night(), size, key)


@both_sizes
def test_reconcile(snap_compare: Compare, size: tuple[int, int]) -> None:
    def answer(link: FakeLink) -> None:
        assert link.current is not None
        link.current = replace(link.current, reconcile={"a1": preview(note="2 rows by their policy: resend")})

    assert picture(snap_compare, bad_night(), size, "R", then=answer)


@pytest.mark.parametrize("key", ["question_mark", "e", "c", "exclamation_mark", "enter"])
def test_pages(snap_compare: Compare, key: str) -> None:
    assert picture(snap_compare, bad_night(), (80, 24), key)


@both_sizes
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("codes", ("enter", "enter")),
        ("rows", ("enter", "enter", "enter")),
        ("row", ("enter", "enter", "enter", "enter")),
        ("campaign", ("c", "enter")),
        ("holds", ("h",)),
        ("nodes", ("N",)),
        ("journal", ("J",)),
    ],
)
def test_drill_down(snap_compare: Compare, size: tuple[int, int], name: str, keys: tuple[str, ...]) -> None:
    assert picture(snap_compare, bad_night(holds=HOLDS, nodes=NODES), size, *keys, answers=ANSWERS)


@both_sizes
def test_no_color(snap_compare: Compare, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert picture(snap_compare, bad_night(), size)


@both_sizes
def test_ascii(snap_compare: Compare, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert picture(snap_compare, bad_night(), size)


@pytest.mark.parametrize("size", [pytest.param((200, 50), id="200x50"), pytest.param((40, 6), id="40x6")])
def test_other_sizes(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert picture(snap_compare, bad_night(), size)
