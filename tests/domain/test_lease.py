"""Holding, losing and taking over: two clocks that never agree must never own one number at once."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.heard import SILENT_S
from engine.domain.lease import CONNECT_TIMEOUT, Seen, abandoned, deadline, left, margin, watch

A, B = UUID(int=1), UUID(int=2)


@given(st.floats(0.5, 600), st.floats(0, 1e6))
def test_an_owner_stops_before_its_lease_ends(lease: float, asked_at: float) -> None:
    assert asked_at < deadline(asked_at, lease) < asked_at + lease


@given(st.floats(6, 600))
def test_a_request_that_is_still_connecting_leaves_within_the_lease(lease: float) -> None:
    assert margin(lease) >= CONNECT_TIMEOUT + 1


@given(
    lease=st.floats(1, 60),
    renewed=st.floats(0, 1000),
    on_the_way=st.floats(0, 50),
    looked_after=st.floats(0, 5),
    skew=st.floats(-1e6, 1e6),
)
def test_a_candidate_never_takes_what_its_owner_still_uses(
    lease: float, renewed: float, on_the_way: float, looked_after: float, skew: float
) -> None:
    stored = renewed + on_the_way  # the renewal was asked for at `renewed` and seen no earlier than stored
    seen = watch(None, A, 5, stored + looked_after + skew)
    first_possible = seen.since + lease
    assert abandoned(seen, first_possible, lease) or abandoned(seen, first_possible + 1e-3, lease)
    assert not abandoned(seen, first_possible - 0.01, lease)
    assert first_possible - skew >= deadline(renewed, lease)


def test_a_row_that_moves_is_watched_anew() -> None:
    seen = watch(None, A, 1, 10.0)
    assert watch(seen, A, 1, 15.0) is seen
    assert watch(seen, A, 2, 15.0) == Seen(A, 2, 15.0)
    assert watch(seen, B, 1, 15.0) == Seen(B, 1, 15.0)


def test_a_row_that_stood_still_for_a_whole_lease_is_abandoned() -> None:
    seen = watch(None, A, 1, 10.0)
    assert not abandoned(seen, 19.999, 10.0)
    assert abandoned(seen, 20.0, 10.0)


def test_what_is_left_is_told_only_while_the_owner_is_silent_and_ends_when_the_lease_may_be_taken() -> None:
    seen = watch(None, A, 1, 10.0)
    assert left(seen, 13.0, 10.0, SILENT_S - 0.1) is None
    assert left(seen, 13.0, 10.0, SILENT_S) == 7.0
    assert left(seen, 13.0, 10.0, None) == 7.0
    assert left(seen, 25.0, 10.0, None) == 0.0
    assert abandoned(seen, 20.0, 10.0)
    assert left(seen, 20.0, 10.0, None) == 0.0


def test_a_short_lease_is_usable() -> None:
    assert deadline(100.0, 1.0) == 100.5
