"""Several nodes on one database: numbers spread over them, move when nodes come and go, and stay within their rate."""

from __future__ import annotations

import signal
from collections import Counter
from itertools import pairwise

from engine.domain.recipient import State
from tests.support.chaos import judge
from tests.support.pgbouncer import needs_pgbouncer, pgbouncer
from tests.support.process import Process
from tests.support.world import NUMBER, World, free_port, scenario, world

LEASE_S = 15
"""Numbers change hands without waiting for its end. Long enough for a machine that stands still for a while."""

RATE = 5
TEN = {str(int(NUMBER) + nth): float(RATE) for nth in range(10)}
OWNERS = "SELECT node, count(*) AS n FROM lease WHERE released_at IS NULL GROUP BY 1"
MOVES = "SELECT max(epochs) FROM (SELECT count(DISTINCT epoch) AS epochs FROM send_log GROUP BY number_id) AS moved"
SENDS = "SELECT number_id, base_db, base_mono_us, us FROM send_log ORDER BY number_id, base_db"


async def _node(w: World, name: str, *, port: int | None = None, database_url: str | None = None) -> Process:
    metrics = ("--metrics-listen", f"127.0.0.1:{free_port()}")
    settings = {"lease": f"{LEASE_S}s"} | ({"database_url": database_url} if database_url else {})
    return await w.engine("--node", name, *metrics, port=port or free_port(), stderr=None, **settings)


async def _until_spread(w: World, **wanted: int) -> None:
    async def spread() -> bool:
        return {row["node"]: row["n"] for row in await w.db.fetch(OWNERS)} == wanted

    await w.until(spread, f"owners {wanted}", within_s=120.0)


async def _longest_gap(w: World) -> float:
    """Seconds between two sends of one number, at most, on the database's clock."""
    moments: dict[int, list[float]] = {}
    for row in await w.db.fetch(SENDS):
        base = row["base_db"].timestamp()
        moments.setdefault(row["number_id"], []).extend(base + us / 1e6 for us in row["us"])
    assert len(moments) == len(w.rates)
    return max(b - a for times in moments.values() for a, b in pairwise(sorted(times)))


async def test_three_nodes_on_one_number_two_of_one_name_send_at_the_rate_of_one(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        await w.campaign(people=400)
        nodes = [await _node(w, "twin", port=w.port), await _node(w, "twin"), await _node(w, "other")]
        await w.until_counts(read=400)
        await judge(w, 400)
        assert all(node.running for node in nodes)
        assert await w.db.fetchval("SELECT count(*) FROM node") == 3


async def test_numbers_spread_and_move_without_waiting_out_a_lease_when_a_node_joins_and_when_one_drains(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), TEN) as w:
        await w.campaign(people=8000)
        first = await _node(w, "a", port=w.port)
        await _until_spread(w, a=10)
        await w.until_requests(60)
        await _node(w, "b")
        await _until_spread(w, a=5, b=5)
        third = await _node(w, "c")

        async def even() -> bool:
            owners = Counter({row["node"]: row["n"] for row in await w.db.fetch(OWNERS)})
            return sorted(owners.values()) == [3, 3, 4]

        await w.until(even, "ten numbers on three nodes", within_s=120.0)
        await w.until_requests(await w.requests() + 100)
        third.signal(signal.SIGTERM)
        assert (await third.ended()).code == 143
        await _until_spread(w, a=5, b=5)
        await w.until_requests(await w.requests() + 100)
        assert await _longest_gap(w) < LEASE_S / 2, "a lease ran out"
        assert await w.db.fetchval(MOVES) >= 2
        await w.commands.cancel_campaign("reminder")

        async def settled() -> bool:
            counts = await w.counts()
            return set(counts) <= {State.READ, State.CANCELLED}

        await w.until(settled, "everything read or cancelled")
        await judge(w, 8000)
        assert first.running


@needs_pgbouncer
async def test_nodes_behind_a_pgbouncer_in_transaction_mode_lose_and_double_nothing(
    database_url: str,
) -> None:
    async with (
        pgbouncer(database_url, free_port()) as behind,
        world(database_url, scenario(), {NUMBER: 40}) as w,
    ):
        await w.campaign(people=400)
        leaving = await _node(w, "leaving", database_url=behind)
        await _until_spread(w, leaving=1)
        staying = await _node(w, "staying", port=w.port, database_url=behind)
        await w.until_requests(100)
        leaving.signal(signal.SIGTERM)
        assert (await leaving.ended()).code == 143
        await w.commands.pause_number(NUMBER, reason="a look")
        await w.commands.resume_number(NUMBER)
        await w.until_counts(read=400)
        await judge(w, 400)
        waits = "leases wait for the database"
        assert not [*leaving.events(waits), *staying.events(waits)]
