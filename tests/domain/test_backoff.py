"""How long a row waits."""

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.backoff import full_jitter, pair_wait

chances = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 2000), chances)
def test_full_jitter_stays_within_its_bounds(attempt: int, chance: float) -> None:
    assert 0.05 <= full_jitter(attempt, chance) <= min(300.0, 2.0 ** min(attempt, 40))


@given(st.integers(1, 60))
def test_full_jitter_uses_the_whole_span(attempt: int) -> None:
    ceiling = min(300.0, 2.0**attempt)
    assert full_jitter(attempt, 0.0) == ceiling
    assert full_jitter(attempt, 0.5) == ceiling / 2
    assert full_jitter(attempt, 0.999999) == 0.05


@given(st.integers(0, 2000), chances)
def test_a_pair_never_waits_less_than_the_provider_asks(attempt: int, chance: float) -> None:
    least = min(4.0 ** min(attempt, 10), 1024.0)
    assert least <= pair_wait(attempt, chance) <= 1.25 * least


def test_a_pair_s_wait_grows_by_four_up_to_seventeen_minutes() -> None:
    assert [pair_wait(n, 0.0) for n in range(8)] == [1, 4, 16, 64, 256, 1024, 1024, 1024]
