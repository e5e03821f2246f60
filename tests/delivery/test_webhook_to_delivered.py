"""The journey over a real socket and a real database: a signed webhook ends in the row's state and the books."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import httpx
import pytest

from engine.delivery.applier import Applier
from engine.delivery.group import GroupStore
from engine.delivery.receiver import Receiver
from engine.domain.recipient import State
from engine.domain.signature import sign
from engine.postgres import webhooks
from engine.postgres.pool import Pool, open_pool
from engine.postgres.statuses import Move
from engine.server import App, bind, serve
from tests.support.bodies import status, webhook
from tests.support.truth import Campaign, campaign

SECRET = b"app-secret"


class Reached:
    """Set when so many rows have arrived in a state."""

    def __init__(self, state: State, rows: int) -> None:
        self.event = asyncio.Event()
        self._state, self._left = state, rows

    def __call__(self, moves: Sequence[Move]) -> None:
        self._left -= sum(move.count for move in moves if move.after is self._state)
        if self._left <= 0:
            self.event.set()


@asynccontextmanager
async def receiver(pool: Pool, nudge: asyncio.Event | None = None) -> AsyncIterator[httpx.AsyncClient]:
    async def ready() -> str | None:
        return None

    with bind("127.0.0.1", 0) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with (
            asyncio.timeout(60),
            GroupStore(partial(webhooks.store, pool), nudge) as store,
            serve(App(ready, {"/webhook": Receiver(store, [SECRET], "verify")}), [listening]),
            httpx.AsyncClient(base_url=address, timeout=60) as client,
        ):
            yield client


@asynccontextmanager
async def engine(pool: Pool, reached: Reached) -> AsyncIterator[httpx.AsyncClient]:
    nudge = asyncio.Event()
    async with Applier(pool, nudge, reached), receiver(pool, nudge) as client:
        yield client


async def post(client: httpx.AsyncClient, body: bytes) -> int:
    reply = await client.post("/webhook", content=body, headers={"X-Hub-Signature-256": sign(SECRET, body)})
    return reply.status_code


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    return await campaign(pool, "sale")


async def test_statuses_posted_in_any_order_end_in_read_rows_and_exact_books(
    pool: Pool, sale: Campaign
) -> None:
    rows = await sale.rows(30, State.SENDING)
    reached = Reached(State.READ, len(rows))
    async with engine(pool, reached) as client:
        posts = [
            post(client, webhook(status(word, sale.token(row))))
            for word in ("read", "sent", "delivered")
            for row in rows
        ]
        assert set(await asyncio.gather(*posts)) == {200}
        await reached.event.wait()
    assert await sale.books() == await sale.recount() == {State.READ: 30}
    assert await sale.tallies() == {("K", 0): 30}
    assert await pool.fetchval("SELECT count(*) FROM inbox") == 90


async def test_what_one_process_acknowledged_another_applies(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.SENT)
    async with receiver(pool) as client:
        assert await post(client, webhook(status("read", sale.token(row)))) == 200
    assert await sale.state(row) is State.SENT
    reached = Reached(State.READ, 1)
    async with asyncio.timeout(60), Applier(pool, on_applied=reached):
        await reached.event.wait()
    assert await sale.state(row) is State.READ


async def test_while_the_database_does_not_answer_it_is_503_and_later_stored_again(
    pool: Pool, database_url: str, sale: Campaign
) -> None:
    row = await sale.row(State.SENT)
    body = webhook(status("read", sale.token(row)))
    reached = Reached(State.READ, 1)
    async with open_pool(database_url, size=3, command_timeout=1.0) as own, engine(own, reached) as client:
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("LOCK TABLE inbox IN ACCESS EXCLUSIVE MODE")
            assert await post(client, body) == 503
        while await post(client, body) != 200:
            pass  # a machine that stands still makes it wait for an answer again
        await reached.event.wait()
    assert await sale.state(row) is State.READ
