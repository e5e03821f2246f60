"""The bytes of both directions: answers of the messages endpoint, webhook bodies, their signature.

Shapes are those of sections 1.5, 1.6 and 4.2 to 4.6 of the reference. Everything here is pure.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.json import Encoder

from engine.simulator.codes import wording

_ENCODE = Encoder().encode
_SEPARATORS = str.maketrans("", "", "+-() ")
_NON_ASCII = re.compile(r"[^\x00-\x7f]")
_PRICING = {"billable": True, "pricing_model": "PMP", "type": "regular", "category": "marketing"}
# A name with all that Meta escapes on the wire: a receiver that parses and re-serialises before it checks
# the signature fails on every body, not only on the day somebody called José writes.
_PROFILE = {"name": "José @ Ação 24/7"}
_HREF = "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/"


class Event(NamedTuple):
    """One status of one message, ready to be written. `at_s` is Unix seconds; `code` only when failed."""

    number: str
    wamid: str
    wa_id: str
    token: str | None
    kind: str
    at_s: int
    code: int = 0
    title: str = ""
    details: str = ""


class Sender(NamedTuple):
    """What a webhook says about the business number."""

    number: str
    display: str
    account: str


def wa_id(to: str, *, rewrite: bool) -> str | None:
    """WhatsApp's id for a recipient, digits only, or None when `to` is no phone number.

    With `rewrite`, Brazilian numbers outside the first area codes lose their ninth digit and Mexican ones get
    their 1: Meta's ids do differ from the input there (section 1.4).
    """
    digits = to.translate(_SEPARATORS)
    if not (digits.isascii() and digits.isdigit() and 5 <= len(digits) <= 15):
        return None
    if rewrite and len(digits) == 13 and digits.startswith("55") and digits[2] >= "3" and digits[4] == "9":
        return digits[:4] + digits[5:]
    if rewrite and len(digits) == 12 and digits.startswith("52"):
        return "521" + digits[2:]
    return digits


def wamid(unique: int, wa: str, *, inbound: bool = False) -> str:
    """A message id in the layout seen in real ones; `unique` is below 2**72."""
    head = b"\x1c\x18" + bytes((len(wa),)) + wa.encode()
    mark = b"\x15\x02\x00\x12\x18\x14" if inbound else b"\x15\x02\x00\x11\x18\x12"
    return "wamid." + b64encode(head + mark + b"%018X" % unique + b"\x00").decode()


def success(to: str, wa: str, message_id: str, message_status: str | None) -> bytes:
    """The body of a 200; `message_status` only for templates."""
    message = {"id": message_id}
    if message_status is not None:
        message["message_status"] = message_status
    return _ENCODE(
        {"messaging_product": "whatsapp", "contacts": [{"input": to, "wa_id": wa}], "messages": [message]}
    )


def success_without_id(to: str, wa: str) -> bytes:
    """A 200 that names no message, which some integrators guard against."""
    return _ENCODE({"messaging_product": "whatsapp", "contacts": [{"input": to, "wa_id": wa}]})


def error(code: int, trace: bytes, title: str | None = None, details: str | None = None) -> bytes:
    """The body of a refusal by the messaging product."""
    usual = wording(code)
    return _ENCODE(
        {
            "error": {
                "message": f"(#{code}) {title or usual.title}",
                "type": "OAuthException",
                "code": code,
                "error_data": {"messaging_product": "whatsapp", "details": details or usual.details},
                "fbtrace_id": trace_id(trace),
            }
        }
    )


def graph_error(message: str, code: int, trace: bytes, subcode: int | None = None) -> bytes:
    """The body of a refusal by the platform itself (bad token, unknown object): no `error_data`."""
    kind = "GraphMethodException" if code == 100 else "OAuthException"
    body: dict[str, Any] = {"message": message, "type": kind, "code": code}
    if subcode is not None:
        body["error_subcode"] = subcode
    return _ENCODE({"error": body | {"fbtrace_id": trace_id(trace)}})


def trace_id(trace: bytes) -> str:
    """Meta's trace id: an A and 22 more characters, from 17 bytes."""
    return "A" + urlsafe_b64encode(trace).decode().rstrip("=")[:22]


