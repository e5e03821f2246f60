"""Folding a batch of statuses to the furthest statement about each try."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.evidence import Evidence, fold, furthest
from engine.domain.message import Token
from engine.domain.receipts import Receipt
from engine.domain.recipient import State

TOKEN = Token("abc", 1001, 1)
WORDS = [State.SENT, State.FAILED, State.DELIVERED, State.READ]


def receipt(
    state: State, wamid: str | None = "wamid.A", token: Token | None = TOKEN, at: float = 1.0
) -> Receipt:
    return Receipt(state, wamid, token, "106", at, 131026 if state is State.FAILED else None)


def gist(evidence: Evidence) -> tuple[object, ...]:
    return evidence.key, evidence.wamid, evidence.rank, evidence.failed, evidence.code


def test_the_furthest_status_of_a_message_is_kept_in_any_order() -> None:
    for order in permutations(WORDS):
        [kept] = fold([receipt(state) for state in order])
        assert gist(kept) == (TOKEN, "wamid.A", 4, True, 131026)


def test_a_failure_alone_has_no_rank_and_keeps_its_code() -> None:
    [kept] = fold([receipt(State.FAILED)])
    assert gist(kept) == (TOKEN, "wamid.A", 0, True, 131026)
    assert kept.raw == '{"code":131026,"title":"","details":""}'


def test_a_status_without_token_joins_those_of_the_same_message() -> None:
    [kept] = fold([receipt(State.FAILED, token=None), receipt(State.SENT)])
    assert gist(kept) == (TOKEN, "wamid.A", 1, True, 131026)


def test_a_token_joins_even_when_one_status_names_no_wamid() -> None:
    [kept] = fold([receipt(State.READ, wamid=None), receipt(State.SENT)])
    assert gist(kept) == (TOKEN, "wamid.A", 4, False, None)


def test_two_tries_of_a_row_are_two_statements() -> None:
    assert len(fold([receipt(State.SENT), receipt(State.SENT, "wamid.B", Token("abc", 1001, 2))])) == 2


def test_the_same_row_and_try_of_another_installation_is_not_mixed_in() -> None:
    assert len(fold([receipt(State.SENT), receipt(State.READ, "wamid.B", Token("xyz", 1001, 1))])) == 2


def test_what_names_no_message_is_left_out() -> None:
    assert fold([receipt(State.SENT, wamid=None, token=None)]) == []


def test_both_times_are_kept_for_the_delay_between_them() -> None:
    [kept] = fold([receipt(State.DELIVERED, at=12.0), receipt(State.SENT, at=10.0)])
    assert (kept.sent_at, kept.delivered_at) == (10.0, 12.0)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), st.integers(0, 12))
def test_folding_parts_first_changes_nothing(words: list[State], cut: int) -> None:
    receipts = [receipt(word) for word in words]
    parts = fold(receipts[:cut]) + fold(receipts[cut:])
    assert [gist(one) for one in furthest(parts)] == [gist(one) for one in fold(receipts)]
