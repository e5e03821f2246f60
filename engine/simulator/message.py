"""Reads the body of a send and says what Meta would complain about."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import Decoder

from engine.simulator.wire import wa_id

# fmt: off
TYPES = frozenset((
    "text", "template", "image", "video", "audio", "document", "sticker", "location", "contacts",
    "interactive", "reaction", "order",
))
COMPONENTS = frozenset((
    "header", "body", "footer", "button", "buttons", "carousel", "limited_time_offer", "order_status",
))
# fmt: on
TEXT_LIMIT = 4096
TOKEN_LIMIT = 512


class Complaint(NamedTuple):
    """A refusal of the body: error code, title (None: the code's usual one) and details."""

    code: int
    title: str | None
    details: str


class Message(NamedTuple):
    """What the simulator keeps of an accepted body. `template` is (name, language) or None."""

    to: str
    wa_id: str
    token: str | None
    template: tuple[str, str] | None


class _Language(Struct):
    code: str | None = None


class _Component(Struct):
    type: str


class _Template(Struct):
    name: str | None = None
    language: _Language | None = None
    components: list[_Component] | None = None


class _Text(Struct):
    body: str | None = None


class _Send(Struct):
    messaging_product: str | None = None
    recipient_type: str | None = None
    to: str | None = None
    recipient: str | None = None
    type: str | None = None
    template: _Template | None = None
    text: _Text | None = None
    biz_opaque_callback_data: str | None = None


_TYPED = Decoder(_Send)
_PLAIN = Decoder(dict[str, Any])


def read_message(body: bytes, *, rewrite: bool) -> Message | Complaint:
    """The message in a request body, or the first thing Meta would refuse it for."""
    try:
        send = _TYPED.decode(body)
    except ValidationError as error:
        return Complaint(131009, None, f"{error}")
    except (DecodeError, UnicodeDecodeError):
        return Complaint(100, None, "The request body is not valid JSON.")
    return _missing(send) or _unusable(send, body) or _recipient(send, rewrite=rewrite)


def _missing(send: _Send) -> Complaint | None:
    if send.messaging_product is None:
        return Complaint(100, "The parameter messaging_product is required.", "messaging_product is missing.")
    if send.to is None and send.recipient is not None:
        return Complaint(131062, None, "recipient (a business-scoped user id) is not supported here; use to.")
    if not send.to:
        return Complaint(100, "The parameter to is required.", "to is missing.")
    if send.type is None:
        return Complaint(131008, None, "type is missing.")
    if send.type == "template":
        return _missing_of_template(send.template)
    if send.type == "text" and (send.text is None or not send.text.body):
        return Complaint(131008, None, "text['body'] is missing.")
    return None


def _missing_of_template(template: _Template | None) -> Complaint | None:
    if template is None:
        return Complaint(131008, None, "template is missing.")
    if not template.name:
        return Complaint(131008, None, "template['name'] is missing.")
    if template.language is None or not template.language.code:
        return Complaint(131008, None, "template['language']['code'] is missing.")
    return None


def _unusable(send: _Send, body: bytes) -> Complaint | None:
    if send.messaging_product != "whatsapp":
        return Complaint(100, None, "messaging_product must be whatsapp.")
    if send.recipient_type not in (None, "individual"):
        return Complaint(131009, None, "recipient_type must be individual.")
    if send.type not in TYPES:
        return Complaint(100, None, f"type must be one of {', '.join(sorted(TYPES))}.")
    if send.type == "text" and send.text and len(send.text.body or "") > TEXT_LIMIT:
        return Complaint(100, None, f"text['body'] must be at most {TEXT_LIMIT} characters long.")
    if send.type not in ("text", "template") and not _PLAIN.decode(body).get(send.type):
        return Complaint(131008, None, f"{send.type} is missing.")
    for component in (send.template and send.template.components) or ():
        if component.type.lower() not in COMPONENTS:
            return Complaint(131009, None, "template['components'] holds an unknown type.")
    if len(send.biz_opaque_callback_data or "") > TOKEN_LIMIT:
        return Complaint(
            100, None, f"biz_opaque_callback_data must be at most {TOKEN_LIMIT} characters long."
        )
    return None


def _recipient(send: _Send, *, rewrite: bool) -> Message | Complaint:
    to = send.to or ""
    wa = wa_id(to, rewrite=rewrite)
    if wa is None:
        return Complaint(131009, None, "to is not a phone number.")
    template = send.template if send.type == "template" else None
    kept = (template.name or "", (template.language and template.language.code) or "") if template else None
    return Message(to, wa, send.biz_opaque_callback_data, kept)
