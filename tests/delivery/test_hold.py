"""Failures by webhook that reach beyond their rows stop the campaign before anything else is sent."""

import pytest

from engine.delivery.applier import Applier
from engine.domain.recipient import State
from engine.postgres import journal, webhooks
from engine.postgres.pool import Pool
from tests.support.bodies import status, webhook
from tests.support.truth import Campaign, campaign

PAYMENT = 131042


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    made = await campaign(pool, "sale")
    await pool.execute("UPDATE campaign SET state = 'running', planned = 2")
    return made


async def fail(pool: Pool, of: Campaign, *rows: int, code: int = PAYMENT) -> None:
    await webhooks.store(pool, [webhook(*(status("failed", of.token(row), code=code) for row in rows))])
    await Applier(pool).apply_batch()


async def standing(pool: Pool) -> tuple[str, str | None]:
    row = await pool.fetchrow("SELECT state, reason FROM campaign WHERE name = 'sale'")
    assert row is not None
    return row["state"], row["reason"]


@pytest.mark.parametrize("code", [131042, 190, 132015, 130497, 131048])
async def test_a_failure_of_wider_scope_holds_the_campaign_with_its_reason(
    pool: Pool, sale: Campaign, code: int
) -> None:
    rows = await sale.rows(2, State.SENT)
    await fail(pool, sale, *rows, code=code)
    state, reason = await standing(pool)
    assert state == "held"
    assert str(reason).startswith(f"{code} ")
    assert await sale.recount() == {State.PENDING: 2}
    assert [(entry.act, entry.target, entry.after) for entry in await journal.recent(pool)] == [
        ("hold campaign", "sale", "held")
    ]


async def test_a_failure_of_the_row_alone_holds_nothing(pool: Pool, sale: Campaign) -> None:
    await fail(pool, sale, *await sale.rows(2, State.SENT), code=131026)
    assert await standing(pool) == ("running", None)


async def test_a_finished_campaign_is_opened_again_as_held(pool: Pool, sale: Campaign) -> None:
    await pool.execute("UPDATE campaign SET state = 'finished'")
    await fail(pool, sale, await sale.row(State.SENT))
    assert (await standing(pool))[0] == "held"


@pytest.mark.parametrize("state", ["paused", "cancelled", "held"])
async def test_a_campaign_that_stands_still_is_left_as_it_is(pool: Pool, sale: Campaign, state: str) -> None:
    await pool.execute("UPDATE campaign SET state = $1, reason = 'a person'", state)
    await fail(pool, sale, await sale.row(State.SENT))
    assert await standing(pool) == (state, "a person")
    assert await journal.recent(pool) == []


async def test_a_try_that_left_before_the_campaign_was_resumed_holds_it_no_more(
    pool: Pool, sale: Campaign
) -> None:
    old, new = await sale.rows(2, State.SENT)
    await pool.execute("UPDATE recipient SET moved_at = moved_at - interval '1 hour' WHERE id = $1", old)
    resumed = journal.Entry("ana", "cli", "resume campaign", "sale")
    await journal.write(pool, resumed)
    await pool.execute("UPDATE journal SET at = at - interval '30 minutes'")
    await fail(pool, sale, old)
    assert await standing(pool) == ("running", None)
    assert await sale.state(old) is State.PENDING
    await fail(pool, sale, new)
    assert (await standing(pool))[0] == "held"
