"""What one row says to one person, and the opaque token that names the try which carried it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.domain.content import Button, Content, Media, Variable

_TOKEN = re.compile(r"tg1:([a-z0-9]{1,32}):([1-9]\d{0,18}):([1-9]\d{0,8})", re.ASCII)
_LARGEST_ROW = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Token:
    """Unique for ever: campaign's random id, row, try number. Meta echoes it in every status."""

    campaign: str
    row: int
    n: int

    def __str__(self) -> str:
        """The wire form, at most 68 ASCII bytes: `tg1:<campaign>:<row>:<n>`."""
        return f"tg1:{self.campaign}:{self.row}:{self.n}"


def parse_token(text: object) -> Token | None:
    """Our token back from a status, or None when the text is not one of ours (a client's own, say)."""
    match = _TOKEN.fullmatch(text) if isinstance(text, str) else None
    if match is None or int(match[2]) > _LARGEST_ROW:  # no row of ours, and no number that a database takes
        return None
    return Token(match[1], int(match[2]), int(match[3]))


@dataclass(frozen=True, slots=True)
class Template:
    """An approved template and what fills it: `content`, or no more than the columns of its body, in order."""

    name: str
    language: str
    body: tuple[str, ...] = ()
    content: Content | None = None

    @property
    def filling(self) -> Content:
        """The content, whichever way it was said."""
        return self.content if self.content is not None else Content.of_columns(self.body)


def template_message(
    to: str, template: Template, params: Mapping[str, str], token: Token
) -> dict[str, object]:
    """The request body of one template message.

    `to` is E.164 with its `+`: without it Meta prepends the sender's own country code.
    A missing parameter is a KeyError: imports refuse such rows, so one here is a fault of ours.
    """
    content: dict[str, object] = {"name": template.name, "language": {"code": template.language}}
    if components := _components(template.filling, params):
        content["components"] = components
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": to,
        "type": "template",
        "template": content,
        "biz_opaque_callback_data": str(token),
    }


def _components(content: Content, params: Mapping[str, str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    if content.header is not None:
        found.append({"type": "header", "parameters": [_header(content.header, params)]})
    if content.body:
        found.append({"type": "body", "parameters": [_text(variable, params) for variable in content.body]})
    return found + [_button(button, params) for button in content.buttons]


def _header(header: Variable | Media, params: Mapping[str, str]) -> dict[str, object]:
    if isinstance(header, Variable):
        return _text(header, params)
    parts = {"link": header.link, "id": header.id, "filename": header.filename}
    media = {name: value.of(params) for name, value in parts.items() if value is not None}
    return {"type": header.type, header.type: media}


def _text(variable: Variable, params: Mapping[str, str]) -> dict[str, object]:
    named = {"parameter_name": variable.name} if variable.name else {}
    return {"type": "text", **named, "text": variable.value.of(params)}


def _button(button: Button, params: Mapping[str, str]) -> dict[str, object]:
    value = button.value.of(params)
    match button.type:
        case "quick_reply":
            parameter = {"type": "payload", "payload": value}
        case "copy_code":
            parameter = {"type": "coupon_code", "coupon_code": value}
        case _:
            parameter = {"type": "text", "text": value}
    return {"type": "button", "sub_type": button.type, "index": str(button.index), "parameters": [parameter]}


def masked(phone: str) -> str:
    """A phone number as logs and screens show it: the first three and the last two digits.

    >>> masked("+5511988880001")
    '+551…01'
    """
    return f"{phone[:4]}…{phone[-2:]}" if len(phone) > 7 else "…"
