"""A node that died with numbers in its hands is told of by the living, and silence is held against nobody whom the
database kept from speaking."""

from uuid import UUID, uuid4

import pytest

from engine.domain.merge import DEAD_AFTER
from engine.postgres import desired, leases, nodes
from engine.postgres.nodes import Identity
from engine.postgres.pool import Pool
from engine.sending import peers
from engine.sending.peers import Peers
from tests.support import builders

SILENT_FOR = "UPDATE node SET seen_at = clock_timestamp() - make_interval(secs => $2) WHERE id = $1"
ME = Identity(uuid4(), "eng1", "here", 1, None)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The node's own clock, in its only place."""
    clock = [1000.0]
    monkeypatch.setattr(peers, "boottime", lambda: clock[0])
    return clock


async def an_owner(pool: Pool, silent_s: float) -> tuple[int, UUID]:
    """Another node, heard of so long ago, and the number that it holds: (number_id, the lease's token)."""
    other, token = Identity(uuid4(), "eng2", "there", 2, None), uuid4()
    number = await builders.number(pool)
    await nodes.beat(pool, other)
    await pool.execute(SILENT_FOR, other.id, silent_s)
    await leases.take(
        pool, number, owner=other.id, node="eng2", token=token, seconds=60.0, advertise=None, instead_of=None
    )
    return number, token


async def look(pool: Pool, seen: Peers) -> list[tuple[str, int, bool]]:
    await seen.look(pool, await leases.read(pool), (await desired.read(pool)).numbers)
    return [(node.name, len(node.numbers), node.alive) for node in seen.lost]


async def test_a_silent_owner_is_lost_until_it_has_no_number_any_more(pool: Pool, time: list[float]) -> None:
    number, token = await an_owner(pool, DEAD_AFTER + 1)
    seen = Peers(ME.id)
    await look(pool, seen)
    time[0] += DEAD_AFTER
    assert await look(pool, seen) == [("eng2", 1, False)]
    assert seen.lost[0].age_s > DEAD_AFTER
    await leases.release(pool, number, token, [])
    assert await look(pool, seen) == []


async def test_an_owner_that_gives_signs_is_not_lost(pool: Pool, time: list[float]) -> None:
    await an_owner(pool, -600.0)  # however long this machine stands still
    seen = Peers(ME.id)
    await look(pool, seen)
    time[0] += DEAD_AFTER
    assert await look(pool, seen) == []


async def test_a_silence_while_the_database_was_away_counts_for_nothing(
    pool: Pool, time: list[float]
) -> None:
    await an_owner(pool, DEAD_AFTER + 60)
    seen = Peers(ME.id)
    assert await look(pool, seen) == [], "it has only begun to listen"
    time[0] += DEAD_AFTER
    assert await look(pool, seen) != []
    seen.blind()
    assert seen.lost == ()
    time[0] += 60
    assert await look(pool, seen) == []
