"""Who stopped a campaign: people, by pausing its numbers, or something that needs them."""

from dataclasses import replace

import pytest

from engine.author import ENGINE
from engine.control.stops import shown
from engine.postgres.desired import Desired
from tests.sending.stage import campaign, number


def told(*paused_by: str | None, state: str = "held", held_by: str = "stops", rate: float = 64.0) -> str:
    """The word for a campaign with one number for each name (None: not paused)."""
    numbers = {
        i: replace(number(rate), number_id=i, paused=who is not None, paused_by=who)
        for i, who in enumerate(paused_by)
    }
    held = replace(campaign(), state=state, held_by=held_by, numbers=tuple(numbers))
    return shown(held, Desired(1, numbers, {}))


def test_a_campaign_whose_numbers_people_paused_is_paused() -> None:
    assert told("root") == "paused"
    assert told("root", "ana@10.1.2.3") == "paused"


@pytest.mark.parametrize("numbers", [(ENGINE,), ("root", ENGINE)])
def test_a_number_that_the_engine_stops_makes_it_held(numbers: tuple[str, ...]) -> None:
    assert told(*numbers) == "held"


def test_a_number_that_a_rate_of_0_stops_makes_it_held() -> None:
    assert told("root", None, rate=0.0) == "held"


def test_once_a_number_is_free_again_it_is_no_trouble_any_more_although_its_row_still_says_held() -> None:
    assert told("root", None) == "running"
    assert told(None) == "running"


def test_a_campaign_without_numbers_stays_as_it_is() -> None:
    assert told() == "held"


def test_a_campaign_held_for_its_own_sake_stays_held_whoever_paused_its_numbers() -> None:
    assert told("root", held_by="budget") == "held"
    assert told(None, held_by="budget") == "held"
    assert told("root", state="finished") == "finished"
