"""Posting bodies on: as they came, again until taken, given up after a day, and never in the way of receiving."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import httpx
import pytest

from engine.clients.forward import ForwardClient
from engine.clients.transport import open_transport
from engine.delivery.forwarder import Forwarder
from engine.delivery.group import GroupStore
from engine.delivery.receiver import Receive, Receiver, Scope, Send, answer, read
from engine.domain.signature import sign, valid
from engine.postgres import forwards, webhooks
from engine.postgres.pool import Pool
from engine.server import App, bind, serve
from tests.support.bodies import webhook

SECRET = b"app-secret"
BODIES = [b'{"a":1}', b'{"b":"\\u00e3\\/"}', b'{ "c" : 2 }\n']


@dataclass
class Desk:
    """Whoever answers people: keeps what it is sent, and answers `status`."""

    status: int = 200
    got: list[tuple[bytes, str]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    enough: int = 1
    patience: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.patience.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        body = await read(headers, receive)
        self.got.append((body, headers[b"x-hub-signature-256"].decode()))
        if len(self.got) >= self.enough:
            self.arrived.set()
        await self.patience.wait()
        await answer(send, self.status, b"")


async def ready() -> str | None:
    return None


@asynccontextmanager
async def served(desk: Desk) -> AsyncIterator[ForwardClient]:
    with bind("127.0.0.1", 0) as listening:
        async with serve(App(ready, {"/desk": desk}), [listening]):
            transport = open_transport("pyreqwest", connections=16, deadline=60.0)
            try:
                yield ForwardClient(transport, f"http://127.0.0.1:{listening.getsockname()[1]}/desk")
            finally:
                desk.patience.set()
                await transport.aclose()


async def keep(pool: Pool, *bodies: bytes) -> None:
    await webhooks.store(pool, bodies, [sign(SECRET, body) for body in bodies], forward=True)


async def all_due(pool: Pool) -> None:
    await pool.execute("UPDATE forward_work SET next_at = clock_timestamp()")


@pytest.fixture
def chance() -> random.Random:
    return random.Random(7)


async def test_without_a_listener_nothing_is_put_on_the_list(pool: Pool) -> None:
    await webhooks.store(pool, BODIES, [""] * 3)
    assert await forwards.waiting(pool) == 0


async def test_every_body_arrives_as_it_came_with_a_signature_that_still_holds(
    pool: Pool, chance: random.Random
) -> None:
    desk = Desk()
    async with served(desk) as client:
        await keep(pool, *BODIES)
        forwarder = Forwarder(pool, client, chance)
        assert await forwarder.forward() == 3
    assert sorted(body for body, _ in desk.got) == sorted(BODIES)
    assert all(valid([SECRET], body, signature) for body, signature in desk.got)
    assert await forwards.waiting(pool) == 0
    assert (forwarder.counts.posted, forwarder.counts.failed, forwarder.counts.dropped) == (3, 0, 0)
    assert await pool.fetchval("SELECT count(*) FROM inbox_work") == 3  # applying has its own list


@pytest.mark.parametrize("status", [500, 404, 302, 429])
async def test_a_body_that_was_not_taken_is_tried_again_later(
    pool: Pool, chance: random.Random, status: int
) -> None:
    desk = Desk(status)
    async with served(desk) as client:
        await keep(pool, b"{}")
        forwarder = Forwarder(pool, client, chance)
        before = await pool.fetchval("SELECT clock_timestamp()")
        await forwarder.forward()
        assert await pool.fetchval(
            "SELECT next_at > $1 AND next_at <= clock_timestamp() + interval '2 seconds' FROM forward_work",
            before,
        )
        await pool.execute("UPDATE forward_work SET next_at = clock_timestamp() + interval '1 minute'")
        assert await forwarder.forward() == 0  # not due yet
        desk.status = 204
        await all_due(pool)
        await forwarder.forward()
    assert len(desk.got) == 2
    assert (forwarder.counts.posted, forwarder.counts.failed) == (1, 1)
    assert await forwards.waiting(pool) == 0


async def test_when_nobody_listens_it_waits(pool: Pool, chance: random.Random) -> None:
    async with served(Desk()) as client:
        pass
    await keep(pool, b"{}")
    transport = open_transport("pyreqwest", connections=1, deadline=60.0)
    try:
        forwarder = Forwarder(pool, ForwardClient(transport, str(client._url)), chance)
        await forwarder.forward()
    finally:
        await transport.aclose()
    assert await forwards.waiting(pool) == 1
    assert forwarder.counts.failed == 1


async def test_after_a_day_it_is_given_up_and_counted(pool: Pool, chance: random.Random) -> None:
    async with served(Desk(500)) as client:
        await keep(pool, b"{}", b"[]")
        await pool.execute(
            "UPDATE inbox SET received_at = received_at - interval '25 hours' WHERE body = '{}'"
        )
        forwarder = Forwarder(pool, client, chance)
        await forwarder.forward()
    assert forwarder.counts.dropped == 1
    assert await forwards.waiting(pool) == 1


async def test_what_was_trimmed_away_is_dropped(pool: Pool, chance: random.Random) -> None:
    desk = Desk()
    async with served(desk) as client:
        await keep(pool, b"{}")
        await pool.execute("TRUNCATE inbox")
        forwarder = Forwarder(pool, client, chance)
        await forwarder.forward()
    assert (forwarder.counts.dropped, desk.got) == (1, [])
    assert await forwards.waiting(pool) == 0


async def test_two_forwarders_post_a_body_once(pool: Pool, chance: random.Random) -> None:
    desk = Desk()
    async with served(desk) as client:
        await keep(pool, *(b"%d" % n for n in range(40)))
        two = [Forwarder(pool, client, chance, at_once=8) for _ in range(2)]
        while sum(await asyncio.gather(*(one.forward() for one in two))):
            pass
    assert sorted(int(body) for body, _ in desk.got) == list(range(40))


async def test_a_body_in_the_hand_of_a_dead_forwarder_is_anothers_later(
    pool: Pool, chance: random.Random
) -> None:
    desk = Desk()
    desk.patience.clear()
    async with served(desk) as client, asyncio.timeout(60):
        await keep(pool, b"{}")
        async with Forwarder(pool, client, chance):
            await desk.arrived.wait()
        desk.patience.set()
        assert await forwards.waiting(pool) == 1
        await all_due(pool)
        await Forwarder(pool, client, chance).forward()
    assert len(desk.got) == 2
    assert await forwards.waiting(pool) == 0


async def test_a_listener_that_hangs_slows_no_answer_to_the_provider(
    pool: Pool, chance: random.Random
) -> None:
    desk = Desk(enough=16)
    desk.patience.clear()
    body = webhook()
    headers = {"X-Hub-Signature-256": sign(SECRET, body)}
    with bind("127.0.0.1", 0) as listening:
        async with (
            asyncio.timeout(60),
            served(desk) as client,
            GroupStore(partial(webhooks.store, pool, forward=True)) as store,
            serve(App(ready, {"/webhook": Receiver(store, [SECRET], "")}), [listening]),
            Forwarder(pool, client, chance),
            httpx.AsyncClient(timeout=60) as meta,
        ):
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/webhook"
            await asyncio.gather(*(meta.post(url, content=body, headers=headers) for _ in range(16)))
            await desk.arrived.wait()  # every post hangs
            replies = await asyncio.gather(
                *(meta.post(url, content=body, headers=headers) for _ in range(50))
            )
    assert {reply.status_code for reply in replies} == {200}
    assert len(desk.got) == 16  # bounded
    assert await forwards.waiting(pool) == 66
