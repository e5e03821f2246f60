"""What follows from an answer: every kind and every scope."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.errors import STOPS, THROTTLES, Meaning, Scope, meaning
from engine.domain.outcome import (
    WORDS_CHARS,
    Accepted,
    Ambiguous,
    Answer,
    Next,
    NotSent,
    Refused,
    Withdrawn,
    after,
    hold_reason,
    own_words,
)
from engine.domain.recipient import State, may_move

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
AGAIN = frozenset({Scope.PAIR, Scope.TRANSIENT})
LOST = frozenset(Scope) - THROTTLES - STOPS - AGAIN

scopes = st.sampled_from(sorted(Scope))
chances = st.floats(0, 1, exclude_max=True)
retry_afters = st.one_of(st.none(), st.floats(0, 3600))


def no(scope: Scope, retry_after: float | None = None, code: int = 131000) -> Refused:
    return Refused(code, Meaning(scope, "Something happened", "Do this."), retry_after=retry_after)


def decide(answer: Answer, attempts: int = 0, max_attempts: int = 8, chance: float = 0.5) -> Next:
    return after(answer, attempts=attempts, max_attempts=max_attempts, now=NOW, chance=chance)


def waits(decided: Next) -> float:
    assert decided.at is not None
    return (decided.at - NOW).total_seconds()


def test_an_accepted_message_is_sent_and_spends_an_attempt() -> None:
    assert decide(Accepted("wamid.x")) == Next("accepted", State.SENT, spends_attempt=True)


def test_a_message_that_is_held_back_is_being_assessed() -> None:
    assert decide(Accepted("wamid.x", assessing=True)) == Next(
        "accepted", State.ASSESSING, spends_attempt=True
    )


def test_an_ambiguous_answer_decides_nothing() -> None:
    assert decide(Ambiguous("read timeout")) == Next("unknown", State.UNKNOWN)


def test_what_was_not_sent_comes_again_later_and_spends_nothing() -> None:
    decided = decide(NotSent("refused connection"))
    assert (decided.outcome, decided.state, decided.spends_attempt) == ("not_sent", State.PENDING, False)
    assert waits(decided) > 0


def test_what_was_withdrawn_may_leave_at_once() -> None:
    assert decide(Withdrawn("paused")) == Next("withdrawn", State.PENDING, at=NOW)


@given(scopes, st.integers(0, 20), st.integers(1, 10), chances, retry_afters)
def test_every_refusal_leads_to_a_legal_state_and_moves_what_comes_again(
    scope: Scope, attempts: int, most: int, chance: float, retry_after: float | None
) -> None:
    decided = decide(no(scope, retry_after), attempts, most, chance)
    assert decided.outcome == "refused"
    assert decided.code == 131000
    assert decided.state in (State.PENDING, State.FAILED)
    assert may_move(State.SENDING, decided.state)
    assert (decided.at is not None) is (decided.state is State.PENDING)
    if decided.at is not None:
        assert decided.at > NOW


@given(st.sampled_from(sorted(THROTTLES)), st.integers(0, 20), chances, retry_afters)
def test_a_throttle_silences_the_number_and_costs_the_row_nothing(
    scope: Scope, attempts: int, chance: float, retry_after: float | None
) -> None:
    decided = decide(no(scope, retry_after), attempts, 1, chance)
    assert decided.state is State.PENDING
    assert not decided.spends_attempt
    assert decided.hold is None
    assert decided.wait >= max(1.0, retry_after or 0.0)
    assert decided.wait - 1e-5 <= waits(decided) <= decided.wait + 1 + 1e-5  # times are whole microseconds


def test_a_throttle_without_retry_after_waits_as_its_scope_says() -> None:
    assert decide(no(Scope.NUMBER_THROUGHPUT)).wait == 1.0
    assert 15 <= decide(no(Scope.MAINTENANCE)).wait <= 60


@pytest.mark.parametrize("scope", sorted(STOPS))
def test_a_stop_names_a_hold_and_costs_the_row_nothing(scope: Scope) -> None:
    decided = decide(no(scope, code=131042), attempts=7)
    assert decided.state is State.PENDING
    assert not decided.spends_attempt
    assert decided.hold == "131042 Something happened. Do this."


@given(st.sampled_from(sorted(AGAIN)), st.integers(1, 10), chances)
def test_a_transient_error_is_tried_again_until_its_attempts_are_spent(
    scope: Scope, most: int, chance: float
) -> None:
    for attempts in range(most):
        decided = decide(no(scope), attempts, most, chance)
        assert decided.spends_attempt
        assert decided.wait == 0.0
        assert decided.state is (State.PENDING if attempts + 1 < most else State.FAILED)


def test_a_person_who_gets_too_much_waits_four_to_the_n() -> None:
    assert [waits(decide(no(Scope.PAIR), n, chance=0.0)) for n in range(5)] == [1, 4, 16, 64, 256]


@pytest.mark.parametrize("scope", sorted(LOST))
def test_an_error_of_the_row_fails_it_at_once_and_nobody_else(scope: Scope) -> None:
    decided = decide(no(scope))
    assert decided == Next("refused", State.FAILED, spends_attempt=True, code=131000)


def test_rows_refused_together_do_not_return_together() -> None:
    moments = {decide(no(Scope.NUMBER_THROUGHPUT), chance=n / 10).at for n in range(10)}
    assert len(moments) == 10
    assert max(m for m in moments if m) - min(m for m in moments if m) < timedelta(seconds=1)


def test_a_hold_keeps_the_provider_s_own_words_beside_ours() -> None:
    said = own_words("(#190) Error validating access token: the session was\ninvalidated", 'for user "4711"')
    refused = Refused(190, meaning(190), said=said)
    assert hold_reason(refused) == (
        f"{hold_reason(Refused(190, meaning(190)))} "
        "Meta says: \"Error validating access token: the session was invalidated for user '4711'\""
    )


def test_the_provider_s_words_name_nobody_and_open_nothing_and_end() -> None:
    assert own_words("to +55 11 98888-0001 and 5511988880001.") == "to … and …."
    assert own_words("token EAAGm0PX4ZCpsBAKZCdefghijklmnop is bad") == "token … is bad"
    assert len(own_words("word " * 100)) == WORDS_CHARS
