"""What a snapshot remembers: each window's figures, use that never exceeds what was possible, merging of nodes."""

from dataclasses import replace

import pytest

from engine.domain.merge import worst_spreads
from engine.domain.recall import FIGURES, merged
from engine.domain.snapshot import WINDOWS, Percentiles, Snapshot
from engine.observe.metrics import Histogram, NodeFigures
from engine.observe.recall import Recall
from tests.console.support import a_number, normal

A = a_number("0011", rate=80.0, ceiling=80.0)
KEYS = {A.id: 1}


def _seconds(
    recall: Recall, figures: NodeFigures, snapshot: Snapshot, first: int, count: int, rate: int
) -> Snapshot:
    """So many seconds at so many accepted messages, then the picture."""
    done = snapshot
    for second in range(first, first + count):
        figures.number(1).accepted.add(float(second), rate)
        figures.number(1).tries.add(float(second), rate)
        done = recall.complete(snapshot, KEYS, second + 1.0, None)
    return done


def test_use_never_exceeds_what_the_rate_allowed_in_the_same_seconds() -> None:
    figures = NodeFigures()
    recall = Recall(figures)
    before = normal(numbers=(A,))
    full = _seconds(recall, figures, before, 1000, 20, 80)
    assert full.numbers[0].use == pytest.approx(1.0)
    lowered = normal(numbers=(replace(A, rate=20.0),))
    for second in range(1020, 1032):
        now = _seconds(recall, figures, lowered, second, 1, 20)
        assert now.numbers[0].use is not None
        assert 0.9 <= now.numbers[0].use <= 1.0


def test_each_window_has_its_own_past_of_a_number() -> None:
    figures = NodeFigures()
    recall = Recall(figures)
    number, snapshot = figures.number(1), normal(numbers=(A,))
    for second in range(1000, 1000 + 400):
        number.accepted.add(float(second), 50)
        number.tries.add(float(second), 100)
        number.refused.add(float(second), 50 if second >= 1350 else 0)
        number.token_wait.add(float(second), 2.0 if second >= 1350 else 0.1)
        if second >= 1350:
            number.codes.add(float(second), 130429)
        view = recall.complete(snapshot, KEYS, second + 1.0, None).numbers[0]
    past = view.past
    assert [len(points) for points in past.accepted] == [30, 30, 13, 3, 0]
    assert past.error_share[0] == pytest.approx(50 * 50 / 6000, rel=0.1)
    assert past.error_share[1] == pytest.approx(50 * 50 / 30000, rel=0.1)
    assert past.top_error == (130429,) * len(WINDOWS)
    minute, hour = past.waits[0], past.waits[3]
    assert minute is not None
    assert hour is not None
    assert minute.p50 == pytest.approx(2.0, rel=0.09)
    assert hour.p50 == pytest.approx(0.1, rel=0.09)


def test_every_figure_of_the_registry_is_remembered_once_a_second() -> None:
    figures = NodeFigures()
    recall = Recall(figures)
    for tick in range(20):  # twice a second
        done = recall.complete(normal(numbers=(A,), unknown=7), KEYS, 1000.0 + tick / 2, Histogram())
    assert set(done.past.figures) == {figure.name for figure in FIGURES}
    assert done.past.figures["unknown"][0] == (7.0,) * 5


def test_a_number_that_is_gone_is_forgotten() -> None:
    recall = Recall(NodeFigures())
    recall.complete(normal(numbers=(A,)), KEYS, 1000.0, None)
    recall.complete(normal(numbers=()), {}, 1001.0, None)
    assert recall._numbers == {}


def test_nodes_add_up_what_they_do_and_agree_on_what_the_database_says() -> None:
    whole = merged([{"accepted": ((1.0, 2.0),) * 5, "unknown": ((9.0,),) * 5}, {"accepted": ((5.0,),) * 5}])
    assert whole["accepted"] == ((1.0, 7.0),) * 5
    assert whole["unknown"][0] == (9.0,)
    assert whole["memory"] == ((),) * 5


def test_the_worst_spread_of_each_window_wins() -> None:
    slow, fast = Percentiles(1, 9, 9, 1), Percentiles(1, 2, 3, 100)
    assert worst_spreads([(fast, None), (slow, None), ()]) == (slow, None)
