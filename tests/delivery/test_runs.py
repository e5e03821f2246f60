"""A run that goes wrong by its webhooks alone is held, with the reason, and nobody is struck off for it."""

import pytest

from engine.delivery.applier import Applier
from engine.domain.recipient import State
from engine.postgres import webhooks
from engine.postgres.pool import Pool
from tests.support.bodies import status, webhook
from tests.support.truth import Campaign, campaign

RESUME = """
INSERT INTO journal (author, origin, act, target, result) VALUES ('ana', 'cli', 'resume campaign', 'sale', 'done')
"""
LEFT_EARLIER = "UPDATE try SET sent_at = now() - interval '1 hour'"


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    made = await campaign(pool, "sale")
    await pool.execute("UPDATE campaign SET state = 'running', planned = 1000")
    return made


async def tell(pool: Pool, sale: Campaign, applier: Applier, good: int, bad: int, code: int = 131026) -> None:
    """So many people read it, so many are refused, one after the other as far as both last."""
    rows = await sale.rows(good + bad, State.SENT)
    for row in rows:
        await sale.record(row, 1, "accepted", wamid=f"wamid.{row}.1")
    failing = {
        row
        for place, row in enumerate(rows)
        if place * bad // (good + bad) != (place + 1) * bad // (good + bad)
    }
    items = [status("failed" if row in failing else "read", sale.token(row), code=code) for row in rows]
    await webhooks.store(pool, [webhook(*items)])
    await applier.apply_batch()


async def standing(pool: Pool) -> tuple[str, str | None, str | None]:
    row = await pool.fetchrow("SELECT state, reason, held_by FROM campaign WHERE name = 'sale'")
    assert row is not None
    return row["state"], row["reason"], row["held_by"]


async def test_a_run_whose_people_are_mostly_refused_is_held_and_says_why(pool: Pool, sale: Campaign) -> None:
    await tell(pool, sale, Applier(pool), good=80, bad=120)
    state, reason, held_by = await standing(pool)
    assert (state, held_by) == ("held", "failures")
    assert reason is not None
    assert reason.startswith("120 of the last 200 answers are failures, most of them 131026 (120).")
    assert await sale.recount() == await sale.books() == {State.READ: 80, State.FAILED: 120}
    assert await pool.fetchval("SELECT count(*) FROM suppression") == 0
    [act] = await pool.fetch("SELECT author, act, target FROM journal")
    assert tuple(act) == ("auto", "hold campaign", "sale")


async def test_a_run_that_mostly_arrives_goes_on(pool: Pool, sale: Campaign) -> None:
    await tell(pool, sale, Applier(pool), good=120, bad=80)
    assert (await standing(pool))[0] == "running"


async def test_the_same_failures_told_again_count_once(pool: Pool, sale: Campaign) -> None:
    applier = Applier(pool)
    await tell(pool, sale, applier, good=0, bad=60)
    for body in [row["body"] for row in await pool.fetch("SELECT body FROM inbox")] * 4:
        await webhooks.store(pool, [body])
        await applier.apply_batch()
    assert (await standing(pool))[0] == "running"


async def test_an_unknown_code_row_after_row_holds_the_run(pool: Pool, sale: Campaign) -> None:
    await tell(pool, sale, Applier(pool), good=0, bad=21, code=139999)
    assert (await standing(pool))[:2] == (
        "held",
        "139999 A code that Tidegate does not know: 21 times in a row. Look at the raw answer of a row.",
    )


async def test_a_value_of_one_row_fails_it_alone_and_row_after_row_holds_the_run(
    pool: Pool, sale: Campaign
) -> None:
    applier = Applier(pool)
    await tell(pool, sale, applier, good=9, bad=1, code=132012)
    assert (await standing(pool))[0] == "running"
    await tell(pool, sale, applier, good=0, bad=21, code=132012)
    state, reason, _ = await standing(pool)
    assert state == "held"
    assert str(reason).startswith("132012 A parameter has the wrong format: ")


async def test_what_left_before_a_person_let_it_go_on_does_not_hold_it_again(
    pool: Pool, sale: Campaign
) -> None:
    applier = Applier(pool)
    await tell(pool, sale, applier, good=80, bad=120)
    await pool.execute("UPDATE campaign SET state = 'running', reason = NULL, held_by = NULL")
    await pool.execute(RESUME)
    rows = await sale.rows(200, State.SENT)
    for row in rows:
        await sale.record(row, 1, "accepted", wamid=f"wamid.{row}.1")
    await pool.execute(LEFT_EARLIER)
    await webhooks.store(pool, [webhook(*(status("failed", sale.token(row)) for row in rows))])
    await applier.apply_batch()
    assert (await standing(pool))[0] == "running"
    await tell(pool, sale, applier, good=80, bad=120)
    assert (await standing(pool))[0] == "held", "what leaves from now on counts"


async def test_a_run_that_a_person_paused_stays_as_it_is(pool: Pool, sale: Campaign) -> None:
    await pool.execute("UPDATE campaign SET state = 'paused', reason = 'lunch'")
    await tell(pool, sale, Applier(pool), good=0, bad=200)
    assert await standing(pool) == ("paused", "lunch", None)
