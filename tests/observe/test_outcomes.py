"""How figures change over time: silence, idleness, growth, and the share that is usual."""

from datetime import timedelta

import pytest

from engine.domain.recipient import State
from engine.observe.outcomes import LEAST_SAMPLE, UNKNOWN_SECONDS, Delivered, Growth, Progress
from engine.observe.silence import LEAST, Silence
from tests.support.quiet import AT


def books(pending: int, read: int) -> dict[int, dict[State, int]]:
    return {1: dict.fromkeys(State, 0) | {State.PENDING: pending, State.READ: read}}


def test_a_number_whose_messages_nobody_answers_is_silent_from_the_moment_that_they_are_many() -> None:
    silence = Silence()
    assert silence.look(0.0, None, LEAST - 1) is None
    assert silence.look(10.0, None, LEAST) == 0.0
    assert silence.look(70.0, None, 500) == 60.0


def test_any_status_ends_the_silence_and_what_was_accepted_before_it_does_not_count_again() -> None:
    silence = Silence()
    silence.look(0.0, None, 500)
    assert silence.look(60.0, AT, 500) is None
    assert silence.look(300.0, AT, 500 + LEAST - 1) is None
    assert silence.look(310.0, AT, 500 + LEAST) == 0.0
    assert silence.look(320.0, AT + timedelta(seconds=1), 900) is None


def test_a_campaign_is_idle_only_while_rows_are_due_and_none_is_settled() -> None:
    progress = Progress()
    progress.see(0.0, books(10, 0), {1})
    progress.see(60.0, books(10, 0), {1})
    assert progress.idle(60.0, 1) == 60.0
    progress.see(61.0, books(9, 1), {1})
    assert progress.idle(61.0, 1) == 0.0
    progress.see(100.0, books(9, 1), set())  # all that is left waits for its time
    assert progress.idle(100.0, 1) == 0.0
    assert progress.idle(100.0, 2) == 0.0


def test_rows_that_come_back_to_pending_are_no_stand_still() -> None:
    progress = Progress()
    progress.see(0.0, books(5, 5), {1})
    progress.see(30.0, books(6, 4), {1})
    assert progress.idle(30.0, 1) == 0.0


def test_the_pace_is_what_was_settled_a_second_during_the_last_minute() -> None:
    progress = Progress()
    for second in range(120):
        progress.see(float(second), books(1000 - 5 * second, 5 * second), {1})
    assert progress.pace(1) == 5.0
    assert progress.pace(2) is None


def test_growth_is_counted_from_the_lowest_of_the_last_ten_minutes() -> None:
    growth = Growth()
    for second, unknown in ((0, 40), (100, 10), (200, 35)):
        growth.see(float(second), {7: unknown})
    assert growth.of(7) == 25
    growth.see(101 + UNKNOWN_SECONDS, {7: 35})
    assert growth.of(7) == 0
    growth.see(200 + UNKNOWN_SECONDS, {})
    assert growth.of(7) == 0
    assert growth.of(8) == 0


def test_a_campaigns_norm_is_the_best_that_it_has_shown() -> None:
    delivered = Delivered(assumed=0.5)
    assert (delivered.share(1), delivered.norm(1)) == (None, None)
    for got in (180, 60):
        delivered.see({1: (200, got)})
    assert delivered.share(1) == pytest.approx(0.3)
    assert delivered.norm(1) == pytest.approx(0.9)


def test_a_campaign_that_was_never_delivered_is_compared_with_the_norm_that_is_assumed() -> None:
    delivered = Delivered(assumed=0.5)
    delivered.see({1: (200, 0)})
    assert (delivered.share(1), delivered.norm(1)) == (0.0, 0.5)


def test_a_handful_of_sends_is_not_judged() -> None:
    delivered = Delivered(assumed=0.5)
    delivered.see({1: (LEAST_SAMPLE - 1, 0)})
    assert delivered.share(1) is None
