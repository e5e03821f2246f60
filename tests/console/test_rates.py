"""The rate rule, and which rows are bad."""

import pytest

from console.rates import must_ask, parse, stepped
from console.rows import ORDERS, Severity, choose, severity
from tests.console.support import HELD, SLOWED, a_number, nine_numbers


@pytest.mark.parametrize(
    ("rate", "limit", "direction", "expected"),
    [
        (80.0, 100.0, -1, 76.0), (80.0, 100.0, 1, 84.0), (10.0, 80.0, -1, 9.0), (98.0, 100.0, 1, 100.0),
        (1.0, 80.0, -1, 0.0), (0.2, 80.0, 1, 1.0), (0.2, 0.5, 1, 0.5), (0.0, 80.0, -1, 0.0),
        (1000.0, 1000.0, -1, 950.0),
    ],
)  # fmt: skip
def test_a_step_is_five_percent_at_least_one_and_never_above_the_limit(
    rate: float, limit: float, direction: int, expected: float
) -> None:
    assert stepped(a_number("1", rate=rate, limit=limit), None, direction) == expected


def test_steps_add_up_from_the_rate_in_force() -> None:
    number = a_number("1")
    assert stepped(number, stepped(number, None, -1), -1) == 72.0
    assert stepped(number, stepped(number, None, -1), 1) == 80.0


@pytest.mark.parametrize(
    ("rate", "to", "asks"),
    [
        (80.0, 79.0, False),
        (80.0, 0.0, False),
        (80.0, 96.0, False),
        (80.0, 97.0, True),
        (98.0, 100.0, True),
        (0.0, 1.0, True),
    ],
)
def test_only_a_big_raise_or_one_to_the_limit_asks(rate: float, to: float, asks: bool) -> None:
    assert must_ask(a_number("1", rate=rate), to) is asks


@pytest.mark.parametrize(
    ("typed", "value"), [("40", 40.0), (" 0.2 ", 0.2), ("0,2", 0.2), ("0", 0.0), ("100", 100.0)]
)
def test_an_exact_rate_is_read(typed: str, value: float) -> None:
    assert parse(typed, a_number("1")) == value


@pytest.mark.parametrize("typed", ["", "x", "-1", "nan", "inf", "101", "1e9", "4 0"])
def test_a_bad_rate_is_a_sentence(typed: str) -> None:
    said = parse(typed, a_number("1"))
    assert isinstance(said, str)
    assert said.endswith(".")


def test_held_is_critical_slowed_warns_and_a_pause_is_neither() -> None:
    assert severity(HELD) is Severity.CRITICAL
    assert severity(SLOWED) is Severity.WARNING
    assert severity(a_number("1", state="paused")) is Severity.PAUSED
    assert severity(a_number("1", state="paused", stuck=3)) is Severity.WARNING
    assert severity(a_number("1", error_share=0.5)) is Severity.CRITICAL
    assert severity(a_number("1")) is Severity.NORMAL


@pytest.mark.parametrize("order", ORDERS, ids=lambda o: o.name)
def test_every_order_puts_bad_rows_first_and_loses_none(order: object) -> None:
    from console.rows import Order

    assert isinstance(order, Order)
    rows = choose(nine_numbers(), order, "", {})
    assert [n.id for n in rows.shown[:2]] == [HELD.id, SLOWED.id]
    assert {n.id for n in rows.shown} == {n.id for n in nine_numbers()}


def test_a_filter_counts_what_it_hides() -> None:
    rows = choose(nine_numbers(), ORDERS[0], "CLARO", {})
    assert [n.id for n in rows.shown] == [SLOWED.id]
    assert (rows.hidden, rows.hidden_bad) == (8, 1)
