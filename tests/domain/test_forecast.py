"""How many will be late."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.domain.forecast import asleep, done_at, late
from engine.domain.quiet import parse_quiet

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


NIGHT = parse_quiet("21:00-08:00")


@pytest.mark.parametrize(
    ("hours", "zones", "end"),
    [
        (1.0, ["UTC"], "2026-07-01T13:00"),
        (9.0, ["UTC"], "2026-07-01T21:00"),
        (10.0, ["UTC"], "2026-07-02T09:00"),
        (23.0, ["UTC"], "2026-07-03T09:00"),
        (9.0, ["UTC", "Europe/Berlin"], "2026-07-02T08:00"),  # in Berlin it is night two hours sooner
        (13.0 * 100, ["UTC"], "2026-10-09T12:00"),  # a hundred days of thirteen hours
    ],
)
def test_quiet_hours_are_no_time_for_sending(hours: float, zones: list[str], end: str) -> None:
    found = done_at(hours * 3600, NIGHT, zones, NOON)
    assert found is not None
    assert found.isoformat(timespec="minutes") == f"{end}+00:00"


def test_without_quiet_hours_the_work_ends_when_it_is_done() -> None:
    assert done_at(90.0, None, (), NOON) == after(90)


def test_who_is_asleep_in_some_zone_at_every_hour_never_gets_there() -> None:
    # Ten zones around the world, quiet for eleven hours each: it is always night in one of them.
    around = " ".join(f"Etc/GMT{n:+d}" for n in range(-12, 13, 3))
    assert done_at(60.0, NIGHT, [around], NOON) is None
    assert not asleep(NIGHT, ["UTC", "Asia/Tokyo"], NOON)
    assert asleep(NIGHT, ["Asia/Tokyo"], NOON + timedelta(hours=2))
