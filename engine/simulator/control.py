"""The simulator's own endpoints, for tests, benches and people: what happened, and what shall happen next.

Not behind the bearer token: the process listens on loopback only.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlsplit

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import Decoder, Encoder, decode

from engine.simulator.cloud_api import CloudApi, Verdict
from engine.simulator.ledger import Ledger, Tally
from engine.simulator.scenario import Access, ScenarioError, access, parse, without_access
from engine.simulator.webhooks import Webhooks

SLICE = 500  # entries counted or written before other requests get their turn: 1 to 3 ms
LONGEST_PAGE = 20_000
FIRST_INBOUND = 1 << 64  # above every n of the ledger, so that no wamid comes twice
_JSON = Encoder()

Query = dict[str, list[str]]


class _Inbound(Struct, forbid_unknown_fields=True):
    number: str
    writer: str = field(name="from")
    text: str


_INBOUND = Decoder(_Inbound)


class CallError(ValueError):
    """The sentence that a wrong control request is answered with."""


class Control:
    """Answers every path that is not a send.

    GET /_ledger?after=N&limit=M: entries as JSON lines, at most 20,000 a call. GET /_totals: running counts,
    cheap enough to poll. GET /_summary?window_ms=1000: the full count over the ledger. PUT /_scenario: a
    whole scenario takes the place of the one in force. POST /_inbound {"number", "from", "text"}: a person
    writes. POST /_webhook: any JSON value, signed and posted.
    """

    def __init__(
        self, api: CloudApi, ledger: Ledger, webhooks: Webhooks, access_now: Access, now_us: Callable[[], int]
    ) -> None:
        self._api, self._ledger, self._webhooks = api, ledger, webhooks
        self._access, self._now_us = access_now, now_us
        self._inbound_order = FIRST_INBOUND
        self._routes: dict[tuple[str, str], Callable[[Query, bytes], Awaitable[Verdict]]] = {
            ("GET", "/_ledger"): self._entries,
            ("GET", "/_totals"): self._totals,
            ("GET", "/_summary"): self._summary,
            ("PUT", "/_scenario"): self._replace,
            ("POST", "/_inbound"): self._inbound,
            ("POST", "/_webhook"): self._webhook,
        }

    async def __call__(self, method: str, url: str, body: bytes) -> Verdict:
        """The answer to one control request; a wrong one gets 400 and a sentence."""
        parts = urlsplit(url)
        route = self._routes.get((method, parts.path))
        if route is None:
            return Verdict(404, _JSON.encode({"error": f"Nothing here answers {method} {parts.path[:200]}."}))
        try:
            return await route(parse_qs(parts.query), body)
        except (CallError, ScenarioError) as error:
            return Verdict(400, _JSON.encode({"error": str(error)}))

    async def _entries(self, query: Query, _body: bytes) -> Verdict:
        after, limit = _whole(query, "after", 0), min(_whole(query, "limit", 1000), LONGEST_PAGE)
        stop, pages = min(after + limit, len(self._ledger)), []
        for start in range(after, stop, SLICE):
            pages.append(_JSON.encode_lines(self._ledger.entries(start, min(SLICE, stop - start))))
            await asyncio.sleep(0)
        return Verdict(200, b"".join(pages), content_type="application/x-ndjson")

    async def _totals(self, _query: Query, _body: bytes) -> Verdict:
        outcomes = dict(self._ledger.totals)
        counts = {"requests": outcomes.pop("requests", 0), "accepted": outcomes.pop("taken", 0)}
        return _ok(counts | {"outcomes": outcomes} | self._webhooks.summary())

    async def _summary(self, query: Query, _body: bytes) -> Verdict:
        window_ms = _whole(query, "window_ms", 1000)
        if window_ms == 0:
            raise CallError("`window_ms` must be at least 1.")
        outcomes, stop = dict(self._ledger.totals), len(self._ledger)
        counts = {"requests": outcomes.pop("requests", 0), "accepted": outcomes.pop("taken", 0)}
        webhooks = self._webhooks.summary()
        tally = Tally(self._ledger, window_ms * 1000)
        for start in range(0, stop, SLICE):
            tally.add(start, min(start + SLICE, stop))
            await asyncio.sleep(0)
        return _ok(counts | {"outcomes": outcomes, "window_ms": window_ms} | tally.result() | webhooks)

    async def _replace(self, _query: Query, body: bytes) -> Verdict:
        scenario = parse(body, "The scenario")
        self._access = access(scenario, os.environ, before=self._access)
        scenario = without_access(scenario)
        self._webhooks.replace(scenario, self._access)
        self._api.replace(scenario, self._access, self._now_us())
        return _ok({"ok": True})

    async def _inbound(self, _query: Query, body: bytes) -> Verdict:
        try:
            inbound = _INBOUND.decode(body)
        except (ValidationError, DecodeError) as error:
            raise CallError(f'An inbound message is {{"number", "from", "text"}}: {error}.') from None
        self._inbound_order += 1
        wamid = self._api.inbound(
            inbound.number, inbound.writer, inbound.text, self._now_us(), self._inbound_order
        )
        if wamid is None:
            raise CallError("`number` must be a number of the scenario and `from` a phone number.")
        return _ok({"id": wamid})

    async def _webhook(self, _query: Query, body: bytes) -> Verdict:
        try:
            value = decode(body)
        except DecodeError as error:
            raise CallError(f"A webhook body must be JSON: {error}.") from None
        self._webhooks.post(value, "other")
        return _ok({"ok": True})


def _ok(value: object) -> Verdict:
    return Verdict(200, _JSON.encode(value))


def _whole(query: Query, name: str, default: int) -> int:
    text = query.get(name, [str(default)])[-1]
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise CallError(f"`{name}` must be a whole number.")
    return int(text)
