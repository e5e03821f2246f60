"""The WhatsApp Cloud API, as far as sending goes: one request, one answer, never an exception about the provider."""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import msgspec

from engine.clients.transport import provably_not_sent, warm
from engine.clock import now
from engine.domain.errors import meaning
from engine.domain.outcome import Accepted, Ambiguous, Answer, NotSent, Refused, own_words

RAW_BYTES = 1000
"""How much of an answer is kept as evidence."""

LONGEST_RETRY_AFTER = 3600.0
LONGEST_WAMID = 256

HOP = "x-tidegate-hop"
"""On requests that one node's gateway passed to another: one hop and no more."""


Prepared = httpx.Request
"""A request that is ready to leave; only this package looks inside."""


class WhatsApp:
    """Sends through one transport. The base URL carries the version: https://graph.facebook.com/v25.0."""

    def __init__(self, transport: httpx.AsyncBaseTransport, base_url: str) -> None:
        self._transport = transport
        self._base = base_url.rstrip("/")
        self._urls: dict[str, httpx.URL] = {}

    def request(self, number: str, access_token: str, body: Mapping[str, object]) -> Prepared:
        """A ready request for `send`; `number` is Meta's phone number id."""
        return httpx.Request(
            "POST",
            self._url(number),
            headers={"authorization": f"Bearer {access_token}", "content-type": "application/json"},
            content=msgspec.json.encode(body),
        )

    async def send(self, request: Prepared) -> Answer:
        """Hand the request to a connection and read its answer. Errors become answers; cancellation passes."""
        try:
            response = await self._transport.handle_async_request(request)
            content = await response.aread()
        except httpx.TransportError as error:
            reason = f"{type(error).__name__}: {error}"[:RAW_BYTES]
            return NotSent(reason) if provably_not_sent(error) else Ambiguous(reason)
        return read_answer(response.status_code, response.headers, content)

    async def warm(self, connections: int) -> int:
        """Open connections before they are needed; returns how many were answered on. Errors wait for the sends."""
        return await warm(self._transport, self._base, connections)

    async def pass_on(self, number: str, access_token: str, body: bytes) -> "Passed | NotSent | Ambiguous":
        """Send a body that is not ours, byte for byte, and bring back the answer as it is."""
        headers = {"authorization": f"Bearer {access_token}", "content-type": "application/json"}
        return await self._pass(self._url(number), headers, body)

    async def hop(self, base: str, path: str, bearer: str, body: bytes) -> "Passed | NotSent | Ambiguous":
        """The same through another node's gateway, which must not pass it on again."""
        headers = {"authorization": f"Bearer {bearer}", "content-type": "application/json", HOP: "1"}
        return await self._pass(httpx.URL(base.rstrip("/") + path), headers, body)

    async def _pass(
        self, url: httpx.URL, headers: dict[str, str], body: bytes
    ) -> "Passed | NotSent | Ambiguous":
        request = httpx.Request("POST", url, headers=headers, content=body)
        try:
            response = await self._transport.handle_async_request(request)
            content = await response.aread()
        except httpx.TransportError as error:
            reason = f"{type(error).__name__}: {error}"[:RAW_BYTES]
            return NotSent(reason) if provably_not_sent(error) else Ambiguous(reason)
        kind = response.headers.get("content-type", "application/json")
        return Passed(response.status_code, kind, content, retry_after(response.headers.get("retry-after")))

    def _url(self, number: str) -> httpx.URL:
        url = self._urls.get(number)
        if url is None:
            url = self._urls[number] = httpx.URL(f"{self._base}/{number}/messages")
        return url


@dataclass(frozen=True, slots=True)
class Passed:
    """Somebody else's answer, as it came; retry_after in seconds where it was said."""

    status: int
    content_type: str
    body: bytes
    retry_after: float | None

    def read(self) -> Answer:
        """What it says of the number."""
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return read_answer(self.status, headers, self.body)


def read_answer(status: int, headers: Mapping[str, str], content: bytes) -> Answer:
    """What an answer says. Success is 2xx with a message id and no error; a JSON error is definite at any status;
    everything else leaves open whether the message was taken.
    """
    raw = content[:RAW_BYTES].decode("utf-8", "replace").replace("\0", "")  # Postgres keeps no NUL in text
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):  # nested a thousand deep, not UTF-8
        return Ambiguous(f"HTTP {status} without JSON", raw) if status != 429 else _throttled(headers, raw)
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return _refused(error, status, headers, raw)
    if 200 <= status < 300:
        return _accepted(body, raw)
    return (
        Ambiguous(f"HTTP {status} without an error object", raw)
        if status != 429
        else _throttled(headers, raw)
    )


def _accepted(body: Any, raw: str) -> Answer:
    try:
        message = body["messages"][0]
        wamid = message["id"]
    except (KeyError, IndexError, TypeError):
        return Ambiguous("HTTP 200 without a message id", raw)
    if not isinstance(wamid, str) or not wamid or len(wamid) > LONGEST_WAMID or "\0" in wamid:
        return Ambiguous("HTTP 200 without a message id", raw)
    return Accepted(
        wamid, assessing=message.get("message_status") in ("held_for_quality_assessment", "paused")
    )


def _refused(error: dict[str, Any], status: int, headers: Mapping[str, str], raw: str) -> Answer:
    code = _int(error.get("code"))
    if code is None:
        return (
            Ambiguous(f"HTTP {status}, an error without a code", raw)
            if status != 429
            else _throttled(headers, raw)
        )
    details = f"{error.get('message', '')} {_details(error.get('error_data'))}"
    wait = retry_after(headers.get("retry-after"))
    return Refused(code, meaning(code, http_status=status, details=details), raw, wait, own_words(details))


def _throttled(headers: Mapping[str, str], raw: str) -> Refused:
    return Refused(429, meaning(429, http_status=429), raw, retry_after(headers.get("retry-after")))


def _details(error_data: object) -> str:
    if isinstance(error_data, dict):
        return str(error_data.get("details", ""))
    return error_data if isinstance(error_data, str) else ""


def _int(value: object) -> int | None:
    """A code, also when it comes quoted; None for anything else and for what no code can be."""
    try:
        code = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        return None
    return code if code is not None and 0 <= code < 2**31 else None


def retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header, given as seconds or as an HTTP date; None when absent or unreadable.

    Bounded to an hour: a wrong header must not silence a number for a day.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - now()).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER) if seconds == seconds else None
