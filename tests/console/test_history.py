"""Which series a window is drawn from."""

from dataclasses import replace

from console.history import history
from tests.console.support import normal, running, wave


def test_an_hour_is_drawn_from_seconds_and_six_hours_from_minutes() -> None:
    snapshot = normal(accepted_minutes=tuple(float(i) for i in range(360)))
    assert history(snapshot, "accepted", 3600).step == 1
    long = history(snapshot, "accepted", 21600)
    assert (long.step, len(long.values), long.seconds) == (60, 360, 21600)


def test_a_young_engine_is_drawn_from_the_seconds_that_it_has() -> None:
    young = normal(accepted_series=(1.0,) * 150, accepted_minutes=(1.0, 1.0))
    assert history(young, "accepted", 21600).values == (1.0,) * 150


def test_minutes_take_over_where_an_attached_node_publishes_few_seconds() -> None:
    attached = normal(accepted_series=(1.0,) * 300, accepted_minutes=(2.0,) * 60)
    assert history(attached, "accepted", 900).values == (2.0,) * 15
    assert history(attached, "accepted", 300).values == (1.0,) * 300


async def test_a_window_of_six_hours_says_how_much_of_it_is_kept() -> None:
    snapshot = replace(normal(), accepted_minutes=wave(240, 600.0, 50.0), rate_minutes=(640.0,) * 240)
    async with running(snapshot) as run:
        await run.press("w", "w", "w")
        assert "6h now" in run.row(4)
        assert "(4h" in run.row(4)
