"""The proof of the ceiling finds every window that holds too much, and no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.windows import SECOND, Send, Windows, allowed


def send(
    at: int, *, epoch: int = 1, rate: float = 3, limit: float = 5, campaign: bool = True, error: int = 0
) -> Send:
    return Send(epoch, at, at, error, campaign, rate, limit)


def checked(sends: list[Send]) -> Windows:
    check = Windows()
    for one in sends:
        check.add(one)
    return check


def brute(sends: list[Send]) -> int:
    """Breaches by looking at every window from the start."""
    found = 0
    for last in range(len(sends)):
        t = sends[last]
        inside = [s for s in sends[: last + 1] if t.mono - SECOND < s.mono]
        found += t.campaign and sum(s.campaign for s in inside) > allowed(t.rate)
        found += len(inside) > allowed(t.limit)
    return found


@given(
    st.lists(
        st.tuples(st.integers(0, 4 * SECOND), st.booleans(), st.sampled_from([0.2, 1, 2.5, 4])), max_size=40
    )
)
def test_it_agrees_with_looking_at_every_window(drawn: list[tuple[int, bool, float]]) -> None:
    sends = [send(at, campaign=campaign, rate=rate) for at, campaign, rate in sorted(drawn)]
    check = checked(sends)
    assert check.breaches == brute(sends)
    assert check.sends == len(sends)
    assert (check.first is None) == (check.breaches == 0)


def test_a_window_is_open_at_its_start_and_closed_at_its_end() -> None:
    assert checked([send(0), send(1), send(2), send(SECOND)]).breaches == 0
    assert checked([send(0), send(1), send(2), send(SECOND - 1)]).breaches == 1


def test_a_slow_number_may_send_one() -> None:
    assert checked([send(0, rate=0.2), send(SECOND, rate=0.2)]).breaches == 0
    assert checked([send(0, rate=0.2), send(SECOND - 1, rate=0.2)]).breaches == 1


def test_conversations_count_against_the_limit_alone() -> None:
    talk = [send(at, campaign=False) for at in range(5)]
    assert checked(talk).breaches == 0
    over = checked([*talk, send(6)])
    assert over.breaches == 1
    assert over.first is not None
    assert (over.first.kind, over.first.count, over.first.allowed) == ("limit", 6, 5)


def test_the_fullest_window_is_the_one_that_used_the_largest_share() -> None:
    check = checked(
        [send(0, rate=10), send(1, rate=10), send(5 * SECOND, rate=2), send(5 * SECOND + 1, rate=2)]
    )
    assert (check.worst, check.worst_allowed, check.share, check.worst_at) == (2, 2, 1.0, 5 * SECOND + 1)


def test_the_busiest_window_is_told_apart_from_the_fullest() -> None:
    slow = [send(0, rate=2), send(1, rate=2)]
    fast = [send(5 * SECOND + at, rate=64) for at in range(36)]
    check = checked([*slow, *fast])
    assert (check.worst, check.worst_allowed, check.worst_at) == (2, 2, 1)
    assert (check.busiest, check.busiest_allowed, check.busiest_at) == (36, 64, 5 * SECOND + 35)


def test_a_take_over_inside_a_second_is_counted_together() -> None:
    old = [Send(1, 900 + i, i, 0, True, 3, 5) for i in range(3)]
    new = Send(2, 5, 400_000, 0, True, 3, 5)
    check = checked([*old, new])
    assert check.first is not None
    assert (check.first.kind, check.first.count) == ("seam", 4)
    assert checked([*old, Send(2, 5, SECOND + 3, 0, True, 3, 5)]).breaches == 0


def test_at_a_seam_the_clocks_errors_count_in_favour_of_the_engine() -> None:
    old = [Send(1, i, i, 2_000, True, 3, 5) for i in range(3)]
    assert checked([*old, Send(2, 5, SECOND - 3_000, 2_000, True, 3, 5)]).breaches == 0
    assert checked([*old, Send(2, 5, SECOND - 5_000, 500, True, 3, 5)]).breaches == 1


def test_two_owners_at_once_are_found_from_both_sides() -> None:
    old = [Send(1, i, 500_000 + i, 0, True, 3, 5) for i in range(2)]
    new = [Send(2, i, 400_000 + i, 0, True, 3, 5) for i in range(2)]
    assert checked([*old, *new]).breaches == 1


def test_sends_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="order"):
        checked([send(5), send(4)])
    with pytest.raises(ValueError, match="order"):
        checked([send(5, epoch=2), send(6, epoch=1)])
