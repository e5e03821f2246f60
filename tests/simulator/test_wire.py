"""The bytes on the wire."""

from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from engine.simulator import wire

SECRET = b"test_app_secret"
SENDER = wire.Sender("106540352242922", "15550783881", "102290129340398")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def event(kind: str, code: int = 0, token: str | None = "tg1:c:1:1") -> wire.Event:
    return wire.Event(SENDER.number, "wamid.A", "16505551234", token, kind, 1750030073, code)


def test_the_published_vector_is_encoded_and_signed_to_the_byte() -> None:
    value = {"t": "äöå a@b.c http://x/y"}
    entry = {"id": "1", "changes": [{"field": "messages", "value": value}]}
    body = wire.encode({"object": "whatsapp_business_account", "entry": [entry]})
    assert body == (
        rb'{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages",'
        rb'"value":{"t":"\u00e4\u00f6\u00e5 a\u0040b.c http:\/\/x\/y"}}]}]}'
    )
    assert (
        wire.sign(body, SECRET) == "sha256=2a0ba9a74251e7263e80a5b6901d2d016e2f20bfc8a017ad2fa1e8a48cf1a7be"
    )


def test_every_status_body_breaks_a_receiver_that_serialises_again() -> None:
    body = wire.encode(wire.statuses_body([(SENDER, [event("sent")])]))
    again = json.dumps(json.loads(body), separators=(",", ":")).encode()
    assert wire.sign(again, SECRET) != wire.sign(body, SECRET)
    assert all(escape in body for escape in (rb"\u00e9", rb"\u0040", rb"\/"))


@given(json_values)
def test_encoding_is_ascii_and_keeps_the_value(value: object) -> None:
    body = wire.encode(value)
    assert body.isascii()
    assert json.loads(body) == value


def test_a_character_beyond_the_basic_plane_becomes_a_surrogate_pair() -> None:
    assert wire.encode("😀") == rb'"\ud83d\ude00"'


def test_a_failed_status_carries_its_error_and_no_price() -> None:
    body = wire.statuses_body([(SENDER, [event("failed", 131026)])])
    status = body["entry"][0]["changes"][0]["value"]["statuses"][0]
    assert (status["errors"][0]["code"], status["errors"][0]["title"]) == (131026, "Message undeliverable")
    assert "pricing" not in status


def test_a_status_of_a_message_without_token_has_none() -> None:
    body = wire.statuses_body([(SENDER, [event("sent", token=None)])])
    assert "biz_opaque_callback_data" not in body["entry"][0]["changes"][0]["value"]["statuses"][0]


def test_statuses_of_several_accounts_lie_in_several_entries() -> None:
    other = SENDER._replace(number="2", account="9")
    body = wire.statuses_body(
        [(SENDER, [event("sent")]), (SENDER, [event("read")]), (other, [event("sent")])]
    )
    assert [(entry["id"], len(entry["changes"])) for entry in body["entry"]] == [
        (SENDER.account, 2),
        ("9", 1),
    ]


def test_the_message_id_has_the_layout_of_real_ones() -> None:
    raw = base64.b64decode(wire.wamid(0xABC, "16505551234").removeprefix("wamid."))
    assert raw == b"\x1c\x18\x0b16505551234\x15\x02\x00\x11\x18\x12000000000000000ABC\x00"


def test_the_recipients_id_is_the_digits_of_the_number() -> None:
    assert wire.wa_id("+1 (650) 555-1234", rewrite=False) == "16505551234"
    assert wire.wa_id("call me", rewrite=False) is None
    assert wire.wa_id("+1234", rewrite=False) is None
    assert wire.wa_id("+1234567890123456", rewrite=False) is None


def test_brazilian_and_mexican_ids_differ_from_the_input_when_asked_for() -> None:
    assert wire.wa_id("+5531988880001", rewrite=True) == "553188880001"
    assert wire.wa_id("+5511988880001", rewrite=True) == "5511988880001"
    assert wire.wa_id("+525512345678", rewrite=True) == "5215512345678"
    assert wire.wa_id("+5531988880001", rewrite=False) == "5531988880001"


def test_an_error_has_metas_shape() -> None:
    error = json.loads(wire.error(130429, b"\x01" * 17))["error"]
    assert error["message"] == "(#130429) Rate limit hit"
    assert error["error_data"]["messaging_product"] == "whatsapp"
    assert (error["type"], error["code"], len(error["fbtrace_id"])) == ("OAuthException", 130429, 23)
