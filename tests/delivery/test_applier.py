"""From the inbox to the rows: batches, poison, order, and a database that goes away."""

import asyncio
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engine.delivery import applier as module
from engine.delivery.applier import Applier
from engine.domain.evidence import Evidence
from engine.domain.recipient import State
from engine.postgres import statuses, webhooks
from engine.postgres.pool import Executor, Pool, open_pool
from engine.postgres.statuses import Move
from tests.support.bodies import status, webhook
from tests.support.database import TestServer
from tests.support.truth import NUMBER, Campaign, campaign


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    return await campaign(pool, "sale")


async def drain(applier: Applier) -> None:
    while await applier.apply_batch():
        pass


async def test_stored_bodies_move_their_rows(pool: Pool, sale: Campaign) -> None:
    one, two = await sale.rows(2, State.SENT)
    moves: list[Move] = []
    applier = Applier(pool, on_applied=moves.extend)
    await webhooks.store(
        pool, [webhook(status("delivered", sale.token(one)), status("read", sale.token(two)))]
    )
    assert await applier.apply_batch() == 1
    assert [await sale.state(row) for row in (one, two)] == [State.DELIVERED, State.READ]
    assert sorted(moves, key=str) == [
        Move(sale.lane, State.SENT, State.DELIVERED, 1),
        Move(sale.lane, State.SENT, State.READ, 1),
    ]
    assert applier.counts.statuses == {"delivered": 1, "read": 1}
    assert await pool.fetchval("SELECT number FROM webhook_seen") == NUMBER
    assert await applier.apply_batch() == 0


async def test_an_unreadable_body_is_counted_and_kept_and_costs_no_other(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.SENT)
    await webhooks.store(pool, [b"\xff", webhook(status("read", sale.token(row))), b"[]"])
    applier = Applier(pool)
    await drain(applier)
    assert await sale.state(row) is State.READ
    assert (applier.counts.bodies, applier.counts.unparsable) == (3, 2)
    assert await pool.fetchval("SELECT count(*) FROM inbox WHERE body = '\\xff'") == 1
    assert await pool.fetchval("SELECT count(*) FROM inbox_work") == 0


