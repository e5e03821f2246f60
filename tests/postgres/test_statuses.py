"""Statuses applied to rows: each rule, the books, and what the statements touch."""

import asyncio
from collections.abc import Iterable

import pytest

from engine.domain.evidence import fold
from engine.domain.message import Token
from engine.domain.receipts import Receipt
from engine.domain.recipient import State
from engine.postgres import statuses, unmatched
from engine.postgres.pool import Pool
from engine.postgres.statuses import Applied, Move
from tests.support.explain import explain
from tests.support.truth import NUMBER, Campaign, campaign

SENT, DELIVERED, READ, FAILED = State.SENT, State.DELIVERED, State.READ, State.FAILED
NEVER_SENT = [State.PENDING, State.CLAIMED, State.EXPIRED, State.SUPPRESSED, State.CANCELLED]
AWAITING = [State.SENDING, State.UNKNOWN]
UNPROVEN = [*NEVER_SENT, *AWAITING]


def says(
    state: State, token: Token | None, *, wamid: str | None = None, code: int = 131026, at: float = 1.75e9
) -> Receipt:
    name = wamid or (f"wamid.{token.row}.{token.n}" if token else None)
    return Receipt(state, name, token, NUMBER, at, code if state is FAILED else None)


async def applied_and_kept(pool: Pool, *receipts: Receipt) -> tuple[Applied, int]:
    async with pool.acquire() as connection, connection.transaction():
        applied, rest = await statuses.apply(connection, fold(receipts))
        return applied, await unmatched.keep(connection, rest)


async def apply(pool: Pool, *receipts: Receipt) -> Applied:
    applied, _ = await applied_and_kept(pool, *receipts)
    return applied


async def balanced(of: Campaign) -> bool:
    return await of.books() == await of.recount()


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    return await campaign(pool, "sale")


@pytest.mark.parametrize("before", [*UNPROVEN, State.ASSESSING])
@pytest.mark.parametrize("word", [SENT, DELIVERED, READ])
async def test_proof_settles_a_row_wherever_it_stands_before_sent(
    pool: Pool, sale: Campaign, before: State, word: State
) -> None:
    row = await sale.row(before)
    applied = await apply(pool, says(word, sale.token(row)))
    assert await sale.state(row) is word
    assert applied.moves == [Move(sale.lane, before, word, 1)]
    assert await balanced(sale)
    known_before = before is State.ASSESSING
    assert await sale.tallies() == ({} if known_before else {("K", 0): 1})
    assert await sale.evidence(row) == ([] if known_before else [(1, "proven", None, f"wamid.{row}.1")])


async def test_statuses_only_move_a_row_upward(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT)
    for word, expected in [
        (DELIVERED, DELIVERED),
        (SENT, DELIVERED),
        (READ, READ),
        (DELIVERED, READ),
        (FAILED, READ),
    ]:
        await apply(pool, says(word, sale.token(row)))
        assert await sale.state(row) is expected
    assert await balanced(sale)


async def test_a_repeated_status_books_nothing(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT)
    await apply(pool, says(DELIVERED, sale.token(row)))
    again = await apply(pool, says(DELIVERED, sale.token(row)), says(DELIVERED, sale.token(row)))
    assert again.moves == []
    assert again.kinds == {"delivered": 1}
    assert await sale.books() == {DELIVERED: 1}


async def test_a_row_that_was_to_be_sent_again_is_not(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.PENDING, tries=1)
    await apply(pool, says(SENT, sale.token(row)))
    found = await pool.fetchrow("SELECT next_attempt_at, in_flight FROM recipient WHERE id = $1", row)
    assert found is not None
    assert tuple(found) == (None, None)


@pytest.mark.parametrize("before", [State.SENDING, State.UNKNOWN, State.ASSESSING, SENT])
async def test_a_failure_of_the_last_try_fails_the_row(pool: Pool, sale: Campaign, before: State) -> None:
    row = await sale.row(before)
    await apply(pool, says(FAILED, sale.token(row)))
    assert await sale.state(row) is FAILED
    accepted = {("K", 0): 1} if before in AWAITING else {}
    assert await sale.tallies() == {("F", 131026): 1, ("R", 131026): 1} | accepted
    assert await sale.evidence(row) == [(1, "failed_later", 131026, f"wamid.{row}.1")]
    assert await balanced(sale)


