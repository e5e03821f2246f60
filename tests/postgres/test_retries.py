"""Failed rows that a person sends again: which, how counted, and what a late status does to them."""

import pytest

from engine.commands import Commands, Refused
from engine.control import audit
from engine.domain.evidence import fold
from engine.domain.message import Token
from engine.domain.receipts import Receipt
from engine.domain.recipient import State
from engine.domain.retry import MARKETING_REST
from engine.postgres import books, journal, retries, statuses
from engine.postgres.pool import Pool
from tests.support import builders
from tests.support.builders import MadeCampaign
from tests.support.explain import explain

NUMBER = "106540352242922"
DAY = 86_400.0


@pytest.fixture
async def made(pool: Pool) -> MadeCampaign:
    await builders.number(pool, NUMBER)
    return await builders.campaign(pool, numbers=[NUMBER], state="finished")


@pytest.fixture
def commands(pool: Pool) -> Commands:
    return Commands(pool, author="ana", origin="cli")


async def failed(pool: Pool, made: MadeCampaign, n: int, code: int, age: float = 0) -> list[int]:
    return await builders.recipients(pool, made, n, state=State.FAILED, number_id=1, code=code, age=age)


async def counts(pool: Pool, made: MadeCampaign) -> dict[State, int]:
    return (await books.balances(pool, made.campaign_id))[made.campaign_id]


async def standing(pool: Pool) -> str:
    state: str = await pool.fetchval("SELECT state FROM campaign")
    return state


