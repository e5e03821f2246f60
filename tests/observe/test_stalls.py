"""A lock that holds our commits up is seen however many commits are quick between two of them."""

from engine.observe.stalls import LONG, OF_LATE, OFTEN, UNDER_WAY, Stalls


def commit(stalls: Stalls, at: float, seconds: float) -> None:
    stalls.began("mark", at - seconds)
    stalls.ended("mark", at)


def test_locks_that_come_again_and_again_are_told_though_most_commits_are_quick() -> None:
    stalls = Stalls()
    for nth in range(OFTEN):
        assert not stalls.wait(100.0 + 4 * nth)
        for hundredth in range(100):
            commit(stalls, 101.0 + 4 * nth + hundredth / 100, 0.004)
        commit(stalls, 104.0 + 4 * nth, 2.5)
    assert stalls.wait(104.0 + 4 * (OFTEN - 1))


def test_one_hiccup_is_nothing_however_many_wait_for_it() -> None:
    stalls = Stalls()
    for kind in ("mark", "result", "mark", "result"):
        stalls.began(kind, 100.0)
        stalls.ended(kind, 100.0 + 2 * LONG)
    assert not stalls.wait(102.0)


def test_a_commit_that_does_not_end_is_told_while_it_waits_and_no_longer() -> None:
    stalls = Stalls()
    stalls.began("result", 100.0)
    assert not stalls.wait(100.0 + UNDER_WAY)
    assert stalls.wait(100.1 + UNDER_WAY)
    stalls.ended("result", 100.2 + UNDER_WAY)
    assert not stalls.wait(100.2 + UNDER_WAY)


def test_it_is_over_when_the_last_of_them_lies_back() -> None:
    stalls = Stalls()
    for nth in range(OFTEN):
        commit(stalls, 100.0 + nth, 1.5)
    assert stalls.wait(110.0)
    assert not stalls.wait(102.0 + OF_LATE + 1)