async def test_a_failure_arriving_again_is_recorded_once(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT)
    for _ in range(3):
        await apply(pool, says(FAILED, sale.token(row)))
    assert await sale.tallies() == {("F", 131026): 1, ("R", 131026): 1}
    assert len(await sale.evidence(row)) == 1


async def test_two_batches_with_the_same_failure_at_once_record_it_once(pool: Pool, sale: Campaign) -> None:
    rows = await sale.rows(50, SENT)
    failures = [says(FAILED, sale.token(row)) for row in rows]
    await asyncio.gather(apply(pool, *failures), apply(pool, *reversed(failures)), apply(pool, *failures))
    assert await sale.tallies() == {("F", 131026): 50, ("R", 131026): 50}
    assert await sale.books() == {FAILED: 50}


@pytest.mark.parametrize("word", [DELIVERED, READ])
async def test_a_late_delivery_wins_over_a_failure_and_both_are_kept(
    pool: Pool, sale: Campaign, word: State
) -> None:
    row = await sale.row(SENT)
    await apply(pool, says(FAILED, sale.token(row)))
    await apply(pool, says(word, sale.token(row)))
    assert await sale.state(row) is word
    assert await sale.tallies() == {("R", 131026): 1}
    assert [outcome for _, outcome, _, _ in await sale.evidence(row)] == ["failed_later"]
    assert await pool.fetchval("SELECT code FROM recipient WHERE id = $1", row) is None
    assert await balanced(sale)


async def test_a_late_sent_does_not_revive_a_failure(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT)
    await apply(pool, says(FAILED, sale.token(row)))
    await apply(pool, says(SENT, sale.token(row)))
    assert await sale.state(row) is FAILED


@pytest.mark.parametrize("before", [*UNPROVEN, SENT])
async def test_a_failure_of_an_earlier_try_is_only_recorded(
    pool: Pool, sale: Campaign, before: State
) -> None:
    row = await sale.row(before, tries=2)
    await apply(pool, says(FAILED, sale.token(row, 1)))
    assert await sale.state(row) is before
    assert await sale.tallies() == {("R", 131026): 1}
    assert await sale.evidence(row) == [(1, "failed_later", 131026, f"wamid.{row}.1")]


@pytest.mark.parametrize("before", [State.PENDING, State.CLAIMED])
async def test_a_row_that_is_to_be_sent_again_stays_so_when_its_try_turns_out_to_have_failed(
    pool: Pool, sale: Campaign, before: State
) -> None:
    row = await sale.row(before)
    await apply(pool, says(FAILED, sale.token(row)))
    await apply(pool, says(SENT, sale.token(row)))  # delivered again, days later: no news
    assert await sale.state(row) is before
    await apply(pool, says(DELIVERED, sale.token(row)))
    assert await sale.state(row) is DELIVERED


@pytest.mark.parametrize("before", [State.SENDING, State.UNKNOWN, State.ASSESSING, SENT])
async def test_a_refusal_that_reaches_beyond_the_row_puts_it_back(
    pool: Pool, sale: Campaign, before: State
) -> None:
    row = await sale.row(before)
    for _ in range(2):
        back = (await apply(pool, says(FAILED, sale.token(row), code=131042))).refusals
        assert await sale.state(row) is State.PENDING
    assert back == []  # the second time it is no news
    await apply(pool, says(SENT, sale.token(row)))
    assert await sale.state(row) is State.PENDING
    accepted = {("K", 0): 1} if before in AWAITING else {}
    assert await sale.tallies() == {("R", 131042): 1} | accepted
    assert await sale.evidence(row) == [(1, "failed_later", 131042, f"wamid.{row}.1")]
    assert await balanced(sale)


async def test_a_new_refusal_is_named_once_with_its_row_and_what_became_of_it(
    pool: Pool, sale: Campaign
) -> None:
    one, two = await sale.rows(2, SENT)
    applied = await apply(
        pool,
        says(FAILED, sale.token(one), code=132015),
        says(FAILED, sale.token(two)),
        says(READ, sale.token(two)),
    )
    assert [(one.row, one.lane_id, one.number_id, one.code, one.sent_back) for one in applied.refusals] == [
        (one, sale.lane, sale.number, 132015, True)
    ]


