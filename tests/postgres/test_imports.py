"""The transaction of an import: beside other imports, beside people's acts, and when the database goes."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from engine.postgres.imports import ImportRefused, Merged, open_import, staged_row
from engine.postgres.journal import Entry
from engine.postgres.pool import Pool

CAMPAIGN = """
INSERT INTO campaign (name, random_id, state, template, language) VALUES ('reminder', 'r', 'running', 't', 'pt_BR')
RETURNING campaign_id
"""

BOOKED = """
SELECT (SELECT planned FROM campaign), (SELECT coalesce(sum(n), 0)::int FROM book_delta),
       (SELECT count(*) FROM recipient WHERE state = 'p'), (SELECT count(*) FROM recipient_data)
"""

WAITING = """
SELECT pid FROM pg_locks
 WHERE locktype = 'advisory' AND NOT granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

TURN = "SELECT pg_advisory_xact_lock(1413826373, $1)"


@pytest.fixture
async def campaign(pool: Pool) -> int:
    made: int = await pool.fetchval(CAMPAIGN)
    return made


def phone(n: int) -> str:
    return f"+55119{80_000_000 + n}"


async def rows(people: Iterable[int]) -> AsyncIterator[bytes]:
    for line, n in enumerate(people, start=2):
        yield staged_row(line, phone(n), "BR", {"name": f"n{n}"})


async def bring(pool: Pool, people: Iterable[int]) -> Merged:
    async with open_import(pool, "reminder") as act:
        await act.stage(rows(people))
        merged = await act.merge(100)
        await act.keep(merged.taken, Entry("ana", "cli", "import", "reminder"))
    return merged