async def test_only_what_may_pass_is_sent_again_and_the_books_stay_exact(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    await failed(pool, made, 5, 131000)
    await failed(pool, made, 3, 131056)
    await failed(pool, made, 7, 131026)
    await failed(pool, made, 2, 424242)
    done = await commands.retry_failed("reminder", page=2)
    assert (done.retried, done.state) == (8, "running")
    assert {o.code: o.retried for o in done.offers} == {131026: 0, 131000: 5, 131056: 3, 424242: 0}
    found = await counts(pool, made)
    assert (found[State.PENDING], found[State.FAILED]) == (8, 9)
    assert (await books.tallies(pool))[made.campaign_id].errors == {131026: 7, 424242: 2}
    assert await pool.fetchval("SELECT count(*) FROM recipient WHERE next_attempt_at <= now()") == 8
    assert await standing(pool) == "running"
    kept, *_ = await journal.recent(pool)
    assert (kept.act, kept.before, kept.after) == ("retry failed", "finished", "running")
    assert kept.result == "8 rows, codes 131000, 131056"


async def test_a_dry_run_counts_and_changes_nothing(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    await failed(pool, made, 5, 131000)
    done = await commands.retry_failed("reminder", dry_run=True)
    assert (done.retried, done.dry_run) == (5, True)
    assert (await counts(pool, made))[State.FAILED] == 5
    assert await standing(pool) == "finished"
    assert await journal.recent(pool) == []


async def test_a_code_that_says_no_for_good_is_refused_with_its_reason(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    await failed(pool, made, 1, 131026)
    with pytest.raises(Refused, match=r"131026 are not sent again\. Meta refused this person"):
        await commands.retry_failed("reminder", 131026)
    assert (await commands.retry_failed("reminder", 131000)).retried == 0
    assert await standing(pool) == "finished"


async def test_the_marketing_limit_is_tried_again_after_a_day_and_only_when_asked_for(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    await failed(pool, made, 4, 131049, age=DAY + 60)
    await failed(pool, made, 6, 131049, age=DAY - 600)
    with pytest.raises(Refused, match="only with --retry-marketing-limit"):
        await commands.retry_failed("reminder", 131049)
    done = await commands.retry_failed("reminder", 131049, marketing_limit=True)
    assert done.retried == 4
    assert done.offers[0].why_not == "6 failed less than 24 h ago: too early."
    assert (await counts(pool, made))[State.FAILED] == 6


async def test_attempts_begin_anew_so_that_a_row_which_used_them_all_has_room(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    await failed(pool, made, 2, 131000)
    await pool.execute("UPDATE recipient SET attempts = 8")
    await pool.execute(
        "INSERT INTO tally_delta (lane_id, what, code, n) VALUES ($1, 'A', 0, 16)", made.lane_id
    )
    await commands.retry_failed("reminder")
    assert await pool.fetchval("SELECT sum(attempts) FROM recipient") == 0
    assert (await books.tallies(pool))[made.campaign_id].attempts == 0
    assert await pool.fetchval("SELECT sum(tries) FROM recipient") == 2


async def test_a_late_delivered_leaves_a_row_out_and_one_after_the_retry_settles_it(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    early, late, silent = await failed(pool, made, 3, 131000)
    for row in (early, late, silent):
        await builders.try_row(pool, row, 1, "accepted", wamid=f"wamid.{row}")
        await builders.try_row(pool, row, 1, "failed_later", code=131000)
    await pool.execute(
        "INSERT INTO tally_delta (lane_id, what, code, n) VALUES ($1, 'K', 0, 3)", made.lane_id
    )
    await arrives(pool, early)
    assert (await commands.retry_failed("reminder")).retried == 2
    await arrives(pool, late)
    found = await counts(pool, made)
    assert (found[State.DELIVERED], found[State.PENDING], found[State.FAILED]) == (2, 1, 0)
    assert (await books.tallies(pool))[made.campaign_id].accepted == 3


async def arrives(pool: Pool, row: int) -> None:
    campaign = await pool.fetchval("SELECT random_id FROM campaign")
    said = Receipt(State.DELIVERED, f"wamid.{row}", Token(campaign, row, 1), NUMBER, 1.75e9, None)
    async with pool.acquire() as db, db.transaction():
        await statuses.apply(db, fold([said]))


@pytest.mark.parametrize("state", ["paused", "held"])
async def test_a_campaign_that_is_stopped_stays_stopped(
    pool: Pool, made: MadeCampaign, commands: Commands, state: str
) -> None:
    await failed(pool, made, 1, 131000)
    await pool.execute("UPDATE campaign SET state = $1, reason = 'why'", state)
    assert (await commands.retry_failed("reminder")).state == state
    assert await pool.fetchval("SELECT reason FROM campaign") == "why"


async def test_a_cancelled_campaign_and_one_past_its_deadline_send_nothing_again(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    await failed(pool, made, 1, 131000)
    await pool.execute("UPDATE campaign SET deadline = now() - interval '1 minute'")
    with pytest.raises(Refused, match="past its deadline"):
        await commands.retry_failed("reminder")
    await pool.execute("UPDATE campaign SET deadline = NULL, state = 'cancelled'")
    with pytest.raises(Refused, match="is cancelled"):
        await commands.retry_failed("reminder")


async def test_a_budget_that_does_not_last_is_told(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    await failed(pool, made, 4, 131000)
    await pool.execute("UPDATE campaign SET try_budget = 6")
    (warning,) = (await commands.retry_failed("reminder")).warnings
    assert "2 tries left for 4 rows" in warning


@pytest.mark.parametrize("generic", [False, True])
async def test_a_page_of_a_retry_does_not_read_the_table(
    pool: Pool, made: MadeCampaign, generic: bool
) -> None:
    await failed(pool, made, 500, 131000)
    await builders.recipients(pool, made, 20_000, state=State.READ, number_id=1)
    await pool.execute("ANALYZE")
    async with pool.acquire() as db:
        plan = await explain(
            db, retries.RETRY, made.campaign_id, [131000], [], MARKETING_REST, 100, generic=generic
        )
    assert "recipient" not in plan.scanned_whole


async def test_a_retried_campaign_passes_its_audit(
    pool: Pool, made: MadeCampaign, commands: Commands
) -> None:
    await failed(pool, made, 3, 131000)
    await commands.retry_failed("reminder")
    found = await audit.run(pool)
    by_name = {check.name: check for check in found.checks}
    assert by_name["books balance"].holds
    assert by_name["counters agree"].holds