async def test_a_refusal_is_as_old_as_its_try(pool: Pool, sale: Campaign) -> None:
    recorded, marked, unheard = await sale.rows(3, SENT)
    await pool.execute("UPDATE recipient SET state = 's', in_flight = number_id WHERE id = $1", marked)
    await pool.execute("UPDATE recipient SET moved_at = moved_at - interval '1 hour'")
    await sale.record(recorded, 1, "accepted", wamid="wamid.recorded")
    await pool.execute("UPDATE try SET sent_at = sent_at - interval '2 hours'")
    now = await pool.fetchval("SELECT extract(epoch FROM now())::float8")
    failures = [says(FAILED, sale.token(row), code=131042, at=now) for row in (recorded, marked, unheard)]
    ages = {one.row: round(now - one.left.timestamp()) for one in (await apply(pool, *failures)).refusals}
    assert ages == {recorded: 7200, marked: 3600, unheard: 0}


async def test_a_refusal_of_what_has_arrived_is_not_one_of_what_surrounds_it(
    pool: Pool, sale: Campaign
) -> None:
    row, both = await sale.row(DELIVERED), await sale.row(SENT)
    applied = await apply(
        pool,
        says(FAILED, sale.token(row), code=131042),
        says(FAILED, sale.token(both), code=131042),
        says(READ, sale.token(both)),
    )
    assert applied.refusals == []
    assert (await sale.evidence(row))[0][:3] == (1, "failed_later", 131042)


async def test_a_message_that_was_refused_and_arrives_after_all_is_accepted_once(
    pool: Pool, sale: Campaign
) -> None:
    row = await sale.row(State.SENDING)
    await apply(pool, says(FAILED, sale.token(row), code=131042))
    assert await sale.state(row) is State.PENDING
    await apply(pool, says(DELIVERED, sale.token(row)))
    assert await sale.state(row) is DELIVERED
    assert await sale.tallies() == {("K", 0): 1, ("R", 131042): 1}


async def test_a_late_refusal_of_an_earlier_try_is_told_and_moves_nothing(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT, tries=2)
    [told] = (await apply(pool, says(FAILED, sale.token(row, 1), code=131042))).refusals
    assert (told.row, told.sent_back) == (row, False)
    assert await sale.state(row) is SENT


async def test_proof_of_a_second_taken_try_is_one_confirmed_duplicate(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT, tries=2)
    await sale.record(row, 2, "accepted", wamid="wamid.two")
    for _ in range(2):
        await apply(pool, says(DELIVERED, sale.token(row, 1)))
    assert await sale.tallies() == {("C", 0): 1}
    assert await sale.evidence(row) == [
        (1, "proven", None, f"wamid.{row}.1"),
        (2, "accepted", None, "wamid.two"),
    ]


async def test_proof_of_both_tries_at_once_is_one_confirmed_duplicate(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.UNKNOWN, tries=2)
    await apply(pool, says(SENT, sale.token(row, 1)), says(DELIVERED, sale.token(row, 2)))
    assert await sale.state(row) is DELIVERED
    assert await sale.tallies() == {("K", 0): 1, ("C", 0): 1}
    assert await balanced(sale)


async def test_a_try_after_refused_ones_is_no_duplicate(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT, tries=3)
    await sale.record(row, 1, "refused", code=130429)
    await sale.record(row, 2, "accepted", wamid="wamid.two")
    await sale.record(row, 2, "failed_later", wamid="wamid.two", code=131026)
    await sale.record(row, 3, "accepted", wamid="wamid.three")
    await apply(pool, says(DELIVERED, sale.token(row, 3)), says(SENT, sale.token(row, 2)))
    assert await sale.tallies() == {}


async def test_a_status_without_token_is_matched_by_its_wamid(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT)
    await sale.record(row, 1, "accepted", wamid="wamid.one")
    await apply(pool, says(FAILED, None, wamid="wamid.one"))
    assert await sale.state(row) is FAILED


