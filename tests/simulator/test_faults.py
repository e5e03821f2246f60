"""Which request meets which rule."""

from __future__ import annotations

from random import Random

import pytest

from engine.simulator.faults import Faults
from engine.simulator.scenario import Match, Rule

NUMBER = "106540352242922"
TO = "5511988880001"


def met(
    rule_match: Match, requests: int = 10, *, number: str = NUMBER, to: str = TO, at_us: int = 0
) -> list[int]:
    """The places, from 1, of the requests that the rule took."""
    faults = Faults([Rule(do="slow", match=rule_match)], Random(3), since_us=0)
    return [n for n in range(1, requests + 1) if faults.at_message(number, to, at_us)]


def test_a_rule_without_conditions_takes_every_request() -> None:
    assert met(Match(), 3) == [1, 2, 3]


def test_every_takes_each_nth_request() -> None:
    assert met(Match(every=3)) == [3, 6, 9]


def test_every_counts_only_requests_that_satisfy_the_other_conditions() -> None:
    faults = Faults([Rule(do="slow", match=Match(every=2, number=NUMBER))], Random(3), since_us=0)
    took = [
        faults.at_message(number, TO, 0) is not None for number in (NUMBER, "other", NUMBER, NUMBER, NUMBER)
    ]
    assert took == [False, False, True, False, True]


def test_first_ends_a_rule_after_so_many_requests() -> None:
    assert met(Match(first=2)) == [1, 2]


def test_first_counts_what_the_rule_took_not_what_it_saw() -> None:
    assert met(Match(every=2, first=2)) == [2, 4]


def test_a_rule_for_another_number_or_recipient_takes_nothing() -> None:
    assert met(Match(number="1")) == []
    assert met(Match(to_ends_with="0002")) == []
    assert met(Match(number=NUMBER, to_ends_with="0001"), 2) == [1, 2]


@pytest.mark.parametrize(("second", "taken"), [(0.999, 0), (1.0, 1), (1.999, 1), (2.0, 0)])
def test_a_rule_holds_from_its_first_second_until_before_its_last(second: float, taken: int) -> None:
    assert len(met(Match(from_s=1, until_s=2), 1, at_us=int(second * 1e6))) == taken


def test_time_counts_from_when_the_scenario_came_into_force() -> None:
    faults = Faults([Rule(do="slow", match=Match(until_s=1))], Random(3), since_us=50_000_000)
    assert faults.at_message(NUMBER, TO, 50_500_000)
    assert faults.at_message(NUMBER, TO, 51_000_000) is None


def test_a_share_is_drawn_from_the_seed_and_repeats() -> None:
    took = met(Match(share=0.3), 1000)
    assert took == met(Match(share=0.3), 1000)
    assert 250 < len(took) < 350


def test_the_first_matching_rule_decides() -> None:
    rules = [Rule(do="html_502", match=Match(every=2)), Rule(do="error", code=131000)]
    faults = Faults(rules, Random(3), since_us=0)
    kinds = [rule.do for _ in range(4) if (rule := faults.at_message(NUMBER, TO, 0))]
    assert kinds == ["error", "html_502", "error", "html_502"]


def test_only_a_rule_that_reads_nothing_acts_at_the_headers() -> None:
    faults = Faults([Rule(do="close_before_reading"), Rule(do="slow")], Random(3), since_us=0)
    at_headers, at_message = faults.at_headers(NUMBER, 0), faults.at_message(NUMBER, TO, 0)
    assert at_headers
    assert at_headers.do == "close_before_reading"
    assert at_message
    assert at_message.do == "slow"
