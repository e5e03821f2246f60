"""The twelve states and the moves between them, as the contract has them."""

import pytest

from engine.domain.recipient import EVIDENCE, MOVES, NEVER_TAKEN, OPEN, State, may_move, rank

TABLE = {
    "pending": "claimed suppressed expired cancelled",
    "claimed": "sending pending suppressed expired cancelled",
    "sending": "sent assessing unknown failed pending",
    "unknown": "sent assessing delivered read failed pending",
    "assessing": "sent delivered read failed pending",
    "sent": "delivered read failed pending",
    "delivered": "read",
    "read": "",
    "failed": "pending delivered read",
    "expired": "",
    "suppressed": "",
    "cancelled": "",
}
BESIDE = {"sending": "cancelled expired suppressed"}
"""A row that comes back from a refusal may find its campaign cancelled, say: then it does not pass through pending."""


def words(states: frozenset[State]) -> set[str]:
    return {state.word for state in states}


@pytest.mark.parametrize("before", list(State))
def test_a_row_may_move_as_the_contract_says(before: State) -> None:
    allowed = set(TABLE[before.word].split()) | set(BESIDE.get(before.word, "").split())
    assert words(MOVES[before]) == allowed
    for after in State:
        assert may_move(before, after) is (after.word in allowed)


def test_there_are_twelve_states_of_one_letter_each() -> None:
    assert {state.word for state in State} == set(TABLE)
    assert len({state.value for state in State}) == 12
    assert {len(state.value) for state in State} == {1}


def test_a_campaign_is_open_while_a_row_is() -> None:
    assert words(OPEN) == {"pending", "claimed", "sending", "unknown", "assessing"}
    assert words(NEVER_TAKEN) == {"expired", "suppressed", "cancelled"}


@pytest.mark.parametrize("before", list(State))
def test_proof_of_a_try_settles_a_row_wherever_it_stands_before_delivered(before: State) -> None:
    for after in (State.DELIVERED, State.READ):
        expected = before not in (State.DELIVERED, State.READ) or (before, after) == (
            State.DELIVERED,
            State.READ,
        )
        assert may_move(before, after, proven=True) is expected
    later = before in (State.SENT, State.FAILED, State.DELIVERED, State.READ)
    assert may_move(before, State.SENT, proven=True) is not later


def test_proof_leads_only_forward() -> None:
    assert all(rank(after) > rank(before) for before, afters in EVIDENCE.items() for after in afters)
    assert [rank(s) for s in (State.SENDING, State.SENT, State.FAILED, State.DELIVERED, State.READ)] == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip
    assert {rank(s) for s in OPEN | NEVER_TAKEN} == {0}


def test_nothing_leads_back_from_delivered_or_read() -> None:
    for before in (State.DELIVERED, State.READ):
        for after in State:
            assert not may_move(before, after, proven=True) or rank(after) > rank(before)
