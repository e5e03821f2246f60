"""The keys of breakers, and which of several stops counts."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.domain.breaker import Stop, country_key, language_code, latest, template_key
from engine.domain.errors import STOPS, Scope

NOON = datetime(2026, 10, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("pt_BR", "pt_BR"),
        ("pt-BR", "pt_BR"),
        ("pt-br", "pt_BR"),
        (" EN ", "en"),
        ("en_US", "en_US"),
        ("fil", "fil"),
        ("zh-hans", "zh_Hans"),
        ("", ""),
    ],
)
def test_a_language_has_one_spelling(written: str, code: str) -> None:
    assert language_code(written) == code
    assert language_code(code) == code


def test_keys_hold_what_their_scope_needs() -> None:
    assert template_key("WABA1", "sale_v2", "en-US") == "WABA1/sale_v2/en_US"
    assert country_key("WABA1", "BR") == "WABA1/BR"


def test_the_newest_of_each_key_counts_in_one_order() -> None:
    old = Stop(Scope.NUMBER, "1", 131048, "old")
    new = Stop(Scope.NUMBER, "1", 131045, "new")
    other = Stop(Scope.ACCOUNT, "W", 131042, "other")
    later = NOON + timedelta(seconds=1)
    expected = [(other, NOON), (new, later)]
    assert latest([(old, NOON), (other, NOON), (new, later)]) == expected
    assert latest([(new, later), (other, NOON), (old, NOON)]) == expected


def test_the_scopes_that_stop_are_the_five_of_the_table() -> None:
    assert sorted(scope.value for scope in STOPS) == [
        "account",
        "country",
        "credential",
        "number",
        "template",
    ]
