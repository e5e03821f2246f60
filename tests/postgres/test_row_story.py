"""A row's story: its statuses by both clocks from the stored bodies, and what was done around it."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.delivery.applier import Applier
from engine.domain.breaker import Stop
from engine.domain.errors import Scope
from engine.domain.recipient import State
from engine.postgres import breakers, journal, row_story, rows, webhooks
from engine.postgres.pool import Pool
from tests.support.bodies import status, webhook
from tests.support.truth import Campaign, campaign

SAID = datetime(2025, 6, 15, 23, 27, 53, tzinfo=UTC)
"""The stamp that tests.support.bodies writes, by the provider's clock."""


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    return await campaign(pool, "sale")


async def accepted(sale: Campaign) -> int:
    row = await sale.row(State.SENT)
    await sale.record(row, 1, "accepted", wamid=f"wamid.{row}.1")
    return row


async def test_statuses_are_told_once_each_with_both_clocks(pool: Pool, sale: Campaign) -> None:
    row, other = await accepted(sale), await accepted(sale)
    before = datetime.now(UTC)
    for word in ("sent", "delivered", "delivered"):
        items = [status(word, sale.token(one)) for one in (other, row)]
        await webhooks.store(pool, [webhook(*items), b"no JSON"])
    await Applier(pool).apply_batch()
    told = await row_story.heard(pool, row)
    assert [(one.n, one.word, one.said_at) for one in told] == [(1, "sent", SAID), (1, "delivered", SAID)]
    assert all(abs(one.received_at - before) < timedelta(minutes=1) for one in told)


async def test_a_status_that_came_a_day_later_is_found_at_its_own_time(pool: Pool, sale: Campaign) -> None:
    row = await accepted(sale)
    await pool.execute("UPDATE try SET sent_at = sent_at - interval '25 hours'")
    for _ in range(40):
        await webhooks.store(pool, [webhook(status("read", sale.token(await accepted(sale))))])
    await webhooks.store(pool, [webhook(status("failed", sale.token(row), code=131026))])
    while await Applier(pool).apply_batch():
        pass
    [one] = await row_story.heard(pool, row)
    assert (one.word, one.code) == ("failed", 131026)


async def test_a_row_that_never_left_has_no_statuses(pool: Pool, sale: Campaign) -> None:
    assert await row_story.heard(pool, await sale.row(State.PENDING, tries=0)) == []
    assert await row_story.heard(pool, 404) == []


async def test_what_was_done_around_a_row_is_told_oldest_first(pool: Pool, sale: Campaign) -> None:
    row = await accepted(sale)
    await journal.write(pool, journal.Entry("ana", "cli", "start campaign", "sale"))
    await journal.write(pool, journal.Entry("ana", "cli", "start campaign", "another"))
    await breakers.trip(pool, Stop(Scope.ACCOUNT, "WABA", 131042, "131042 …"), datetime.now(UTC))
    [held] = await breakers.open_breakers(pool)
    await breakers.lift(pool, held.breaker_id, "ben", "paid")
    shown = await rows.timeline(pool, row)
    assert shown is not None
    assert [(act.author, act.act, act.target) for act in shown.acts] == [
        ("ana", "start campaign", "sale"),
        ("auto", "hold account", "WABA"),
        ("ben", "lift account", "WABA"),
    ]
