"""What a request gets, decided without a socket."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.simulator.cloud_api import CloudApi, Ending, Verdict
from engine.simulator.ledger import Ledger
from engine.simulator.scenario import Scenario, access, parse
from engine.simulator.webhooks import Webhooks
from tests.simulator.wire_client import NUMBER, template

BEARER = "Bearer simulator-token"


class Endpoint:
    """A CloudApi under a scenario, without webhooks."""

    def __init__(self, **scenario: Any) -> None:
        self.ledger = Ledger(0, salt=1)
        chosen = self._parsed(scenario)
        granted = access(chosen, {})
        self.webhooks = Webhooks(self.ledger, chosen, granted, lambda: 0, self._never)
        self.api = CloudApi(chosen, granted, self.ledger, self.webhooks, 0)

    def replace(self, at_us: int, **scenario: Any) -> None:
        chosen = self._parsed(scenario)
        self.api.replace(chosen, access(chosen, {}), at_us)

    def send(
        self, body: object = None, *, at_us: int = 0, number: str = NUMBER, bearer: str | None = BEARER
    ) -> Verdict:
        data = body if isinstance(body, bytes) else json.dumps(template() if body is None else body).encode()
        return self.api.send(number, bearer, data, at_us)

    def _parsed(self, scenario: dict[str, Any]) -> Scenario:
        return parse(json.dumps({"webhook": ""} | scenario).encode(), "it")

    async def _never(self, url: str, body: bytes, signature: str, timeout_s: float) -> str | None:
        raise AssertionError("nothing is posted here")


def code_of(verdict: Verdict) -> int:
    return int(json.loads(verdict.body)["error"]["code"])


def test_a_template_is_accepted_with_an_id_that_the_ledger_knows() -> None:
    endpoint = Endpoint()
    verdict = endpoint.send()
    body = json.loads(verdict.body)
    assert verdict.status == 200
    assert body["contacts"] == [{"input": "+16505551234", "wa_id": "16505551234"}]
    assert body["messages"] == [{"id": endpoint.ledger.entry(1).wamid, "message_status": "accepted"}]
    assert endpoint.ledger.entry(1).token == "tg1:c:1:1"


def test_a_text_is_accepted_without_a_message_status() -> None:
    text = {"messaging_product": "whatsapp", "to": "+16505551234", "type": "text", "text": {"body": "hi"}}
    assert "message_status" not in json.loads(Endpoint().send(text).body)["messages"][0]


@pytest.mark.parametrize(
    "bearer", [None, "Bearer wrong", "simulator-token", "Basic simulator-token", "Bearer "]
)
def test_the_token_is_checked_before_anything_else(bearer: str | None) -> None:
    endpoint = Endpoint(numbers={"1": {}})
    verdict = endpoint.send(b"not even json", bearer=bearer)
    error = json.loads(verdict.body)["error"]
    assert (verdict.status, error["code"], "error_data" in error) == (401, 190, False)
    assert (endpoint.ledger.entry(1).outcome, endpoint.ledger.entry(1).code) == ("refused", 190)


def test_an_unknown_number_is_an_unsupported_object() -> None:
    verdict = Endpoint(numbers={"1": {}}).send(number="2")
    message = json.loads(verdict.body)["error"]["message"]
    assert (verdict.status, code_of(verdict)) == (400, 100)
    assert message.startswith("Unsupported post request. Object with ID '2'")


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"messaging_product": None}, 100, "messaging_product"),
        ({"messaging_product": "sms"}, 100, "messaging_product"),
        ({"to": None}, 100, "to is missing"),
        ({"to": None, "recipient": "US.1"}, 131062, "recipient"),
        ({"to": "somebody"}, 131009, "to is not"),
        ({"to": 16505551234}, 131009, "$.to"),
        ({"type": None}, 131008, "type"),
        ({"type": "pigeon"}, 100, "type must be"),
        ({"type": "image"}, 131008, "image"),
        ({"template": None}, 131008, "template"),
        ({"template": {"language": {"code": "en"}}}, 131008, "name"),
        ({"template": {"name": "a"}}, 131008, "language"),
        ({"template": {"name": "a", "language": {}}}, 131008, "code"),
        (
            {"template": {"name": "a", "language": {"code": "en"}, "components": [{"type": "x"}]}},
            131009,
            "comp",
        ),
        ({"biz_opaque_callback_data": "x" * 513}, 100, "512"),
        ({"type": "text", "text": {"body": "x" * 4097}}, 100, "4096"),
        ({"type": "text", "text": {}}, 131008, "body"),
    ],
)
def test_a_body_is_refused_for_what_is_wrong_with_it(change: dict[str, Any], code: int, said: str) -> None:
    verdict = Endpoint().send(template() | change)
    assert (verdict.status, code_of(verdict)) == (400, code)
    assert said in json.loads(verdict.body)["error"]["error_data"]["details"]


def test_a_body_that_is_no_json_is_an_invalid_parameter() -> None:
    assert code_of(Endpoint().send(b"{")) == 100


def test_a_request_beyond_the_limit_is_throttled_until_the_window_has_room() -> None:
    endpoint = Endpoint(numbers={NUMBER: {"limit": 2}})
    verdicts = [endpoint.send(at_us=at) for at in (0, 400_000, 900_000, 1_000_000, 1_200_000)]
    assert [verdict.status for verdict in verdicts] == [200, 200, 429, 200, 429]
    assert code_of(verdicts[2]) == 130429


def test_the_http_status_of_a_throttle_can_be_chosen() -> None:
    endpoint = Endpoint(any_number={"limit": 0}, throughput_status=400)
    assert endpoint.send().status == 400


def test_numbers_have_windows_of_their_own() -> None:
    endpoint = Endpoint(any_number={"limit": 1})
    assert [endpoint.send(number=number).status for number in ("1", "2", "1")] == [200, 200, 429]


def test_what_a_person_writes_counts_against_the_number() -> None:
    endpoint = Endpoint(any_number={"limit": 2})
    assert endpoint.api.inbound(NUMBER, "+16505551234", "STOP", at_us=0, order=1 << 64)
    assert [endpoint.send().status for _ in range(2)] == [200, 429]


def test_a_refusal_by_a_fault_leaves_the_window_alone_and_a_lost_answer_does_not() -> None:
    rules = [
        {"do": "error", "code": 131000, "match": {"first": 5}},
        {"do": "never_answer", "match": {"first": 1}},
    ]
    endpoint = Endpoint(any_number={"limit": 2}, rules=rules)
    statuses = [endpoint.send().status for _ in range(8)]
    assert statuses == [500] * 5 + [200, 200, 429]
    assert [endpoint.ledger.entry(n).accepted for n in range(1, 9)] == [False] * 5 + [True, True, False]


def test_a_scenario_put_in_force_changes_the_limit_without_forgetting_the_second_behind() -> None:
    endpoint = Endpoint(any_number={"limit": 80})
    assert [endpoint.send(at_us=0).status for _ in range(30)] == [200] * 30
    endpoint.replace(100_000, any_number={"limit": 25})
    assert endpoint.send(at_us=200_000).status == 429
    assert [endpoint.send(at_us=1_000_000).status for _ in range(26)] == [200] * 25 + [429]


@pytest.mark.parametrize(
    ("rule", "ending", "status", "outcome", "accepted"),
    [
        ({"do": "error", "code": 131056}, Ending.ANSWER, 400, "refused", False),
        ({"do": "error", "code": 131056, "http_status": 429}, Ending.ANSWER, 429, "refused", False),
        ({"do": "error", "code": 131000, "accepted": True}, Ending.ANSWER, 500, "refused", True),
        ({"do": "error_in_200", "code": 131000}, Ending.ANSWER, 200, "error_in_200", False),
        ({"do": "html_502"}, Ending.ANSWER, 502, "html_502", False),
        ({"do": "no_id"}, Ending.ANSWER, 200, "no_id", False),
        ({"do": "slow", "extra_ms": 5}, Ending.ANSWER, 200, "accepted", True),
        ({"do": "close_after_reading"}, Ending.CLOSE, 200, "closed", True),
        ({"do": "close_after_reading", "accepted": False}, Ending.CLOSE, 200, "closed", False),
        ({"do": "reset_after_reading", "accepted": False}, Ending.RESET, 200, "reset", False),
        ({"do": "never_answer"}, Ending.SILENCE, 200, "unanswered", True),
        ({"do": "half_reply"}, Ending.HALF, 200, "half_reply", True),
    ],
)
def test_each_fault_ends_as_it_says_and_the_ledger_knows_the_truth(
    rule: dict[str, Any], ending: Ending, status: int, outcome: str, accepted: bool
) -> None:
    endpoint = Endpoint(rules=[rule])
    verdict = endpoint.send()
    entry = endpoint.ledger.entry(1)
    assert (verdict.ending, verdict.status) == (ending, status)
    assert (entry.outcome, entry.accepted, entry.token) == (outcome, accepted, "tg1:c:1:1")


def test_an_error_rule_speaks_its_own_words_and_headers() -> None:
    rule = {
        "do": "error",
        "code": 131057,
        "title": "Busy",
        "details": "Wait.",
        "headers": {"Retry-After": "7"},
    }
    verdict = Endpoint(rules=[rule]).send()
    error = json.loads(verdict.body)["error"]
    assert (error["message"], error["error_data"]["details"]) == ("(#131057) Busy", "Wait.")
    assert verdict.headers == (("Retry-After", "7"),)


def test_a_slow_answer_takes_its_extra_time_on_top_of_the_latency() -> None:
    endpoint = Endpoint(
        latency={"fixed_ms": 20}, rules=[{"do": "slow", "extra_ms": 500, "match": {"first": 1}}]
    )
    assert [endpoint.send().delay_ms for _ in range(2)] == [520, 20]


def test_a_number_may_have_a_latency_of_its_own() -> None:
    endpoint = Endpoint(latency={"fixed_ms": 20}, numbers={"1": {"latency": {"fixed_ms": 3}}, "2": {}})
    assert [endpoint.send(number=number).delay_ms for number in ("1", "2")] == [3, 20]


def test_a_request_closed_at_its_headers_is_in_the_ledger_without_a_recipient() -> None:
    endpoint = Endpoint(rules=[{"do": "close_before_reading"}])
    verdict = endpoint.api.before_reading(NUMBER, BEARER, 5)
    entry = endpoint.ledger.entry(1)
    assert verdict is not None
    assert verdict.ending is Ending.CLOSE
    assert (entry.outcome, entry.to, entry.accepted, entry.at_us) == ("closed_unread", None, False, 5)


def test_paced_templates_are_held_after_so_many() -> None:
    endpoint = Endpoint(hold={"after": 2})
    said = [json.loads(endpoint.send().body)["messages"][0]["message_status"] for _ in range(3)]
    assert said == ["accepted", "accepted", "held_for_quality_assessment"]


def test_the_same_seed_gives_the_same_run() -> None:
    rules = [{"do": "html_502", "match": {"share": 0.5}}]
    one, other = Endpoint(seed=4, rules=rules), Endpoint(seed=4, rules=rules)
    assert [one.send() for _ in range(50)] == [other.send() for _ in range(50)]