HTML_502 = (
    b"<!DOCTYPE html>\n<html lang='en'><head><title>Facebook | Error</title></head>\n"
    b"<body><h1>Sorry, something went wrong.</h1><p>We're working on getting this fixed.</p></body></html>\n"
)


def statuses_body(changes: Sequence[tuple[Sender, Sequence[Event]]]) -> dict[str, Any]:
    """A webhook of statuses: a new entry wherever the account changes and before each third change."""
    entries: list[dict[str, Any]] = []
    for place, (sender, events) in enumerate(changes):
        if not entries or entries[-1]["id"] != sender.account or place % 3 == 0:
            entries.append({"id": sender.account, "changes": []})
        value = _value(sender) | {
            "contacts": [{"profile": _PROFILE, "wa_id": events[0].wa_id}],
            "statuses": [_status(event) for event in events],
        }
        entries[-1]["changes"].append({"field": "messages", "value": value})
    return {"object": "whatsapp_business_account", "entry": entries}


def inbound_body(sender: Sender, wa: str, text: str, message_id: str, at_s: int) -> dict[str, Any]:
    """A webhook of one text that a person wrote to the number."""
    message = {"from": wa, "id": message_id, "timestamp": str(at_s), "type": "text", "text": {"body": text}}
    value = _value(sender) | {"contacts": [{"profile": _PROFILE, "wa_id": wa}], "messages": [message]}
    entry = {"id": sender.account, "changes": [{"field": "messages", "value": value}]}
    return {"object": "whatsapp_business_account", "entry": [entry]}


def template_paused_body(account: str, name: str, language: str, at_s: int) -> dict[str, Any]:
    """A webhook saying that a template was paused by pacing."""
    value = {
        "event": "PAUSED",
        "message_template_id": 1689556908129832,
        "message_template_name": name,
        "message_template_language": language,
        "reason": "NONE",
        "message_template_category": "MARKETING",
        "other_info": {
            "title": "RATE_LIMITING_PAUSE",
            "description": "Paused while its quality is assessed.",
        },
    }
    change = {"field": "message_template_status_update", "value": value}
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": account, "time": at_s, "changes": [change]}],
    }


def encode(value: object) -> bytes:
    r"""JSON as Meta's webhooks write it: ASCII only, lower-case \uXXXX, and `/` and `@` escaped too."""
    data = _ENCODE(value)
    if not data.isascii():
        data = _NON_ASCII.sub(_escape, data.decode()).encode("ascii")
    # Both characters occur only inside JSON texts, so a plain replacement keeps the document's meaning.
    return data.replace(b"/", b"\\/").replace(b"@", b"\\u0040")


def sign(body: bytes, app_secret: bytes) -> str:
    """The value of X-Hub-Signature-256 for exactly these bytes."""
    return "sha256=" + hmac.digest(app_secret, body, hashlib.sha256).hex()


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def _value(sender: Sender) -> dict[str, Any]:
    return {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": sender.display, "phone_number_id": sender.number},
    }


def _status(event: Event) -> dict[str, Any]:
    status: dict[str, Any] = {
        "id": event.wamid,
        "status": event.kind,
        "timestamp": str(event.at_s),
        "recipient_id": event.wa_id,
    }
    if event.token is not None:
        status["biz_opaque_callback_data"] = event.token
    if event.kind in ("sent", "delivered"):
        status["pricing"] = _PRICING
    if event.kind == "failed":
        usual = wording(event.code)
        title = event.title or usual.title
        status["errors"] = [
            {
                "code": event.code,
                "title": title,
                "message": title,
                "error_data": {"details": event.details or usual.details},
                "href": _HREF,
            }
        ]
    return status
