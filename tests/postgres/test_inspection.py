"""What a screen asks of the database: codes, rows, one row's story, the journal."""

from engine.commands import Commands
from engine.domain.inspection import (
    CodeCount,
    Codes,
    CodesOf,
    Journal,
    JournalOf,
    NoAnswer,
    RowOf,
    Rows,
    RowsOf,
    Story,
)
from engine.domain.recipient import State
from engine.postgres.inspection import answer
from engine.postgres.pool import Pool, open_pool
from tests.support import builders

NUMBER, OTHER = "106540352242922", "106540352242923"
RAW = "UPDATE try SET raw = $2 WHERE recipient_id = $1"


async def failed(pool: Pool) -> list[int]:
    """Three failed rows of one number, two of another, one pending without a code."""
    one, two = await builders.number(pool, NUMBER), await builders.number(pool, OTHER)
    made = await builders.campaign(pool, numbers=[NUMBER, OTHER])
    ids = await builders.recipients(pool, made, 3, state=State.FAILED, number_id=one, code=131026)
    ids += await builders.recipients(pool, made, 2, state=State.FAILED, number_id=two, code=131048)
    await builders.recipients(pool, made, 1)
    await builders.try_row(pool, ids[0], 1, "refused", number_id=one, code=131026)
    return ids


async def test_codes_are_counted_of_all_of_a_campaign_and_of_a_number(pool: Pool) -> None:
    await failed(pool)
    found = await answer(pool, CodesOf("reminder"), "ana")
    assert isinstance(found, Codes)
    assert [(c.code, c.state, c.rows) for c in found.counts] == [(131026, "failed", 3), (131048, "failed", 2)]
    of_one = await answer(pool, CodesOf(number=OTHER), "ana")
    assert isinstance(of_one, Codes)
    assert of_one.counts == (CodeCount(131048, found.counts[1].title, "reminder", "failed", 2),)
    assert await answer(pool, CodesOf("another"), "ana") == Codes(())


async def test_rows_are_found_by_code_state_and_number(pool: Pool) -> None:
    ids = await failed(pool)
    found = await answer(pool, RowsOf("reminder", NUMBER, 131026, "failed"), "ana")
    assert isinstance(found, Rows)
    assert ([r.id for r in found.rows], found.more) == (ids[:3], False)
    assert found.rows[0].phone == "+551…01"
    assert await answer(pool, RowsOf(state="read"), "ana") == Rows((), False)


async def test_a_story_masks_the_phone_number_also_in_raw_answers_until_it_is_asked_for(pool: Pool) -> None:
    [first, *_] = await failed(pool)
    await pool.execute(RAW, first, '{"input": "5511900000001"}')
    masked = await answer(pool, RowOf(first), "ana")
    assert isinstance(masked, Story)
    assert "5511900000001" not in repr(masked)
    assert [(t.n, t.outcome, t.code) for t in masked.tries] == [(1, "refused", 131026)]
    whole = await answer(pool, RowOf(first, reveal=True), "ana@10.0.0.7")
    assert isinstance(whole, Story)
    assert whole.row is not None
    assert whole.row.phone == "+5511900000001"
    kept = await answer(pool, JournalOf(), "ana")
    assert isinstance(kept, Journal)
    assert [(k.author, k.act, k.target) for k in kept.lines] == [
        ("ana@10.0.0.7", "show phone number", f"row {first}")
    ]


async def test_a_row_that_is_not_there_has_no_story(pool: Pool) -> None:
    assert await answer(pool, RowOf(4711), "ana") == Story(None)


async def test_acts_stand_in_the_journal(pool: Pool) -> None:
    await builders.number(pool, NUMBER)
    await Commands(pool, author="bob", origin="cli").set_rate(NUMBER, 10)
    kept = await answer(pool, JournalOf(), "ana")
    assert isinstance(kept, Journal)
    assert [(k.author, k.origin, k.before, k.after) for k in kept.lines] == [("bob", "cli", "64", "10")]


async def test_a_database_that_is_away_is_no_error_of_the_screen(database_url: str) -> None:
    async with open_pool(database_url) as pool:
        await pool.close()
        found = await answer(pool, CodesOf(), "ana")
    assert isinstance(found, NoAnswer)