@asynccontextmanager
async def turn_held(pool: Pool, campaign: int) -> AsyncIterator[None]:
    """An import's turn, taken by somebody else until the block ends."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute(TURN, campaign)
        yield


async def waiting(pool: Pool) -> int:
    """The backend of the import that waits for its turn, once it does."""
    async with asyncio.timeout(60):
        while (pid := await pool.fetchval(WAITING)) is None:
            pass
    found: int = pid
    return found


async def test_the_first_line_of_a_person_wins_whatever_the_order_of_the_phones(
    pool: Pool, campaign: int
) -> None:
    merged = await bring(pool, [5, 9, 5, 1, 9, 9])
    assert (merged.taken, merged.folded, merged.already) == (3, 3, 0)
    assert merged.folds == [(4, 2), (6, 3), (7, 3)]
    kept = await pool.fetch("SELECT line, phone FROM recipient_data ORDER BY id")
    assert [tuple(row) for row in kept] == [(2, phone(5)), (3, phone(9)), (5, phone(1))]


async def test_no_more_folds_are_listed_than_asked_for_but_all_are_counted(pool: Pool, campaign: int) -> None:
    async with open_import(pool, "reminder") as act:
        await act.stage(rows([1] * 50))
        merged = await act.merge(3)
    assert (merged.folded, merged.folds) == (49, [(3, 2), (4, 2), (5, 2)])


@pytest.mark.parametrize(
    "value", ["a\\tb", "\\N", "\\.", '"', "{}", "é🎉", "\x7f\x1b", "'; DROP TABLE recipient; --", "\u2028"]
)
async def test_a_parameter_arrives_as_it_left(pool: Pool, campaign: int, value: str) -> None:
    async def one() -> AsyncIterator[bytes]:
        yield staged_row(2, phone(1), "", {value: value})

    async with open_import(pool, "reminder") as act:
        await act.stage(one())
        await act.keep((await act.merge(0)).taken, Entry("ana", "cli", "import", "reminder"))
    assert await pool.fetchval("SELECT params ->> $1 FROM recipient_data", value) == value


async def test_two_imports_of_the_same_people_in_opposite_orders_take_each_person_once(
    pool: Pool, campaign: int
) -> None:
    there, back = range(2_000), range(2_999, 999, -1)
    results = await asyncio.gather(bring(pool, there), bring(pool, back))
    assert sum(merged.taken for merged in results) == 3_000
    assert sum(merged.already for merged in results) == 1_000
    assert tuple(await pool.fetchrow(BOOKED) or ()) == (3_000,) * 4


async def test_a_campaign_can_be_paused_while_an_import_is_under_way(pool: Pool, campaign: int) -> None:
    async with turn_held(pool, campaign):
        task = asyncio.ensure_future(bring(pool, range(10)))
        await waiting(pool)
        await pool.execute("UPDATE campaign SET state = 'paused'", timeout=60)
    assert (await task).taken == 10


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE campaign SET state = 'cancelled'",
        "UPDATE campaign SET state = 'finished'",
        "UPDATE campaign SET body = '{name}'",
    ],
)
async def test_a_campaign_that_ends_or_changes_during_the_import_takes_nobody(
    pool: Pool, campaign: int, change: str
) -> None:
    async with turn_held(pool, campaign):
        task = asyncio.ensure_future(bring(pool, range(10)))
        await waiting(pool)
        await pool.execute(change)
    with pytest.raises(ImportRefused, match="ended or was changed during the import; nothing was kept"):
        await task
    assert tuple(await pool.fetchrow(BOOKED) or ()) == (0,) * 4


async def test_cancelled_while_it_waits_for_its_turn_an_import_leaves_nothing(
    pool: Pool, campaign: int
) -> None:
    async with turn_held(pool, campaign):
        task = asyncio.ensure_future(bring(pool, range(10)))
        await waiting(pool)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert tuple(await pool.fetchrow(BOOKED) or ()) == (0,) * 4
    assert (await bring(pool, range(10))).taken == 10


SLOW_COMMIT = """
CREATE FUNCTION wait_for_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1, 1);
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON journal DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION wait_for_turn();
"""


async def test_cancelled_once_its_commit_has_begun_an_import_tells_that_it_was_kept(
    pool: Pool, campaign: int
) -> None:
    await pool.execute(SLOW_COMMIT)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(1, 1)")
        task = asyncio.ensure_future(bring(pool, range(10)))
        await waiting(pool)
        task.cancel()
    assert (await task).taken == 10
    assert tuple(await pool.fetchrow(BOOKED) or ()) == (10,) * 4


async def test_a_connection_lost_in_the_commit_leaves_no_false_certainty(pool: Pool, campaign: int) -> None:
    await pool.execute(SLOW_COMMIT)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(1, 1)")
        task = asyncio.ensure_future(bring(pool, range(10)))
        await pool.execute("SELECT pg_terminate_backend($1)", await waiting(pool))
        with pytest.raises(ImportRefused, match="whether the import was kept is not known"):
            await task


async def test_a_lost_connection_is_told_in_one_sentence_and_leaves_nothing(
    pool: Pool, campaign: int
) -> None:
    async with turn_held(pool, campaign):
        task = asyncio.ensure_future(bring(pool, range(10)))
        await pool.execute("SELECT pg_terminate_backend($1)", await waiting(pool))
        with pytest.raises(ImportRefused, match=r"nothing was kept\. Import the file again"):
            await task
    assert tuple(await pool.fetchrow(BOOKED) or ()) == (0,) * 4


async def test_an_error_in_the_rows_passes_through_and_leaves_nothing(pool: Pool, campaign: int) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield staged_row(2, phone(1), "BR", {})
        raise ZeroDivisionError

    async def attempt() -> None:
        async with open_import(pool, "reminder") as act:
            await act.stage(broken())

    with pytest.raises(ZeroDivisionError):
        await attempt()
    assert tuple(await pool.fetchrow(BOOKED) or ()) == (0,) * 4


async def test_an_import_of_nobody_is_kept_as_an_act(pool: Pool, campaign: int) -> None:
    assert await bring(pool, []) == Merged(0, 0, 0, [])
    assert await pool.fetchval("SELECT after FROM journal") == "planned 0"