async def test_a_body_that_the_database_refuses_is_left_out_alone(
    pool: Pool, sale: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = await sale.rows(5, State.SENT)
    apply = statuses.apply

    async def picky(db: Executor, statements: Sequence[Evidence]) -> tuple[statuses.Applied, list[Evidence]]:
        if any(e.wamid == f"wamid.{rows[2]}.1" for e in statements):
            raise ValueError("a value out of range")
        return await apply(db, statements)

    monkeypatch.setattr(statuses, "apply", picky)
    await webhooks.store(pool, [webhook(status("read", sale.token(row))) for row in rows])
    applied = asyncio.Event()
    read = 0

    def count(moves: Sequence[Move]) -> None:
        nonlocal read
        read += sum(move.count for move in moves)
        if read == 4:
            applied.set()

    async with asyncio.timeout(20), Applier(pool, on_applied=count) as applier:
        await applied.wait()
    assert await sale.recount() == {State.READ: 4, State.SENT: 1}
    assert applier.counts.refused == 1
    assert await pool.fetchval("SELECT count(*) FROM inbox_work") == 0
    assert await pool.fetchval("SELECT count(*) FROM inbox") == 5


async def test_other_kinds_of_news_are_counted(pool: Pool) -> None:
    body = (
        b'{"entry":[{"changes":[{"field":"messages","value":{"messages":[{}],"errors":[{"code":130429}],'
        b'"statuses":[{"id":"w","status":"played"},7]}},{"field":"account_update","value":{}}]}]}'
    )
    await webhooks.store(pool, [body])
    applier = Applier(pool)
    await drain(applier)
    counts = applier.counts
    assert (counts.inbound, counts.odd) == (1, 1)
    assert (counts.errors, counts.ignored, counts.fields) == (
        {130429: 1},
        {"played": 1},
        {"account_update": 1},
    )


async def test_the_standing_task_applies_what_a_nudge_announces(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.SENDING)
    nudge, applied = asyncio.Event(), asyncio.Event()
    async with asyncio.timeout(20), Applier(pool, nudge, lambda _: applied.set()):
        await webhooks.store(pool, [webhook(status("sent", sale.token(row)))])
        nudge.set()
        await applied.wait()
    assert await sale.state(row) is State.SENT


async def test_lost_connections_are_waited_out_and_said_once(
    pool: Pool, sale: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TROUBLE_SECONDS", 0.01)
    row = await sale.row(State.SENT)
    await webhooks.store(pool, [webhook(status("read", sale.token(row)))])
    applied = asyncio.Event()
    take, lost = webhooks.take, 0

    async def cut_off(db: Executor, most: int, most_bytes: int) -> list[webhooks.Stored]:
        nonlocal lost
        if lost < 3:
            lost += 1
            await pool.execute(
                "SELECT pg_terminate_backend($1)", await db.fetchval("SELECT pg_backend_pid()")
            )
        return await take(db, most, most_bytes)

    monkeypatch.setattr(webhooks, "take", cut_off)
    with capture_logs() as logs:
        async with asyncio.timeout(30), Applier(pool, on_applied=lambda _: applied.set()):
            await applied.wait()
    assert await sale.state(row) is State.READ
    assert lost == 3
    assert [entry["event"] for entry in logs] == [
        "statuses cannot be applied; they wait in the inbox",
        "statuses are applied again",
    ]


async def test_how_far_behind_we_are_can_be_seen(pool: Pool) -> None:
    await webhooks.store(pool, [b"{}"] * 3)
    await pool.execute("UPDATE inbox_work SET received_at = received_at - interval '90 seconds'")
    applier = Applier(pool)
    await applier.look()
    assert applier.counts.backlog == 3
    assert applier.counts.lag >= 90
    await drain(applier)
    await applier.look()
    assert (applier.counts.backlog, applier.counts.lag) == (0, 0.0)


WORDS = ["sent", "delivered", "read", "failed"]
LIVES = st.lists(
    st.tuples(
        st.sampled_from([State.SENDING, State.UNKNOWN, State.ASSESSING, State.SENT]),
        st.lists(st.sampled_from(WORDS), max_size=4),
    ),
    min_size=1,
    max_size=12,
)


def expected(before: State, words: Sequence[str], code: int) -> State:
    """Where a row must end, by the rank alone."""
    reached = max((WORDS.index(word) for word in words if word != "failed"), default=-1)
    if reached >= 1:
        return State.READ if reached == 2 else State.DELIVERED
    if "failed" in words:
        return State.PENDING if code == 131042 else State.FAILED
    return State.SENT if reached == 0 else before


@given(lives=LIVES, code=st.sampled_from([131026, 131042]), chance=st.randoms(use_true_random=False))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_any_order_any_repetition_and_any_batches_end_the_same_with_exact_books(
    postgres: TestServer, lives: list[tuple[State, list[str]]], code: int, chance: random.Random
) -> None:
    with postgres.database() as url:
        asyncio.run(_any_order(url, lives, code, chance))


async def _any_order(
    url: str, lives: list[tuple[State, list[str]]], code: int, chance: random.Random
) -> None:
    async with open_pool(url, size=3) as pool:
        sale = await campaign(pool, "sale")
        rows = [await sale.row(before) for before, _ in lives]
        items = [
            status(word, sale.token(row), code=code)
            for row, (_, words) in zip(rows, lives, strict=True)
            for word in words
        ] * 2
        chance.shuffle(items)
        moves: list[Move] = []
        applier = Applier(pool, on_applied=moves.extend)
        while items:
            cut = chance.randint(1, len(items))
            part, items = items[:cut], items[cut:]
            await webhooks.store(pool, [webhook(*part[::2]), webhook(*part[1::2])])
            if chance.random() < 0.7:
                await drain(applier)
        await drain(applier)
        ends = [expected(before, words, code) for before, words in lives]
        assert [await sale.state(row) for row in rows] == ends
        assert await sale.books() == await sale.recount()
        tallies = await sale.tallies()
        unproven = (State.SENDING, State.UNKNOWN)
        assert tallies.get(("K", 0), 0) == sum(1 for before, words in lives if before in unproven and words)
        assert tallies.get(("R", code), 0) == sum(1 for _, words in lives if "failed" in words)
        assert tallies.get(("F", code), 0) == ends.count(State.FAILED)
        assert ("C", 0) not in tallies
