"""Whose turn it is: what is urgent first, nobody last for ever."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.sharing import FAIR_SHARE, Candidate, Turns

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def wants(campaign: int, priority: int = 0, minutes: float | None = None) -> Candidate:
    return Candidate(campaign, priority, None if minutes is None else NOW + timedelta(minutes=minutes))


def play(turns: Turns, candidates: list[Candidate], times: int, rows: int = 10) -> list[int]:
    """Who was served, claim by claim."""
    served = []
    for _ in range(times):
        first = turns.order(candidates, NOW)[0]
        turns.serve(first.campaign_id, rows)
        served.append(first.campaign_id)
    return served


def test_the_highest_priority_goes_first() -> None:
    order = Turns().order([wants(1), wants(2, priority=5), wants(3, priority=-1)], NOW)
    assert [c.campaign_id for c in order] == [2, 1, 3]


def test_within_a_priority_the_nearest_deadline_to_come_goes_first_and_passed_ones_last() -> None:
    order = Turns().order([wants(1, minutes=-1), wants(2), wants(3, minutes=60), wants(4, minutes=5)], NOW)
    assert [c.campaign_id for c in order] == [4, 3, 2, 1]


def test_equals_share_alike() -> None:
    served = play(Turns(), [wants(1), wants(2), wants(3)], 300)
    assert all(97 <= served.count(campaign) <= 103 for campaign in (1, 2, 3))


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.one_of(st.none(), st.floats(-60, 60))), min_size=1, max_size=12)
)
def test_nobody_starves(given_: list[tuple[int, float | None]]) -> None:
    candidates = [wants(i, priority, minutes) for i, (priority, minutes) in enumerate(given_)]
    served = play(Turns(), candidates, FAIR_SHARE * len(candidates))
    assert set(served) == set(range(len(candidates)))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_nine_turns_of_ten_go_to_the_highest_priority(priorities: list[int]) -> None:
    candidates = [wants(i, priority) for i, priority in enumerate(priorities)]
    served = play(Turns(), candidates, 100)
    highest = {i for i, priority in enumerate(priorities) if priority == max(priorities)}
    assert sum(campaign in highest for campaign in served) >= 90


def test_a_newcomer_starts_level() -> None:
    turns = Turns()
    play(turns, [wants(1), wants(2)], 1000)
    served = play(turns, [wants(1), wants(2), wants(3)], 30)
    assert 9 <= served.count(3) <= 11


def test_one_that_had_nothing_for_long_comes_back_level() -> None:
    turns = Turns()
    play(turns, [wants(3)], 5)
    play(turns, [wants(1, priority=9), wants(2)], 1000)
    served = play(turns, [wants(1, priority=9), wants(2), wants(3)], 100)
    assert abs(served.count(2) - served.count(3)) <= 1
    assert served.count(2) >= 4


def test_a_turn_without_rows_counts_for_nothing() -> None:
    turns = Turns()
    turns.order([wants(1), wants(2)], NOW)
    turns.serve(1, 0)
    assert turns.order([wants(1), wants(2)], NOW)[0].campaign_id == 1


def test_the_order_keeps_every_candidate_once() -> None:
    turns = Turns()
    candidates = [wants(i, i % 3, None if i % 2 else i - 4.0) for i in range(9)]
    for _ in range(25):
        assert sorted(c.campaign_id for c in turns.order(candidates, NOW)) == list(range(9))
