"""The webhook's door: verify, store durably, answer. Nothing else happens in the request."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol
from urllib.parse import parse_qs

from engine.delivery.group import NotStoredError
from engine.domain.signature import valid

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_BYTES = 3 * 1024 * 1024
"""Meta's largest batch, 1,000 statuses, is well under this; others cap at 1 MB and would drop it."""

BODY_SECONDS = 10.0


class Store(Protocol):
    """All that the receiver needs of storage."""

    async def add(self, body: bytes, signature: str) -> None:
        """Return when `body` is durable, with the signature that it came with. Raises NotStoredError."""


class Receiver:
    """ASGI application of one path: GET is Meta's handshake, POST a signed body.

    `secrets` are the apps' secrets: each subscribed app signs with its own. Neither they nor the verify token
    appear in a repr, an answer or a log.
    """

    def __init__(self, store: Store, secrets: Sequence[bytes], verify_token: str) -> None:
        self._store = store
        self._secrets = tuple(secrets)
        self._verify_token = verify_token.encode()
        self.answers: dict[int, int] = {}
        """How many requests were answered with each HTTP status."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["method"]:
            case "POST":
                status, text = await self._post(scope, receive)
            case "GET" | "HEAD":
                status, text = self._handshake(scope)
            case _:
                status, text = 405, b"Only GET and POST are known here.\n"
        self.answers[status] = self.answers.get(status, 0) + 1
        await answer(send, status, text)

    def _handshake(self, scope: Scope) -> tuple[int, bytes]:
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        mode, token, challenge = (
            query.get(name, [""])[0] for name in ("hub.mode", "hub.verify_token", "hub.challenge")
        )
        known = hmac.compare_digest(token.encode(), self._verify_token) and bool(self._verify_token)
        if mode == "subscribe" and known:
            return 200, challenge.encode()
        return 403, b"The verify token is not ours.\n"

    async def _post(self, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        headers = dict(scope["headers"])
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await read(headers, receive)
        except BodyTooLargeError:
            return 413, b"A webhook body has at most 3 MB.\n"
        except (TimeoutError, ConnectionError):
            return 408, b"The body did not arrive.\n"
        signature = headers.get(b"x-hub-signature-256", b"").decode("latin-1")
        if not valid(self._secrets, body, signature):
            return 401, b"The signature does not match.\n"
        try:
            await self._store.add(body, signature)
        except NotStoredError:
            return 503, b"It could not be stored; send it again.\n"
        return 200, b""


class BodyTooLargeError(Exception):
    """More bytes than BODY_BYTES were announced or came."""


async def read(headers: MutableMapping[bytes, bytes], receive: Receive) -> bytes:
    """The whole body, as it came. Raises BodyTooLargeError, and ConnectionError when the client goes away."""
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced[:20]) > BODY_BYTES:
        raise BodyTooLargeError
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_BYTES:
            raise BodyTooLargeError
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def answer(send: Send, status: int, body: bytes) -> None:
    """One whole plain-text response."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    if status in (408, 413):
        headers.append(
            (b"connection", b"close")
        )  # or the rest of the body would still be read, at its own pace
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
