"""The conversational gateway's words: the path it serves, and errors shaped as the Graph API's own."""

import json
import math
import re
from dataclasses import dataclass

PATH = re.compile(r"/v(\d{1,3})\.(\d)/(\d{1,32})/messages", re.ASCII)


def number_of(path: str) -> str | None:
    """Meta's phone number id in `/vNN.N/<id>/messages`, or None when the path is another."""
    match = PATH.fullmatch(path)
    return match[3] if match else None


def recipient_of(body: bytes) -> str | None:
    """The person that a message is for, in E.164 with +; None when the body does not say so plainly."""
    try:
        message = json.loads(body)
    except ValueError:
        return None
    to = message.get("to") if isinstance(message, dict) else None
    digits = to.removeprefix("+") if isinstance(to, str) else ""
    return f"+{digits}" if digits.isdecimal() and digits.isascii() else None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the client gets: Meta's own bytes, or an error of ours in the same shape."""

    status: int
    body: bytes
    content_type: str = "application/json"
    retry_after: float | None = None
    """Seconds, for 429 and 503."""
    closing: bool = False
    """The connection ends with it: or the rest of a body would still be read, at its own pace."""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """For ASGI."""
        found = [
            (b"content-type", self.content_type.encode("latin-1", "replace")),
            (b"content-length", str(len(self.body)).encode()),
        ]
        if self.retry_after is not None:
            found.append((b"retry-after", str(max(1, math.ceil(self.retry_after))).encode()))
        if self.closing:
            found.append((b"connection", b"close"))
        return found


def refusal(
    status: int,
    code: int,
    title: str,
    details: str,
    retry_after: float | None = None,
    *,
    closing: bool = False,
) -> Reply:
    """An error as the Graph API words it, so that any client of it understands."""
    error = {
        "message": f"(#{code}) {title}",
        "type": "OAuthException",
        "code": code,
        "error_data": {"messaging_product": "whatsapp", "details": details},
        "fbtrace_id": "tidegate",
    }
    return Reply(status, json.dumps({"error": error}).encode(), retry_after=retry_after, closing=closing)
