"""Which failed rows may be sent again, by their code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import MEANINGS, THROTTLES, Scope
from engine.domain.retry import Failed, offers

PASSES = THROTTLES | {Scope.TRANSIENT, Scope.PAIR}


@pytest.mark.parametrize("code", sorted(MEANINGS))
def test_every_code_of_the_table_is_either_sent_again_or_refused_with_a_sentence(code: int) -> None:
    (offer,) = offers([Failed(code, 10, 10)], marketing_limit=False)
    if MEANINGS[code].scope in PASSES:
        assert (offer.retried, offer.why_not) == (10, None)
    else:
        assert offer.retried == 0
        assert offer.why_not is not None
        assert offer.why_not.endswith(".")


@given(rested=st.integers(0, 50), early=st.integers(0, 50))
def test_the_marketing_limit_lets_only_rested_rows_through(rested: int, early: int) -> None:
    (offer,) = offers([Failed(131049, rested + early, rested)], marketing_limit=True)
    assert offer.retried == rested
    assert (offer.why_not is None) == (early == 0)


def test_rows_without_a_code_are_left_alone_and_most_rows_come_first() -> None:
    found = offers([Failed(None, 1, 1), Failed(131000, 5, 0), Failed(424242, 3, 3)], marketing_limit=True)
    assert [(o.code, o.retried) for o in found] == [(131000, 5), (424242, 0), (None, 0)]
