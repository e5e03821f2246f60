"""How many will be late."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.domain.forecast import late

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("groups", "rate", "missed"),
    [
        ([], 10, 0),
        ([(None, 1_000_000)], 1, 0),
        ([(after(10), 100)], 10, 0),
        ([(after(10), 101)], 10, 1),
        ([(after(-10), 50)], 10, 50),
        ([(after(20), 150), (after(10), 100)], 10, 50),
        ([(after(10), 300), (after(20), 100)], 10, 200),
        ([(after(10), 100)], 0, 100),
        ([(after(10), 100), (None, 500)], 10, 0),
    ],
)
def test_the_nearest_deadline_is_served_first_and_the_rest_is_late(
    groups: list[tuple[datetime | None, int]], rate: float, missed: int
) -> None:
    assert late(groups, rate, NOON) == missed
