"""What one row says to one person, and the opaque token that names the try which carried it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r"tg1:([a-z0-9]{1,32}):([1-9]\d{0,18}):([1-9]\d{0,8})")


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
    return Token(match[1], int(match[2]), int(match[3])) if match else None


@dataclass(frozen=True, slots=True)
class Template:
    """An approved template and the columns that fill the variables of its body, in order."""

    name: str
    language: str
    body: tuple[str, ...] = ()


def template_message(
    to: str, template: Template, params: Mapping[str, str], token: Token
) -> dict[str, object]:
    """The request body of one template message.

    `to` is E.164 with its `+`: without it Meta prepends the sender's own country code.
    A missing parameter is a KeyError: imports refuse such rows, so one here is a fault of ours.
    """
    content: dict[str, object] = {"name": template.name, "language": {"code": template.language}}
    if template.body:
        content["components"] = [{"type": "body", "parameters": _texts([params[c] for c in template.body])}]
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": to,
        "type": "template",
        "template": content,
        "biz_opaque_callback_data": str(token),
    }


def _texts(values: Sequence[str]) -> list[dict[str, str]]:
    return [{"type": "text", "text": value} for value in values]


def masked(phone: str) -> str:
    """A phone number as logs and screens show it: the first three and the last two digits.

    >>> masked("+5511988880001")
    '+551…01'
    """
    return f"{phone[:4]}…{phone[-2:]}" if len(phone) > 7 else "…"