async def test_statuses_with_and_without_token_about_one_message_are_one_statement(
    pool: Pool, sale: Campaign
) -> None:
    row = await sale.row(State.SENDING)
    await sale.record(row, 1, "unknown", wamid="wamid.one")
    applied = await apply(
        pool, says(FAILED, None, wamid="wamid.one"), says(READ, sale.token(row), wamid="wamid.other")
    )
    assert applied.kinds == {"failed": 1, "read": 1}
    assert await sale.state(row) is READ
    assert await sale.tallies() == {("K", 0): 1, ("R", 131026): 1}


async def test_the_token_of_another_installation_moves_nothing(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(SENT)
    other = await campaign(pool, "other")
    applied, kept = await applied_and_kept(
        pool,
        says(READ, Token("elsewhere", row, 1)),
        says(READ, other.token(row)),
        says(READ, Token("nowhere", 9999, 1)),
    )
    assert (applied.foreign, kept, applied.moves) == (3, 0, [])
    assert await sale.state(row) is SENT


async def test_the_delay_to_delivery_is_known_from_the_batch_or_the_row(pool: Pool, sale: Campaign) -> None:
    one, two = await sale.rows(2, SENT)
    at = float(
        await pool.fetchval("SELECT extract(epoch FROM moved_at)::float8 FROM recipient WHERE id = $1", two)
    )
    both = await apply(
        pool, says(SENT, sale.token(one), at=100), says(DELIVERED, sale.token(one), at=103),
        says(DELIVERED, sale.token(two), at=at + 7),
    )  # fmt: skip
    assert both.delays == [3.0, pytest.approx(7.0)]


async def test_concurrent_batches_over_the_same_rows_keep_the_books_exact(pool: Pool, sale: Campaign) -> None:
    rows = await sale.rows(60, State.SENDING)

    def batch(words: Iterable[State]) -> list[Receipt]:
        return [says(word, sale.token(row)) for word in words for row in rows]

    await asyncio.gather(
        apply(pool, *batch([SENT])),
        apply(pool, *batch([DELIVERED])[::-1]),
        apply(pool, *batch([SENT, READ])),
        apply(pool, *batch([FAILED])),
    )
    assert await sale.books() == await sale.recount() == {READ: 60}
    assert await sale.tallies() == {("K", 0): 60, ("R", 131026): 60}


@pytest.mark.parametrize("analyzed", [False, True], ids=["no statistics", "analyzed"])
@pytest.mark.parametrize("generic", [False, True], ids=["custom plan", "generic plan"])
async def test_a_batch_touches_its_own_rows_among_200_000(
    pool: Pool, sale: Campaign, analyzed: bool, generic: bool
) -> None:
    rows = await sale.rows(200_000, SENT, tries=2)
    await pool.execute(
        "INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome, wamid)"
        " SELECT id, 2, 1, 1, now(), 'accepted', 'w' || id FROM recipient"
    )
    if analyzed:
        await pool.execute("ANALYZE")
    batch = rows[:: len(rows) // 500][:500]
    count = len(batch)
    async with pool.acquire() as connection:
        tries, failed = [1 + i % 2 for i in range(count)], [i % 3 == 0 for i in range(count)]
        arguments = (
            batch, tries, [sale.name] * count, [3] * count, failed,
            [131026] * count, [f"w{row}" for row in batch], ["{}"] * count, [1.75e9] * count, failed,
        )  # fmt: skip
        applied = await explain(
            connection, statuses.APPLY, *arguments, generic=generic, setting=statuses.NO_NESTED_LOOPS
        )
        locked = await explain(connection, statuses.LOCK, batch, generic=generic)
        found = await explain(
            connection, statuses.FIND_BY_WAMID, [f"w{row}" for row in batch], generic=generic
        )
    for plan in (applied, locked, found):
        assert not {table for table in plan.scanned_whole if table == "recipient" or table.startswith("try")}
        assert plan.rows("recipient") <= 3 * count
        assert plan.buffers < 60 * count
    assert {"recipient_pkey"} <= applied.indexes & locked.indexes & found.indexes
    assert any("recipient_id" in name for name in applied.indexes)
    assert any("wamid" in name for name in found.indexes)
