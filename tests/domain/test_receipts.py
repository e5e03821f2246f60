"""Reading webhook bodies, whatever they hold."""

import json
from typing import Any

import pytest

from engine.domain.message import Token
from engine.domain.receipts import Fault, Receipt, UnparsableError, parse
from engine.domain.recipient import State

NUMBER = "106540352242922"
TOKEN = "tg1:abc:1001:2"


def status(word: str = "sent", wamid: object = "wamid.AAA", **more: object) -> dict[str, Any]:
    return {"id": wamid, "status": word, "timestamp": "1750030073", "recipient_id": "16505551234", **more}


def value(*statuses: object, **more: object) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550783881", "phone_number_id": NUMBER},
        "statuses": list(statuses),
        **more,
    }


def body(*values: object, kind: str = "messages") -> bytes:
    changes = [{"field": kind, "value": one} for one in values]
    root = {"object": "whatsapp_business_account", "entry": [{"id": "WABA", "changes": changes}]}
    return json.dumps(root).encode()


def test_a_status_is_read_with_its_token_number_and_time() -> None:
    sent = status(biz_opaque_callback_data=TOKEN, pricing={"billable": True}, conversation={"id": "x"})
    assert parse(body(value(sent))).statuses == [
        Receipt(State.SENT, "wamid.AAA", Token("abc", 1001, 2), NUMBER, 1750030073.0)
    ]


def test_a_failure_keeps_code_title_and_details() -> None:
    error = {"code": 131026, "title": "Message undeliverable", "error_data": {"details": "No such user."}}
    [receipt] = parse(body(value(status("failed", errors=[error])))).statuses
    assert (receipt.state, receipt.code) == (State.FAILED, 131026)
    assert (receipt.title, receipt.details) == ("Message undeliverable", "No such user.")


def test_every_entry_change_and_status_is_read() -> None:
    change = {"field": "messages", "value": value(status("sent"), status("delivered"))}
    raw = json.dumps({"entry": [{"changes": [change, change]}, {"changes": [change]}]}).encode()
    assert [receipt.state for receipt in parse(raw).statuses] == [State.SENT, State.DELIVERED] * 3


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("1750030073", 1750030073.0),
        (1750030073, 1750030073.0),
        ("1750030073123", 1750030073.123),
        (1750030073123, 1750030073.123),
        (None, None),
        ("soon", None),
        ("NaN", None),
        (-5, None),
        (True, None),
        ([], None),
        (10**400, None),
        ("9" * 30, None),
    ],
)
def test_times_come_in_seconds_or_milliseconds_quoted_or_not_or_are_left_out(
    stamp: object, seconds: float | None
) -> None:
    [receipt] = parse(body(value(status() | {"timestamp": stamp}))).statuses
    assert receipt.at == seconds


@pytest.mark.parametrize(
    ("code", "read"),
    [("131026", 131026), (131026, 131026), (None, None), ("x", None), (10**12, None), ({}, None)],
)
def test_a_code_that_is_no_number_leaves_a_failure_without_code(code: object, read: int | None) -> None:
    [receipt] = parse(body(value(status("failed", errors=[{"code": code}])))).statuses
    assert receipt.code == read


@pytest.mark.parametrize("errors", [None, [], "x", {"code": 1}, [7], [{"code": 1, "error_data": "x"}]])
def test_a_failure_with_odd_errors_is_still_a_failure(errors: object) -> None:
    [receipt] = parse(body(value(status("failed", errors=errors)))).statuses
    assert receipt.state is State.FAILED


def test_the_token_of_another_client_is_none_of_ours() -> None:
    others = ["c42:r1001:a1", 7, None, "tg1:abc:99999999999999999999:1", "tg1:abc:9999999999999999999:1"]
    receipts = parse(body(value(*(status(biz_opaque_callback_data=other) for other in others)))).statuses
    assert [receipt.token for receipt in receipts] == [None] * len(others)


def test_words_that_mean_nothing_to_us_are_counted_and_left() -> None:
    parsed = parse(body(value(status("played"), status("deleted"), status("deleted"), status("read"))))
    assert parsed.ignored == {"played": 1, "deleted": 2}
    assert [receipt.state for receipt in parsed.statuses] == [State.READ]


@pytest.mark.parametrize("odd", [7, None, "x", [], {}, {"status": 7}, {"status": None}])
def test_one_odd_status_never_costs_the_others(odd: object) -> None:
    parsed = parse(body(value(status("sent"), odd, status("read"))))
    assert [receipt.state for receipt in parsed.statuses] == [State.SENT, State.READ]
    assert parsed.odd == ["status"]


@pytest.mark.parametrize("odd", [7, None, "x", {}, {"field": "messages"}, {"field": "messages", "value": 7}])
def test_one_odd_change_never_costs_the_others(odd: object) -> None:
    good = {"field": "messages", "value": value(status())}
    parsed = parse(json.dumps({"entry": [7, {"changes": [odd, good]}]}).encode())
    assert [receipt.number for receipt in parsed.statuses] == [NUMBER]
    assert parsed.odd == ["entry", "change"]


def test_a_cut_emoji_in_a_name_does_not_cost_the_body() -> None:
    raw = body(value(status(), contacts=[{"profile": {"name": "\ud83d"}}]))
    assert len(parse(raw).statuses) == 1


def test_no_text_holds_what_the_database_refuses() -> None:
    error = {"code": 1, "title": "a\0b\ud83d", "error_data": {"details": "x" * 9000}}
    [receipt] = parse(body(value(status("failed", wamid="w\0\ud83d" + "x" * 900, errors=[error])))).statuses
    assert receipt.title == "ab?"
    assert receipt.wamid is not None
    assert "\0" not in receipt.wamid
    assert max(len(receipt.wamid.encode()), len(receipt.details)) <= 512


def test_what_people_write_and_errors_of_no_message_are_counted() -> None:
    inbound = {"from": "16505551234", "id": "wamid.IN", "type": "text", "text": {"body": "STOP"}}
    parsed = parse(body(value(messages=[inbound, inbound], errors=[{"code": 130429}])))
    assert [message.wamid for message in parsed.messages] == ["wamid.IN", "wamid.IN"]
    assert parsed.errors == [Fault(NUMBER, 130429, "", "")]
    assert parsed.statuses == []


def test_changes_of_other_fields_are_counted_by_field() -> None:
    parsed = parse(body({"event": "PAUSED", "statuses": "not ours"}, kind="message_template_status_update"))
    assert parsed.fields == {"message_template_status_update": 1}
    assert parsed.odd == []


@pytest.mark.parametrize("raw", [b"", b"[]", b"7", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000])
def test_what_is_no_json_object_is_unparsable(raw: bytes) -> None:
    with pytest.raises(UnparsableError):
        parse(raw)


@pytest.mark.parametrize("raw", [b"{}", b'{"entry":7}', b'{"entry":[{"changes":{}}]}', b'{"entry":[]}'])
def test_an_object_with_nothing_in_it_is_read_as_nothing(raw: bytes) -> None:
    assert parse(raw).statuses == []
