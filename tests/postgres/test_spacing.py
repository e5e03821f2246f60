"""One person gets nothing within 6 s of the last message, whichever campaign and number it came from."""

from datetime import timedelta

import pytest

from engine.domain.recipient import State
from engine.postgres import claims
from engine.postgres import rows as row_lists
from engine.postgres.claims import Ask, Claimed, Permission
from engine.postgres.pool import Pool
from tests.support import builders, owned
from tests.support.builders import MadeCampaign
from tests.support.explain import explain

FIRST, SECOND = "106540352242922", "106540352242923"

Two = tuple[Permission, MadeCampaign, MadeCampaign]


@pytest.fixture
async def two(pool: Pool) -> Two:
    """A number and two running campaigns to the same person."""
    permission = await owned.owned(pool, FIRST)
    made = [await owned.running(pool, name, number=FIRST) for name in ("one", "two")]
    for campaign in made:
        await builders.recipients(pool, campaign, 1)
    assert await pool.fetchval("SELECT count(DISTINCT phone) FROM recipient_data") == 1
    return permission, made[0], made[1]


async def marked(pool: Pool, permission: Permission, *rows: Claimed) -> list[str]:
    verdicts = await owned.mark(pool, permission, list(rows))
    return [verdicts[row.id] for row in rows]


async def claimed(pool: Pool, permission: Permission, made: MadeCampaign) -> Claimed:
    [row] = await owned.claim(pool, permission, made)
    return row


@pytest.mark.parametrize("state", [State.SENDING, State.UNKNOWN, State.SENT, State.DELIVERED, State.READ])
async def test_a_person_who_has_just_got_a_message_waits_for_the_next(
    pool: Pool, two: Two, state: State
) -> None:
    permission, one, other = two
    first = await claimed(pool, permission, one)
    assert await marked(pool, permission, first) == ["ok"]
    await pool.execute(
        "UPDATE recipient SET state = $2::\"char\", in_flight = CASE WHEN $2 IN ('s', 'u') THEN 1 END WHERE id = $1",
        first.id,
        state.value.encode(),
    )
    await builders.try_row(pool, first.id, 1, "accepted")
    second = await claimed(pool, permission, other)
    before = await pool.fetchval("SELECT clock_timestamp()")
    assert await marked(pool, permission, second) == ["spaced"]
    row = await owned.row(pool, second.id)
    assert (row.state, row.tries) == (State.PENDING, 0)
    assert row.next_attempt_at is not None
    assert timedelta(seconds=4) < row.next_attempt_at - before < timedelta(seconds=60)
    await pool.execute("UPDATE try SET sent_at = sent_at - interval '7 seconds'")
    await pool.execute("UPDATE recipient SET next_attempt_at = now() WHERE id = $1", second.id)
    again = await claimed(pool, permission, other)
    assert await marked(pool, permission, again) == ["spaced" if state is State.SENDING else "ok"]


@pytest.mark.parametrize("state", [State.PENDING, State.FAILED, State.CANCELLED])
async def test_a_message_that_was_never_taken_spaces_nothing(pool: Pool, two: Two, state: State) -> None:
    permission, one, other = two
    first = await claimed(pool, permission, one)
    assert await marked(pool, permission, first) == ["ok"]
    await pool.execute(
        'UPDATE recipient SET state = $2::"char", in_flight = NULL, '
        "next_attempt_at = CASE WHEN $2 = 'p' THEN now() + interval '1 hour' END WHERE id = $1",
        first.id,
        state.value.encode(),
    )
    assert await marked(pool, permission, await claimed(pool, permission, other)) == ["ok"]


async def test_of_two_that_are_marked_together_one_waits(pool: Pool, two: Two) -> None:
    permission, one, other = two
    rows = [await claimed(pool, permission, one), await claimed(pool, permission, other)]
    assert await marked(pool, permission, *rows) == ["ok", "spaced"]


@pytest.mark.parametrize(("account", "verdict"), [("WABA1", "spaced"), ("WABA2", "ok")])
async def test_it_holds_across_the_numbers_of_an_account_and_not_beyond(
    pool: Pool, two: Two, account: str, verdict: str
) -> None:
    permission, one, other = two
    assert await marked(pool, permission, await claimed(pool, permission, one)) == ["ok"]
    second = await owned.owned(pool, SECOND)
    await pool.execute("UPDATE number SET account = $1 WHERE id = $2", account, SECOND)
    assert await marked(pool, second, await claimed(pool, second, other)) == [verdict]


async def test_books_stay_exact_when_rows_are_spaced(pool: Pool, two: Two) -> None:
    permission, one, other = two
    await marked(
        pool, permission, await claimed(pool, permission, one), await claimed(pool, permission, other)
    )
    await owned.assert_books(pool)


@pytest.mark.parametrize("generic", [False, True])
async def test_the_look_for_others_reads_no_table_whole(pool: Pool, two: Two, generic: bool) -> None:
    permission, one, other = two
    for made in (one, other):
        await builders.recipients(pool, made, 5_000, state=State.READ, number_id=permission.number_id)
    await pool.execute("ANALYZE")
    rows = [await claimed(pool, permission, one)]
    asks = [Ask(r.id, permission, 1, r.phone, "t") for r in rows]
    async with pool.acquire() as db:
        plan = await explain(
            db, claims.MARK, [a.id for a in asks], [permission.number_id], [permission.token],
            [permission.epoch], [1], [asks[0].phone], ["t"], [False], generic=generic,
        )  # fmt: skip
    assert not {"recipient", "recipient_data"} & plan.scanned_whole
    assert plan.rows("recipient_data") <= 4


async def test_whoever_was_just_written_to_in_a_conversation_waits_too(pool: Pool, two: Two) -> None:
    permission, one, _ = two
    row = await claimed(pool, permission, one)
    ask = Ask(row.id, permission, 1, row.phone, "t", spaced=True)
    assert list((await claims.mark(pool, [ask])).values()) == ["spaced"]
    await owned.assert_books(pool)


async def test_an_unknown_row_says_why_and_since_when(pool: Pool, two: Two) -> None:
    permission, one, _ = two
    row = await claimed(pool, permission, one)
    await marked(pool, permission, row)
    await pool.execute("UPDATE recipient SET state = 'u' WHERE id = $1", row.id)
    await pool.execute(
        "INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome, raw) "
        "VALUES ($1, 1, 1, 1, now(), 'unknown', 'ReadTimeout after 20 s')",
        row.id,
    )
    [listed] = await row_lists.listing(pool, one.name, State.UNKNOWN, None, 0, 10)
    assert (listed.reason or "").startswith("ReadTimeout after 20 s; unknown since 20")
