"""Statuses that match nothing yet: tried again for an hour, then dropped."""

import pytest

from engine.domain.evidence import fold
from engine.domain.message import Token
from engine.domain.receipts import Receipt
from engine.domain.recipient import State
from engine.postgres import statuses, unmatched
from engine.postgres.pool import Pool
from engine.postgres.statuses import Applied
from tests.support.truth import NUMBER, Campaign, campaign

SENT, FAILED = State.SENT, State.FAILED


def says(state: State, token: Token | None, *, wamid: str | None = None) -> Receipt:
    name = wamid or (f"wamid.{token.row}.{token.n}" if token else None)
    return Receipt(state, name, token, NUMBER, 1.75e9, 131026 if state is FAILED else None)


async def keep(pool: Pool, *receipts: Receipt) -> int:
    """Apply a batch and keep the rest; how many statuses were kept."""
    async with pool.acquire() as connection, connection.transaction():
        _, rest = await statuses.apply(connection, fold(receipts))
        return await unmatched.keep(connection, rest)


async def retry(pool: Pool) -> tuple[Applied, int]:
    async with pool.acquire() as connection, connection.transaction():
        applied, waiting, _ = await unmatched.retry(connection, 0)
        return applied, waiting


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    return await campaign(pool, "sale")


async def test_a_try_that_the_row_has_not_made_yet_waits(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.CLAIMED, tries=0)
    assert await keep(pool, says(SENT, sale.token(row))) == 1
    assert await sale.state(row) is State.CLAIMED
    await pool.execute("UPDATE recipient SET state = 's', tries = 1 WHERE id = $1", row)
    await pool.execute("INSERT INTO book_delta (lane_id, f, t, n) VALUES ($1, 'c', 's', 1)", sale.lane)
    assert (await retry(pool))[0].kinds == {"sent": 1}
    assert await sale.state(row) is SENT
    assert await pool.fetchval("SELECT count(*) FROM status_unmatched") == 0


async def test_a_wamid_that_nobody_knows_yet_is_tried_again(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.SENDING)
    kept = await keep(pool, says(FAILED, None, wamid="wamid.x"), says(SENT, None, wamid="wamid.x"))
    assert kept == 2
    assert (await retry(pool))[1] == 2
    await sale.record(row, 1, "accepted", wamid="wamid.x")
    await retry(pool)
    assert await sale.state(row) is FAILED
    assert await pool.fetchval("SELECT count(*) FROM status_unmatched") == 0


async def test_what_matches_nothing_for_an_hour_is_foreign_and_dropped(pool: Pool, sale: Campaign) -> None:
    await keep(pool, says(SENT, None, wamid="wamid.x"), says(SENT, sale.token(424242), wamid="wamid.y"))
    await pool.execute("UPDATE status_unmatched SET first_seen = first_seen - interval '61 minutes'")
    assert (await retry(pool))[0].foreign == 2
    assert await pool.fetchval("SELECT count(*) FROM status_unmatched") == 0


async def test_the_mark_walks_over_all_kept_statuses(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmatched, "PAGE", 10)
    await keep(pool, *(says(SENT, None, wamid=f"wamid.{i}") for i in range(35)))
    mark, marks = 0, []
    for _ in range(5):
        async with pool.acquire() as connection, connection.transaction():
            _, _, mark = await unmatched.retry(connection, mark)
        marks.append(mark)
    assert marks == [10, 20, 30, 0, 10]
