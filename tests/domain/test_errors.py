"""What the provider's errors mean: the contract's table, code by code."""

import pytest

from engine.domain.errors import MEANINGS, STOPS, THROTTLES, UNBUILT, Scope, describe, meaning

TABLE = {
    Scope.NUMBER_THROUGHPUT: [130429],
    Scope.ACCOUNT_THROUGHPUT: [4, 613, 80007],
    Scope.PAIR: [131056],
    Scope.NUMBER: [131048, 131045, 133010, 33, 131037, 131030],
    Scope.ACCOUNT: [131042, 131031, 368, 131064],
    Scope.CREDENTIAL: [0, 190, 3, 10, 200, 201, 299, 131005],
    Scope.TEMPLATE: [132001, 132007, 132015, 132016, 132068, 131063, 132000],
    Scope.COUNTRY: [130497],
    Scope.MAINTENANCE: [131057, 2494100],
    Scope.TRANSIENT: [2, 131000, 131016],
    Scope.RECIPIENT: [131026, 131047, 131050, 130472, 131021, 132005, 131009, 100, 132012, 132018, UNBUILT],
    Scope.MARKETING: [131049],
    Scope.UNLISTED: [1234567, 199, 300],
}


@pytest.mark.parametrize(
    ("scope", "code"), [(scope, code) for scope, codes in TABLE.items() for code in codes]
)
def test_a_code_reaches_as_far_as_the_contract_says(scope: Scope, code: int) -> None:
    assert describe(code).scope is scope


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500, 503])
def test_a_listed_code_outranks_the_http_status(status: int) -> None:
    for code, listed in MEANINGS.items():
        assert meaning(code, http_status=status) == listed


def test_an_object_with_a_wrong_id_stops_the_number_and_not_the_row() -> None:
    text = "Unsupported post request. Object with ID '1' does not exist"
    assert meaning(100, details=text).scope is Scope.NUMBER
    assert meaning(100, details="Invalid parameter").scope is Scope.RECIPIENT


def test_an_unknown_code_is_judged_by_the_status_alone() -> None:
    assert meaning(999999, http_status=429).scope is Scope.NUMBER_THROUGHPUT
    assert meaning(999999, http_status=500).scope is Scope.TRANSIENT
    assert meaning(999999, http_status=503).scope is Scope.TRANSIENT
    assert meaning(999999, http_status=400).scope is Scope.UNLISTED


def test_only_an_answer_about_the_message_spends_an_attempt() -> None:
    for listed in MEANINGS.values():
        assert listed.spends_attempt is (listed.scope not in THROTTLES | STOPS)


def test_every_line_says_what_happened_and_what_to_do() -> None:
    for code, listed in MEANINGS.items():
        assert listed.title, code
        assert not listed.title.endswith("."), code
        assert listed.advice.endswith("."), code
