"""When a run is stopped for what its answers say, and when it is not."""

import pytest

from engine.domain.errors import describe
from engine.domain.health import IN_A_ROW, NOTHING_ELSE, RECENT, Health, budget_spent


def see(health: Health, now: float, code: int) -> str | None:
    return health.refused(now, code, describe(code))


@pytest.mark.parametrize("code", [130429, 80007, 131057, 613])
def test_throughput_refusals_never_hold_a_run(code: int) -> None:
    health = Health()
    assert all(see(health, float(n), code) is None for n in range(10_000))
    assert not health.probing


def test_more_failures_by_recipient_than_successes_hold_the_campaign_and_say_why() -> None:
    health = Health()
    reasons = []
    for n in range(2 * RECENT):
        if n % 5 < 2:
            health.good()
        else:
            reasons.append(see(health, n * 0.01, 131026))
    reason = next(r for r in reasons if r)
    assert "131026" in reason
    assert "last 200" in reason


def test_a_usual_share_of_undeliverable_people_holds_nothing() -> None:
    health = Health()
    for n in range(5 * RECENT):
        if n % 10:
            health.good()
        else:
            assert see(health, n * 0.01, 131026) is None


def test_a_code_that_nobody_knows_fails_rows_while_isolated_and_holds_in_a_row() -> None:
    health = Health()
    assert [see(health, 0.0, 999999) for _ in range(IN_A_ROW)] == [None] * IN_A_ROW
    assert "999999" in (see(health, 0.0, 999999) or "")


def test_a_parameter_error_that_hits_every_row_is_the_templates() -> None:
    health = Health()
    for _ in range(IN_A_ROW):
        assert see(health, 0.0, 132018) is None
    assert see(health, 0.0, 132018)


def test_nothing_but_refusals_slows_to_a_probe_and_then_holds() -> None:
    health = Health()
    for n in range(IN_A_ROW):
        assert see(health, n * 0.1, 131000) is None
    assert health.probing
    assert see(health, NOTHING_ELSE - 1, 131000) is None
    assert "nothing but refusals" in (see(health, NOTHING_ELSE + 0.1, 131000) or "")


def test_one_success_ends_a_run_of_refusals() -> None:
    health = Health()
    for n in range(IN_A_ROW):
        see(health, n * 0.1, 131000)
    health.good()
    assert not health.probing
    assert see(health, 1000.0, 131000) is None


def test_the_try_budget_counts_requests_not_successes() -> None:
    assert budget_spent(299, 100, None) is None
    assert "300" in (budget_spent(300, 100, None) or "")
    assert budget_spent(50, 100, 50)
    assert budget_spent(0, 0, None) is None
