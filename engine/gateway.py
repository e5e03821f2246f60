"""The conversational gateway: any Cloud API client can be pointed at it by its base URL.

A message goes out through its number's own windows, ahead of campaigns, and is answered with Meta's own bytes. On a
node that does not own the number it is passed to the one that does: one hop, and never twice once it has left.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import SecretStr

from engine.clients.whatsapp import HOP, Passed, WhatsApp
from engine.delivery.receiver import BODY_SECONDS, BodyTooLargeError, Receive, Scope, Send, read
from engine.domain.gateway import Reply, number_of, refusal
from engine.domain.outcome import NotSent
from engine.postgres.desired import Number
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.leases import LeaseRow
from engine.sending.pipeline import Pipeline

PATIENCE = 5.0
"""Seconds that a message may wait for its place before it is answered 429."""


class Gateway:
    """ASGI application for every path that is nobody else's. Without a token it does not exist: 404."""

    def __init__(
        self,
        token: SecretStr | None,
        whatsapp: WhatsApp,
        numbers: Callable[[], Mapping[int, Number]],
        owned: Callable[[], Mapping[str, Pipeline]],
        leases: Callable[[], Mapping[int, LeaseRow]],
        look_again: Callable[[], Awaitable[None]],
        access_token: Callable[[str], SecretStr | str],
        patience: float = PATIENCE,
    ) -> None:
        """`owned`: the pipelines of this node, by Meta's phone number id. `look_again` reads `leases` anew."""
        self._token = token.get_secret_value().encode() if token else b""
        self._whatsapp = whatsapp
        self._numbers = numbers
        self._owned = owned
        self._leases = leases
        self._look_again = look_again
        self._access_token = access_token
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = await self._answer(scope, receive)
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        await send({"type": "http.response.body", "body": reply.body})

    async def _answer(self, scope: Scope, receive: Receive) -> Reply:
        number = number_of(scope["path"])
        if number is None or not self._token:
            return Reply(404, b"There is nothing here.\n", "text/plain")
        if scope["method"] != "POST":
            return refusal(405, 100, "Unsupported request", "Only POST is known here.")
        headers: dict[bytes, bytes] = dict(scope["headers"])
        bearer = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        if not hmac.compare_digest(bearer, self._token):
            return refusal(401, 190, "Invalid OAuth access token", "The bearer is not this gateway's token.")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await read(headers, receive)
        except BodyTooLargeError:
            return refusal(413, 100, "Invalid parameter", "A message has at most 3 MB.", closing=True)
        except (TimeoutError, ConnectionError):
            return refusal(408, 100, "Invalid parameter", "The body did not arrive.", closing=True)
        return await self._send(number, str(scope["path"]), body, hopped=HOP.encode() in headers)

    async def _send(self, number: str, path: str, body: bytes, *, hopped: bool) -> Reply:
        known = next((n for n in self._numbers().values() if n.id == number), None)
        if known is None:
            return refusal(
                404, 100, "Unsupported post request", f"The number {number} is not known to Tidegate."
            )
        pipeline = self._owned().get(number)
        if pipeline is None:
            return await self._pass_to_owner(known, path, body, hopped=hopped)
        token = self._access_token(known.token_ref)
        if isinstance(token, str):
            return refusal(503, 131016, "Service unavailable", token, 5.0)
        return await pipeline.conversations.send(body, token.get_secret_value(), self._patience)

    async def _pass_to_owner(self, number: Number, path: str, body: bytes, *, hopped: bool) -> Reply:
        if hopped:  # whoever sent it here was wrong about the owner; it looks again
            return refusal(421, 131016, "Service unavailable", "This node does not own the number.", 1.0)
        for _ in range(2):
            lease = self._leases().get(number.number_id)
            if lease is None or lease.released or not lease.advertise:
                return refusal(
                    503, 131016, "Service unavailable", "No node that can be reached owns the number.", 2.0
                )
            passed: Any = await self._whatsapp.hop(lease.advertise, path, self._token.decode(), body)
            if isinstance(passed, NotSent):
                return refusal(503, 131016, "Service unavailable", "The number's owner was not reached.", 2.0)
            if not isinstance(passed, Passed):
                return refusal(
                    504, 131000, "Something went wrong", "It may have been sent by the number's owner."
                )
            if passed.status != 421:
                return Reply(passed.status, passed.body, passed.content_type, passed.retry_after)
            try:
                await self._look_again()  # the owner has just changed; nothing has left yet
            except DATABASE_FAULTS:
                break
        return refusal(503, 131016, "Service unavailable", "The number is changing hands.", 2.0)
