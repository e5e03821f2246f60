"""The webhook's door: what is let in, and what each request is told."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from engine.delivery import receiver
from engine.delivery.group import NotStoredError
from engine.delivery.receiver import BODY_BYTES, Receiver
from engine.domain.signature import sign

SECRET, SECOND = b"app-secret-1", b"app-secret-2"
TOKEN = "verify-me"
BODY = b'{"object":"whatsapp_business_account","entry":[]}'


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.full = False

    async def add(self, body: bytes, signature: str) -> None:
        if self.full:
            raise NotStoredError
        self.bodies.append(body)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
async def client(shelf: Shelf) -> AsyncIterator[httpx.AsyncClient]:
    door = Receiver(shelf, [SECRET, SECOND], TOKEN)
    transport = httpx.ASGITransport(app=door)
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as opened:
        yield opened


def signed(body: bytes, secret: bytes = SECRET) -> dict[str, str]:
    return {"X-Hub-Signature-256": sign(secret, body)}


async def test_a_signed_body_is_stored_as_it_came(client: httpx.AsyncClient, shelf: Shelf) -> None:
    reply = await client.post("/webhook", content=BODY, headers=signed(BODY))
    assert (reply.status_code, reply.content) == (200, b"")
    assert shelf.bodies == [BODY]


async def test_each_app_may_sign_with_its_own_secret(client: httpx.AsyncClient, shelf: Shelf) -> None:
    assert (await client.post("/webhook", content=BODY, headers=signed(BODY, SECOND))).status_code == 200
    assert shelf.bodies == [BODY]


@pytest.mark.parametrize("headers", [{}, signed(BODY, b"wrong"), signed(BODY + b" ")])
async def test_a_bad_signature_is_refused_and_tells_nothing(
    client: httpx.AsyncClient, shelf: Shelf, headers: dict[str, str]
) -> None:
    reply = await client.post("/webhook", content=BODY, headers=headers)
    assert reply.status_code == 401
    assert sign(SECRET, BODY)[7:].encode() not in reply.content
    assert shelf.bodies == []


async def test_what_is_signed_is_stored_even_when_nobody_can_read_it(
    client: httpx.AsyncClient, shelf: Shelf
) -> None:
    reply = await client.post("/webhook", content=b"\xff", headers=signed(b"\xff"))
    assert reply.status_code == 200
    assert shelf.bodies == [b"\xff"]


async def test_a_body_that_could_not_be_stored_is_not_acknowledged(
    client: httpx.AsyncClient, shelf: Shelf
) -> None:
    shelf.full = True
    assert (await client.post("/webhook", content=BODY, headers=signed(BODY))).status_code == 503


async def test_a_body_of_three_megabytes_is_taken_and_one_byte_more_is_not(
    client: httpx.AsyncClient, shelf: Shelf
) -> None:
    body = b" " * BODY_BYTES
    assert (await client.post("/webhook", content=body, headers=signed(body))).status_code == 200
    assert (
        await client.post("/webhook", content=body + b" ", headers=signed(body + b" "))
    ).status_code == 413

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b" " * (1 << 20)

    assert (await client.post("/webhook", content=chunks())).status_code == 413
    assert len(shelf.bodies) == 1


async def test_the_handshake_returns_the_challenge_as_it_came(client: httpx.AsyncClient) -> None:
    query = {"hub.mode": "subscribe", "hub.verify_token": TOKEN, "hub.challenge": "1158201444"}
    reply = await client.get("/webhook", params=query)
    assert (reply.status_code, reply.content) == (200, b"1158201444")


@pytest.mark.parametrize(
    "change", [{"hub.verify_token": "other"}, {"hub.verify_token": "é"}, {"hub.mode": "x"}]
)
async def test_a_handshake_with_another_token_or_mode_is_refused(
    client: httpx.AsyncClient, change: dict[str, str]
) -> None:
    query = {"hub.mode": "subscribe", "hub.verify_token": TOKEN, "hub.challenge": "1158201444"} | change
    reply = await client.get("/webhook", params=query)
    assert reply.status_code == 403
    assert b"1158201444" not in reply.content
    assert (await client.get("/webhook")).status_code == 403


async def test_without_a_verify_token_no_handshake_succeeds(shelf: Shelf) -> None:
    transport = httpx.ASGITransport(app=Receiver(shelf, [SECRET], ""))
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        reply = await client.get("/webhook", params={"hub.mode": "subscribe", "hub.verify_token": ""})
    assert reply.status_code == 403


async def test_other_methods_are_refused(client: httpx.AsyncClient) -> None:
    assert (await client.delete("/webhook")).status_code == 405


async def test_a_body_that_never_ends_is_given_up(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "BODY_SECONDS", 0.01)
    sent: list[dict[str, object]] = []

    async def nothing() -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    await Receiver(shelf, [SECRET], TOKEN)({"method": "POST", "headers": []}, nothing, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]  # type: ignore[operator]


async def test_answers_are_counted_and_secrets_stand_in_no_repr(shelf: Shelf) -> None:
    door = Receiver(shelf, [SECRET], TOKEN)
    transport = httpx.ASGITransport(app=door)
    async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
        await client.post("/webhook", content=BODY, headers=signed(BODY))
        await client.post("/webhook", content=BODY)
    assert door.answers == {200: 1, 401: 1}
    assert TOKEN not in repr(door)
    assert SECRET.decode() not in repr(door)
