"""Quiet hours by wall clocks, on every day of the year and on both days on which the clocks are moved."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.quiet import (
    Quiet,
    QuietRefused,
    is_quiet,
    next_change,
    open_seconds,
    parse_quiet,
    parse_zone,
)
from engine.domain.zone import zones_of

NIGHT = parse_quiet("21:00-08:00")
BERLIN, NEW_YORK, SAO_PAULO = "Europe/Berlin", "America/New_York", "America/Sao_Paulo"
ZONES = st.sampled_from(
    [BERLIN, NEW_YORK, SAO_PAULO, "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", ""]
)
MOMENTS = st.integers(0, 6 * 365 * 86_400).map(
    lambda s: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=s)
)
QUIETS = st.tuples(st.integers(0, 1439), st.integers(0, 1439)).filter(lambda p: p[0] != p[1]).map(
    lambda p: Quiet(time(*divmod(p[0], 60)), time(*divmod(p[1], 60)))
)  # fmt: skip


def at(text: str, zone: str = BERLIN) -> datetime:
    """A wall clock's moment, in UTC; `fold=1` marked by a final *."""
    wall = datetime.fromisoformat(text.rstrip("*")).replace(fold=1 if text.endswith("*") else 0)
    return wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


@pytest.mark.parametrize(
    ("wall", "quiet"),
    [
        ("2026-07-01T20:59:59", False),
        ("2026-07-01T21:00:00", True),
        ("2026-07-02T00:00:00", True),
        ("2026-07-02T07:59:59", True),
        ("2026-07-02T08:00:00", False),
    ],
)
def test_it_is_quiet_from_the_first_moment_until_before_the_last(wall: str, quiet: bool) -> None:
    assert is_quiet(NIGHT, BERLIN, at(wall)) is quiet


def test_the_same_moment_is_night_in_one_zone_and_day_in_another() -> None:
    moment = at("2026-07-01T21:30", SAO_PAULO)
    assert is_quiet(NIGHT, SAO_PAULO, moment)
    assert not is_quiet(NIGHT, "America/Rio_Branco", moment)
    assert is_quiet(NIGHT, f"{SAO_PAULO} America/Rio_Branco", moment)


@pytest.mark.parametrize(
    ("quiet", "start", "hours"),
    [
        (NIGHT, "2026-03-28T21:00", 10),  # clocks go forward: the night is an hour shorter
        (NIGHT, "2026-03-29T21:00", 11),
        (NIGHT, "2026-10-24T21:00", 12),  # and back: an hour longer
        (NIGHT, "2026-10-25T21:00", 11),
        (
            parse_quiet("00:30-02:30"),
            "2026-03-29T00:30",
            1.5,
        ),  # 02:30 never comes: it ends when 02:00 is 03:00
        (parse_quiet("02:15-02:45"), "2026-10-25T02:15", 0.5),  # comes twice,
        (parse_quiet("02:15-02:45"), "2026-10-25T02:15*", 0.5),  # and is quiet twice
    ],
)
def test_both_sides_of_a_change_of_the_clocks(quiet: Quiet, start: str, hours: float) -> None:
    begin = at(start)
    assert is_quiet(quiet, BERLIN, begin)
    assert not is_quiet(quiet, BERLIN, begin - timedelta(minutes=1))
    assert next_change(quiet, BERLIN, begin) == begin + timedelta(hours=hours)


def test_quiet_hours_that_are_left_out_by_the_clocks_do_not_come() -> None:
    quiet = parse_quiet("02:15-02:45")
    assert next_change(quiet, BERLIN, at("2026-03-29T01:00")) == at("2026-03-30T02:15")


@given(quiet=QUIETS, zone=ZONES, moment=MOMENTS)
def test_the_next_change_is_the_first(quiet: Quiet, zone: str, moment: datetime) -> None:
    turn = next_change(quiet, zone, moment)
    assert turn is not None
    now = is_quiet(quiet, zone, moment)
    assert is_quiet(quiet, zone, turn) is not now
    assert moment < turn <= moment + timedelta(hours=49)
    steps = int((turn - moment) / timedelta(minutes=7))
    assert all(is_quiet(quiet, zone, moment + timedelta(minutes=7 * n)) is now for n in range(steps))


@given(quiet=QUIETS, zone=ZONES, moment=MOMENTS, hours=st.integers(1, 60))
def test_open_time_is_counted_as_the_clocks_show_it(
    quiet: Quiet, zone: str, moment: datetime, hours: int
) -> None:
    start = moment.replace(second=0, microsecond=0)
    end = start + timedelta(hours=hours)
    minutes = (start + timedelta(minutes=n) for n in range(hours * 60))
    assert open_seconds(quiet, zone, start, end) == 60 * sum(not is_quiet(quiet, zone, m) for m in minutes)


def test_zones_so_far_apart_that_one_always_sleeps_are_never_open() -> None:
    zones = "Asia/Tokyo Europe/London America/Los_Angeles Pacific/Honolulu Asia/Kolkata"
    assert next_change(parse_quiet("18:00-12:00"), zones, at("2026-07-01T12:00")) is None


@pytest.mark.parametrize("text", ["21-8", "21:00", "25:00-08:00", "21:00-08:60", "", "21:00-21:00"])
def test_what_are_no_quiet_hours_is_refused(text: str) -> None:
    with pytest.raises(QuietRefused):
        parse_quiet(text)


@pytest.mark.parametrize("text", ["Mars/Base", "", "../etc/passwd", "/etc/passwd", "America"])
def test_what_is_no_zone_is_refused(text: str) -> None:
    with pytest.raises(QuietRefused, match="no time zone"):
        parse_zone(text)
    assert parse_zone("recipient") == "recipient"


@pytest.mark.parametrize(
    ("phone", "zones"),
    [
        ("+5511988880001", "America/Sao_Paulo"),
        ("+5592988880001", "America/Manaus"),
        ("+5568988880001", "America/Rio_Branco"),
        ("+12025550123", "America/New_York"),
        ("+13105550123", "America/Los_Angeles"),
        ("+491701234567", "Europe/Berlin"),
        ("+525512345678", "America/Mexico_City"),
        ("+5215512345678", "America/Mexico_City"),  # as it was written before 2020
        ("+18005550123", ""),  # toll-free: of no area
    ],
)
def test_a_number_tells_the_zone_of_its_area(phone: str, zones: str) -> None:
    assert zones_of(phone) == zones
