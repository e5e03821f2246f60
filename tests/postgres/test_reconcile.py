"""Unknown rows are settled by policy only when silence means something, and never twice."""

from datetime import timedelta

import pytest

from engine import clock
from engine.control.reconcile import Limits, UnknownCampaignError, run
from engine.domain.recipient import State
from engine.domain.snapshot import ReconcilePreview
from engine.postgres import books, journal, reconcile
from engine.postgres.pool import Pool
from tests.support import builders
from tests.support.explain import explain

NUMBER = "106540352242922"
LIMITS = Limits(floor=92, deadline=20)
HEARD = "INSERT INTO webhook_seen (number, at) VALUES ($1, clock_timestamp())"
LAG = "INSERT INTO inbox_work (id, slot, received_at) VALUES (1, 0, clock_timestamp() - interval '2 minutes')"
LEASE = """
INSERT INTO lease (number_id, owner, node, token, epoch, expires_at)
VALUES ($1, gen_random_uuid(), 'one', gen_random_uuid(), 1, clock_timestamp() + interval '1 minute')
"""


async def unknown(
    pool: Pool, policy: str, n: int = 3, *, age: float = 3600, after: float = 1800, state: str = "running"
) -> tuple[builders.MadeCampaign, list[int]]:
    number_id = await pool.fetchval("SELECT number_id FROM number") or await builders.number(pool, NUMBER)
    made = await builders.campaign(
        pool, policy, numbers=[NUMBER], state=state, policy=policy, unknown_after=after
    )
    ids = await builders.recipients(pool, made, n, state=State.UNKNOWN, number_id=number_id, age=age)
    return made, ids


async def counts(pool: Pool, made: builders.MadeCampaign) -> dict[str, int]:
    """From the books; a recount must agree."""
    balance = (await books.balances(pool))[made.campaign_id]
    rows = await pool.fetch(
        "SELECT state, count(*) AS n FROM recipient WHERE lane_id = $1 GROUP BY 1", made.lane_id
    )
    assert {s.value: n for s, n in balance.items() if n} == {r["state"].decode(): r["n"] for r in rows}
    return {state.word: n for state, n in balance.items() if n}


async def test_hold_leaves_them_to_a_person(pool: Pool) -> None:
    made, _ = await unknown(pool, "hold")
    await pool.execute(HEARD, NUMBER)
    done = await run(pool, LIMITS, dry_run=False)
    assert (done.stay_unknown, done.to_pending, done.to_sent) == (3, 0, 0)
    assert await counts(pool, made) == {"unknown": 3}


async def test_resend_puts_them_back_once_and_then_holds(pool: Pool) -> None:
    made, ids = await unknown(pool, "resend")
    await pool.execute(HEARD, NUMBER)
    done = await run(pool, LIMITS, dry_run=False)
    assert done.to_pending == 3
    assert await counts(pool, made) == {"pending": 3}
    assert await pool.fetchval("SELECT bool_and(resend AND next_attempt_at <= now()) FROM recipient")
    await pool.execute(
        "UPDATE recipient SET state = 'u', next_attempt_at = NULL, in_flight = number_id, tries = 2, resend = false,"
        " moved_at = now() - interval '1 day' WHERE id = $1",
        ids[0],
    )
    again = await run(pool, LIMITS, dry_run=False)
    assert (again.to_pending, again.stay_unknown) == (0, 1)


async def test_assume_sent_counts_them_apart(pool: Pool) -> None:
    made, _ = await unknown(pool, "assume_sent")
    await pool.execute(HEARD, NUMBER)
    assert (await run(pool, LIMITS, dry_run=False)).to_sent == 3
    assert await counts(pool, made) == {"sent": 3}
    tallies = (await books.tallies(pool))[made.campaign_id]
    assert (tallies.assumed_sent, tallies.accepted) == (3, 3)


