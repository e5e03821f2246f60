"""What becomes of an accepted message."""

from __future__ import annotations

from collections import Counter
from random import Random

from engine.simulator.scenario import Failure, Statuses
from engine.simulator.statuses import Planned, failure_of, plan
from engine.simulator.webhooks import retry_delay_ms

WA = "5511988880001"


def plans(settings: Statuses, count: int = 2000) -> list[list[Planned]]:
    chance = Random(11)
    return [plan(settings, str(5511900000000 + n), 1, chance) for n in range(count)]


def kinds(told: list[Planned]) -> list[str]:
    return [planned.kind for planned in told]


def test_a_message_is_sent_then_delivered_then_perhaps_read_in_this_order_of_time() -> None:
    for told in plans(Statuses(read_share=0.5, read_without_delivered_share=0)):
        assert kinds(told) in (["sent", "delivered"], ["sent", "delivered", "read"])
        assert [planned.delay_us for planned in told] == sorted(planned.delay_us for planned in told)


def test_the_share_of_readers_is_the_one_asked_for() -> None:
    read = sum("read" in kinds(told) for told in plans(Statuses(read_share=0.3)))
    assert 520 < read < 680


def test_read_may_come_without_delivered() -> None:
    told = plans(Statuses(read_share=1, read_without_delivered_share=1), 20)
    assert all(kinds(one) == ["sent", "read"] for one in told)


def test_delays_stay_in_their_ranges() -> None:
    for told in plans(Statuses(sent_s=(1, 2), delivered_s=(3, 4), read_share=0), 200):
        sent, delivered = told
        assert 1e6 <= sent.delay_us <= 2e6
        assert 3e6 <= delivered.delay_us - sent.delay_us <= 4e6


def test_shuffled_statuses_exchange_their_times() -> None:
    told = plans(Statuses(read_share=1, read_without_delivered_share=0, shuffled_share=1))
    out_of_order = sum(one != sorted(one) for one in told)
    assert all(kinds(one) == ["sent", "delivered", "read"] for one in told)
    assert out_of_order > 1000


def test_duplicated_statuses_come_twice_the_second_never_earlier() -> None:
    for told in plans(Statuses(read_share=0, duplicated_share=1), 100):
        assert Counter(kinds(told)) == {"sent": 2, "delivered": 2}
        assert [again.delay_us >= one.delay_us for one, again in zip(told[:2], told[2:], strict=True)] == [
            True,
            True,
        ]


def test_lost_messages_are_never_heard_of_again_and_undelivered_ones_stay_sent() -> None:
    assert plans(Statuses(lost_share=1), 3) == [[], [], []]
    assert [kinds(told) for told in plans(Statuses(undelivered_share=1), 2)] == [["sent"], ["sent"]]
    assert plans(Statuses(enabled=False), 1) == [[]]


def test_the_same_share_of_recipients_fails_and_always_the_same_ones() -> None:
    settings = Statuses(failures=[Failure(code=131026, share=0.1)])
    failing = {n for n in range(5000) if failure_of(settings, str(n), seed=1)}
    assert failing == {n for n in range(5000) if failure_of(settings, str(n), seed=1)}
    assert failing != {n for n in range(5000) if failure_of(settings, str(n), seed=2)}
    assert 400 < len(failing) < 600


def test_a_failing_recipient_gets_failed_and_nothing_that_contradicts_it() -> None:
    failure = Failure(code=131026, to_ends_with="0001")
    told = plan(Statuses(failures=[failure]), WA, 1, Random(1))
    assert [(planned.kind, planned.failure) for planned in told] == [("failed", failure)]
    assert kinds(plan(Statuses(failures=[failure]), "5511988880002", 1, Random(1)))[0] == "sent"


def test_a_failure_may_come_after_sent() -> None:
    told = plan(Statuses(failures=[Failure(code=131049, after_sent=True)]), WA, 1, Random(1))
    assert kinds(told) == ["sent", "failed"]
    assert told[1].delay_us > told[0].delay_us


def test_a_refused_body_waits_longer_each_time_up_to_a_cap() -> None:
    settings = Statuses(retry_first_ms=100, retry_max_ms=1000)
    assert [retry_delay_ms(tries, settings) for tries in (0, 1, 2, 3, 4, 5000)] == [
        100,
        200,
        400,
        800,
        1000,
        1000,
    ]
