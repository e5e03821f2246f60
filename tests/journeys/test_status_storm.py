"""A hundred thousand statuses over real sockets, in any order and repeated, while connections to the database break."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import httpx
import pytest

from engine.delivery.applier import Applier
from engine.delivery.group import GroupStore
from engine.delivery.receiver import BODY_BYTES, Receiver
from engine.domain.message import Token
from engine.domain.recipient import State, rank
from engine.domain.signature import sign
from engine.postgres import webhooks
from engine.postgres.pool import Pool, open_pool
from engine.server import App, bind, serve
from tests.support.bodies import status, webhook
from tests.support.truth import Campaign, campaign

SECRET = b"app-secret"
ROWS = 4000
STATUSES = 100_000
A_BODY = 250
SENDERS = 16

CUT = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'storm'
"""

MOVES = "SELECT f, t, sum(n) AS n FROM book_delta WHERE f <> ' ' GROUP BY 1, 2"

LIVES: list[tuple[list[str], State]] = [
    (["sent"], State.SENT),
    (["sent", "delivered"], State.DELIVERED),
    (["sent", "delivered", "read"], State.READ),
    (["sent", "read"], State.READ),
    (["read"], State.READ),
    (["delivered", "failed"], State.DELIVERED),
    (["sent", "failed"], State.FAILED),
    (["failed"], State.FAILED),
    (["sent", "delivered", "played", "deleted", "a_word_to_come"], State.DELIVERED),
    (["failed", "read"], State.READ),
]
"""What is told of a row, and where it must end."""


@asynccontextmanager
async def receiving(pool: Pool) -> AsyncIterator[httpx.AsyncClient]:
    async def ready() -> str | None:
        return None

    with bind("127.0.0.1", 0) as listening:
        async with (
            GroupStore(partial(webhooks.store, pool)) as store,
            serve(App(ready, {"/webhook": Receiver(store, [SECRET], "")}), [listening]),
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=60, trust_env=False
            ) as client,
        ):
            yield client


async def post(client: httpx.AsyncClient, body: bytes) -> int:
    reply = await client.post("/webhook", content=body, headers={"X-Hub-Signature-256": sign(SECRET, body)})
    return reply.status_code


class Provider:
    """Posts bodies from several connections, each again until it is answered with 200."""

    def __init__(self, client: httpx.AsyncClient, bodies: Sequence[bytes]) -> None:
        self.answers: Counter[int] = Counter()
        self.half = asyncio.Event()
        self._client = client
        self._left = list(bodies)
        self._all = len(bodies)

    async def tell(self) -> None:
        await asyncio.gather(*(self._tell() for _ in range(SENDERS)))

    async def _tell(self) -> None:
        while self._left:
            body = self._left.pop()
            answer = await post(self._client, body)
            self.answers[answer] += 1
            if answer != 200:
                self._left.insert(0, body)
            if len(self._left) <= self._all // 2:
                self.half.set()


def told(sale: Campaign, rows: Sequence[int], chance: random.Random) -> list[bytes]:
    """Everything at least once, most of it often, and beside it what is nobody's: shuffled into bodies."""
    items = [
        status(word, sale.token(row)) for nth, row in enumerate(rows) for word in LIVES[nth % len(LIVES)][0]
    ]
    foreign = [status("read", None, wamid=f"wamid.foreign.{n}") for n in range(50)]
    foreign += [status("read", Token("nobody", n + 1, 1)) for n in range(50)]
    items += foreign
    items += chance.choices(items, k=STATUSES - len(items))
    chance.shuffle(items)
    cuts = range(0, len(items), A_BODY)
    return [webhook(*items[cut : cut + A_BODY], number=chance.choice(["1", "2", "3"])) for cut in cuts]


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    return await campaign(pool, "sale")


async def test_a_storm_ends_the_same_in_any_order_with_every_move_once(
    pool: Pool, database_url: str, sale: Campaign
) -> None:
    rows = await sale.rows(ROWS, State.SENDING)
    bodies = told(sale, rows, random.Random(20261001))
    cut_off = 0

    async def cut() -> int:
        return int(await pool.fetchval(CUT))

    named = f"{database_url}&application_name=storm"
    async with (
        asyncio.timeout(300),  # no measure: the machine may have other things to do
        open_pool(named, size=6) as own,
        Applier(own) as one,
        Applier(own) as other,
        receiving(own) as client,
    ):
        provider = Provider(client, bodies)
        telling = asyncio.create_task(provider.tell())
        await provider.half.wait()
        cut_off += await cut()
        await telling
        cut_off += await cut()
        while await pool.fetchval("SELECT EXISTS (SELECT FROM inbox_work)"):
            await asyncio.sleep(0.02)  # the appliers' own pace; the timeout above bounds it

    ends = {row: LIVES[nth % len(LIVES)][1] for nth, row in enumerate(rows)}
    states = {
        row["id"]: State(row["state"].decode()) for row in await pool.fetch("SELECT id, state FROM recipient")
    }
    assert states == ends
    assert await sale.books() == await sale.recount() == Counter(ends.values())
    moves = {(State(r["f"].decode()), State(r["t"].decode())): r["n"] for r in await pool.fetch(MOVES)}
    assert all(rank(after) > rank(before) for before, after in moves)
    assert sum(n for (before, _), n in moves.items() if before is State.SENDING) == ROWS
    failures = sum("failed" in LIVES[nth % len(LIVES)][0] for nth in range(ROWS))
    tallies = await sale.tallies()
    assert tallies == {
        ("K", 0): ROWS,
        ("R", 131026): failures,
        ("F", 131026): Counter(ends.values())[State.FAILED],
    }
    evidence = await pool.fetch("SELECT outcome, count(*) AS n FROM try GROUP BY 1")
    assert {row["outcome"]: row["n"] for row in evidence}["failed_later"] == failures
    assert cut_off > 0
    assert provider.answers[200] == len(bodies)
    stored = await pool.fetchval("SELECT count(*) FROM inbox")
    assert stored >= len(bodies)  # a body whose answer was lost is stored twice
    assert 0 < one.counts.bodies + other.counts.bodies <= stored  # a commit's answer may have been lost, too
    assert min(one.counts.bodies, other.counts.bodies) > 0
    assert one.counts.foreign + other.counts.foreign > 0
    assert one.counts.ignored + other.counts.ignored >= Counter(["played", "deleted", "a_word_to_come"])


async def test_the_largest_body_is_taken_and_applied(pool: Pool, sale: Campaign) -> None:
    rows = await sale.rows(1000, State.SENT)
    items = [status("read", sale.token(row)) for row in rows]
    room = (BODY_BYTES - len(webhook(*items))) // len(items) - 20
    body = webhook(*(item | {"filler": "x" * room} for item in items))
    assert BODY_BYTES * 0.99 < len(body) <= BODY_BYTES
    async with asyncio.timeout(60), receiving(pool) as client:
        assert await post(client, body) == 200
        assert await post(client, body + b" " * (BODY_BYTES - len(body) + 1)) == 413
    await Applier(pool).apply_batch()
    assert await sale.recount() == await sale.books() == {State.READ: 1000}