async def test_a_dry_run_counts_and_changes_nothing(pool: Pool) -> None:
    one, _ = await unknown(pool, "resend")
    two, _ = await unknown(pool, "assume_sent", 2)
    await pool.execute(HEARD, NUMBER)
    before = await pool.fetchval("SELECT version FROM control")
    done = await run(pool, LIMITS, dry_run=True)
    assert (done.to_pending, done.to_sent) == (3, 2)
    assert await counts(pool, one) == {"unknown": 3}
    assert await counts(pool, two) == {"unknown": 2}
    assert await pool.fetchval("SELECT version FROM control") == before


@pytest.mark.parametrize(
    ("age", "after", "heard", "lag"),
    [
        (60, 1800, True, False),  # the campaign's window has not passed
        (60, 1, True, False),  # nor has the floor
        (3600, 1800, False, False),  # no status comes for this number
        (3600, 1800, True, True),  # the inbox lags
    ],
)
async def test_nothing_is_decided_while_a_proof_may_be_on_its_way(
    pool: Pool, age: float, after: float, heard: bool, lag: bool
) -> None:
    made, _ = await unknown(pool, "resend", age=age, after=after)
    if heard:
        await pool.execute(HEARD, NUMBER)
    if lag:
        await pool.execute(LAG)
    done = await run(pool, LIMITS, dry_run=False)
    assert (done.waiting, done.to_pending) == (3, 0)
    assert done.note
    assert await counts(pool, made) == {"unknown": 3}


async def test_a_cancelled_campaign_sends_nothing_again(pool: Pool) -> None:
    made, _ = await unknown(pool, "resend", state="cancelled")
    await pool.execute(HEARD, NUMBER)
    assert (await run(pool, LIMITS, dry_run=False)).stay_unknown == 3
    assert await counts(pool, made) == {"unknown": 3}


async def test_a_row_that_evidence_moved_after_the_judgement_is_left_alone(pool: Pool) -> None:
    made, ids = await unknown(pool, "assume_sent")
    number_id = await pool.fetchval("SELECT number_id FROM number")
    judged = await reconcile.judge(pool, number_id, 0, 10, 92, True, None)
    await pool.execute(
        "UPDATE recipient SET state = 'd', in_flight = NULL, moved_at = now() WHERE id = $1", ids[1]
    )
    assert await reconcile.settle(pool, judged, "test") == (2, 0)
    assert await pool.fetchval("SELECT state FROM recipient WHERE id = $1", ids[1]) == b"d"
    assert await reconcile.settle(pool, judged, "test") == (0, 0)
    del made


async def test_it_works_in_pages_and_for_one_campaign_alone(pool: Pool) -> None:
    one, _ = await unknown(pool, "resend", 7)
    two, _ = await unknown(pool, "assume_sent", 5)
    await pool.execute(HEARD, NUMBER)
    done = await run(pool, LIMITS, campaign="assume_sent", dry_run=False, page=2, author="ana", origin="cli")
    assert done == ReconcilePreview(5, 0, 0, 0, 0, "")
    assert await counts(pool, one) == {"unknown": 7}
    assert await counts(pool, two) == {"sent": 5}
    (kept, *_) = await journal.recent(pool)
    assert (kept.author, kept.act, kept.target) == ("ana", "reconcile", "assume_sent")
    assert kept.result.startswith("5 to sent")


async def test_sending_rows_without_an_owner_become_unknown_and_then_wait(pool: Pool) -> None:
    made, _ = await unknown(pool, "resend", 0)
    number_id = await pool.fetchval("SELECT number_id FROM number")
    await builders.recipients(pool, made, 4, state=State.SENDING, number_id=number_id, age=60)
    await builders.recipients(pool, made, 1, state=State.SENDING, number_id=number_id, age=10)
    await pool.execute(HEARD, NUMBER)
    assert (await run(pool, LIMITS, dry_run=True)).stuck_to_unknown == 4
    done = await run(pool, LIMITS, dry_run=False, page=3)
    assert (done.stuck_to_unknown, done.waiting) == (4, 4)
    assert await counts(pool, made) == {"unknown": 4, "sending": 1}
    assert await pool.fetchval("SELECT count(*) FROM try WHERE outcome = 'unknown'") == 4


