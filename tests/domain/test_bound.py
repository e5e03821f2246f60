"""What bounds a number: the first stop, else what it waits for; a throttled pace is the provider's."""

import pytest

from engine.domain.bound import bound_by


@pytest.mark.parametrize("closed", ["hold", "provider", "database"])
def test_what_is_closed_is_bound_by_what_closes_it(closed: str) -> None:
    assert bound_by(closed, "bucket", 25.0, 64.0) == closed


def test_a_number_at_its_configured_rate_is_bound_by_its_bucket() -> None:
    assert bound_by(None, "bucket", 64.0, 64.0) == "bucket"


def test_a_pace_below_the_configured_rate_is_the_provider_s_silent_or_not() -> None:
    assert {bound_by(closed, "bucket", 25.0, 64.0) for closed in (None, "provider")} == {"provider"}


@pytest.mark.parametrize("waited_for", ["rows", "slots", "database"])
def test_a_throttled_number_that_waits_for_something_else_is_bound_by_that(waited_for: str) -> None:
    assert bound_by(None, waited_for, 25.0, 64.0) == waited_for
