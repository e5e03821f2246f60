"""Who stopped a campaign: people, by pausing its numbers, or something that needs them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.author import ENGINE
from engine.control.stops import shown
from engine.postgres.desired import Campaign, Desired


def told(*paused_by: str | None, state: str = "held", held_by: str = "stops") -> bool:
    """Of a campaign with one number for each name (None: not paused)."""
    numbers = {i: SimpleNamespace(paused=who is not None, paused_by=who) for i, who in enumerate(paused_by)}
    campaign = SimpleNamespace(state=state, held_by=held_by, numbers=tuple(numbers))
    return shown(cast("Campaign", campaign), Desired(1, cast("Any", numbers), {})) == "paused"


def test_a_campaign_whose_numbers_people_paused_is_paused_by_people() -> None:
    assert told("root")
    assert told("root", "ana@10.1.2.3")


@pytest.mark.parametrize("numbers", [(ENGINE,), ("root", ENGINE), ("root", None)])
def test_a_number_that_the_engine_or_a_hold_stops_makes_it_held(numbers: tuple[str | None, ...]) -> None:
    assert not told(*numbers)


def test_a_campaign_held_for_its_own_sake_stays_held_whoever_paused_its_numbers() -> None:
    assert not told("root", held_by="budget")
    assert not told("root", state="finished")