async def test_sending_rows_of_a_living_owner_are_its_own(pool: Pool) -> None:
    made, _ = await unknown(pool, "resend", 0)
    number_id = await pool.fetchval("SELECT number_id FROM number")
    await pool.execute(LEASE, number_id)
    await builders.recipients(pool, made, 4, state=State.SENDING, number_id=number_id, age=600)
    assert (await run(pool, LIMITS, dry_run=False)).stuck_to_unknown == 0
    assert await counts(pool, made) == {"sending": 4}


async def test_a_campaign_that_does_not_exist_is_no_empty_answer(pool: Pool) -> None:
    with pytest.raises(UnknownCampaignError):
        await run(pool, LIMITS, campaign="reminder")


@pytest.mark.parametrize("generic", [False, True])
async def test_judging_reads_what_is_in_flight_and_nothing_else(pool: Pool, generic: bool) -> None:
    made, ids = await unknown(pool, "resend", 50)
    await builders.recipients(pool, made, 20_000)
    await pool.execute("ANALYZE")
    number_id = await pool.fetchval("SELECT number_id FROM number")
    async with pool.acquire() as db:
        judged = await explain(
            db, reconcile.JUDGE, number_id, 0, 500, 92.0, True, None, None, generic=generic
        )
        rows = [
            r["moved_at"]
            for r in await db.fetch("SELECT moved_at FROM recipient WHERE state = 'u' ORDER BY id")
        ]
        settled = await explain(db, reconcile.SETTLE, ids, rows, [b"p"] * 50, "why", generic=generic)
        stuck = await explain(db, reconcile.DOUBT_STUCK, number_id, 50.0, None, 500, generic=generic)
    for plan in (judged, settled, stuck):
        assert "recipient" not in plan.scanned_whole
        assert plan.rows("recipient") <= 200


async def test_a_person_decides_about_held_rows_once_and_it_is_journalled(pool: Pool) -> None:
    made, ids = await unknown(pool, "hold")
    other, _ = await unknown(pool, "assume_sent", 1)
    await pool.execute(HEARD, NUMBER)
    looked = await run(pool, LIMITS, campaign="hold", policy="resend", author="ana", origin="cli")
    assert (looked.to_pending, await counts(pool, made)) == (3, {"unknown": 3})
    decided = await run(
        pool, LIMITS, campaign="hold", policy="resend", dry_run=False, author="ana", origin="cli"
    )
    assert decided.to_pending == 3
    assert await counts(pool, made) == {"pending": 3}
    assert await counts(pool, other) == {"unknown": 1}
    [entry] = await journal.recent(pool)
    assert (entry.author, entry.act, entry.target, entry.reason) == ("ana", "reconcile", "hold", "as resend")
    await pool.execute(
        "UPDATE recipient SET state = 'u', next_attempt_at = NULL, in_flight = number_id, tries = 2, resend = false,"
        " moved_at = now() - interval '1 day' WHERE id = ANY($1)",
        ids,
    )
    again = await run(pool, LIMITS, campaign="hold", policy="resend", dry_run=False, author="ana")
    assert (again.to_pending, again.stay_unknown) == (0, 3)


async def test_each_number_says_which_condition_its_rows_wait_for_and_until_when(pool: Pool) -> None:
    await unknown(pool, "hold", 2, age=3600)
    await unknown(pool, "assume_sent", 3, age=10)
    looked = await run(pool, LIMITS)
    assert looked.first is not None
    assert looked.last is not None
    assert looked.first <= looked.last <= clock.now() + timedelta(seconds=1800)
    assert (looked.then, looked.waiting, looked.unknown) == ((("assume_sent", 3),), 5, 5)
    (silent,) = looked.conditions
    assert (
        silent
        == f"{NUMBER}: 2 rows wait, until statuses arrive for this number: none came in the last minute."
    )
    await pool.execute(LAG)
    assert "until the inbox is drained" in (await run(pool, LIMITS)).conditions[0]
    await pool.execute("DELETE FROM inbox_work")
    await pool.execute(HEARD, NUMBER)
    assert "2 rows unknown until further notice, for evidence, or" in (await run(pool, LIMITS)).conditions[0]
