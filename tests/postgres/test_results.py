"""Facts about tries: every outcome against every state, recorded once, applied once, never lowering a row."""

import random
from dataclasses import replace

import pytest

from engine.domain.evidence import fold
from engine.domain.message import Token
from engine.domain.receipts import Receipt
from engine.domain.recipient import State, rank
from engine.postgres import claims, results, statuses
from engine.postgres.claims import Permission
from engine.postgres.pool import Pool
from engine.postgres.results import Fact
from tests.support import builders
from tests.support.owned import (
    THEN,
    age,
    assert_books,
    claim,
    counted,
    fact,
    mark,
    owned,
    row,
    running,
    sending,
    states,
    taken_over,
    tallies,
)

P, C, S, U, A, T = (
    State.PENDING, State.CLAIMED, State.SENDING, State.UNKNOWN, State.ASSESSING, State.SENT,
)  # fmt: skip
D, R, F, X, Z, K = (
    State.DELIVERED, State.READ, State.FAILED, State.EXPIRED, State.SUPPRESSED, State.CANCELLED,
)  # fmt: skip
BEFORE_SENT = (P, C, S, U, X, Z, K)


async def apply(pool: Pool, *facts: Fact, repeated: bool = False) -> int:
    async with pool.acquire() as db, db.transaction():
        return await results.apply(db, facts, repeated=repeated)


async def evidence(pool: Pool, id_: int) -> list[tuple[int, str]]:
    found = await pool.fetch("SELECT n, outcome FROM try WHERE recipient_id = $1 ORDER BY n, outcome", id_)
    return [(r["n"], r["outcome"]) for r in found]


async def status(pool: Pool, made: builders.MadeCampaign, state: State, id_: int, n: int) -> None:
    """A webhook's status about a try of ours."""
    campaign = await pool.fetchval("SELECT random_id FROM campaign WHERE campaign_id = $1", made.campaign_id)
    receipt = Receipt(state, f"wamid.{id_}.{n}", Token(campaign, id_, n), "106540352242922", 1.75e9, None)
    async with pool.acquire() as db, db.transaction():
        await statuses.apply(db, fold([receipt]))


@pytest.fixture
async def mine(pool: Pool) -> Permission:
    return await owned(pool)


@pytest.fixture
async def sale(pool: Pool, mine: Permission) -> builders.MadeCampaign:
    return await running(pool)


ANSWERS = {
    "accepted": ("accepted", T, None),
    "assessing": ("accepted", A, None),
    "refused for good": ("refused", F, 131026),
    "refused for now": ("refused", P, 130429),
    "transient": ("refused", P, 131000),
    "unknown": ("unknown", U, None),
    "not sent": ("not_sent", P, None),
    "withdrawn": ("withdrawn", P, None),
}


def expected(answer: str, before: State, newest: bool) -> State:
    """The contract, in words of its own."""
    outcome, wanted, _ = ANSWERS[answer]
    if outcome == "accepted":
        if before in BEFORE_SENT:
            return wanted
        return T if (before, wanted) == (A, T) else before
    if not newest or before not in (S, U):
        return before
    if outcome == "unknown":
        return U
    return wanted


@pytest.mark.parametrize("newest", [True, False], ids=["n = tries", "n < tries"])
@pytest.mark.parametrize("answer", ANSWERS)
async def test_an_answer_about_a_try_finds_its_row_in_any_state(
    pool: Pool, mine: Permission, answer: str, newest: bool
) -> None:
    for before in State:
        await one_answer(pool, mine, await running(pool, before.word), answer, before, newest)
    await assert_books(pool)


async def one_answer(
    pool: Pool, mine: Permission, made: builders.MadeCampaign, answer: str, before: State, newest: bool
) -> None:
    """The row, its record and every counter, after the answer and after its repetitions."""
    outcome, wanted, code = ANSWERS[answer]
    old_code = 131047 if before is F else None
    [id_] = await builders.recipients(
        pool, made, 1, state=before, number_id=mine.number_id, tries=2, code=old_code
    )
    start = await tallies(pool, made)
    n = 2 if newest else 1
    spent = int(outcome == "accepted" or wanted is F or answer == "transient")
    one = fact(id_, n, outcome, mine, wanted=wanted, code=code, spent=spent)

    assert await apply(pool, one) == 1
    after = expected(answer, before, newest)
    found = await row(pool, id_)
    assert found.state is after, before
    assert rank(after) >= rank(before)
    assert (found.tries, found.attempts) == (2, spent if newest else 0), before
    assert (found.in_flight is not None) is (after in (C, S, U)), before
    if after is before:
        assert found.code == old_code
    else:
        assert found.code == (code if after in (P, F) else None), before
        assert found.next_attempt_at == (THEN if after is P else None), before

    tally = await tallies(pool, made)
    errors = {131047: 1} if before is F else {code: 1} if after is F and code else {}
    assert (tally.tries, tally.attempts) == (2, found.attempts), before
    assert tally.accepted - start.accepted == (outcome == "accepted" and before in BEFORE_SENT), before
    assert dict(tally.refusals) == ({code: 1} if code else {}), before
    assert dict(tally.errors) == errors, before
    assert tally.confirmed_duplicates == 0, before

    for _ in range(2):
        assert await apply(pool, one, repeated=True) == 0
    assert await row(pool, id_) == found
    assert await evidence(pool, id_) == [(n, outcome)]
    assert await tallies(pool, made) == tally
    assert await counted(pool, made) == {after.word: 1}


async def test_a_repeated_batch_stores_what_the_first_did_not(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 4)
    batch = [
        fact(ids[0], 1, "accepted", mine),
        fact(ids[1], 1, "refused", mine, wanted=F, code=131026),
        fact(ids[2], 1, "unknown", mine),
        fact(ids[3], 1, "refused", mine, wanted=P, code=131000, spent=1),
    ]
    await apply(pool, *batch[:2])
    assert await apply(pool, *batch, repeated=True) == 2
    assert await apply(pool, *batch, repeated=True) == 0
    assert await states(pool, ids) == ["sent", "failed", "unknown", "pending"]
    tally = await tallies(pool, sale)
    assert (tally.attempts, tally.accepted, dict(tally.refusals)) == (3, 1, {131026: 1, 131000: 1})
    await assert_books(pool)


async def test_a_refusal_of_a_cancelled_campaign_s_row_cancels_it(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 3)
    await pool.execute("UPDATE campaign SET state = 'cancelled'")
    await apply(
        pool,
        fact(ids[0], 1, "refused", mine, wanted=P, code=130429),
        fact(ids[1], 1, "withdrawn", mine),
        fact(ids[2], 1, "accepted", mine),
    )
    assert await states(pool, ids) == ["cancelled", "cancelled", "sent"]
    await assert_books(pool)


async def test_a_fact_of_an_old_owner_is_a_fact(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 2)
    new = await taken_over(pool, mine)
    await claims.rescue(pool, new)
    assert await apply(pool, *(fact(id_, 1, "accepted", mine) for id_ in ids)) == 2
    assert await states(pool, ids) == ["sent", "sent"]
    assert await evidence(pool, ids[0]) == [(1, "accepted"), (1, "unknown")]
    await assert_books(pool)


async def test_a_try_is_doubted_only_once(pool: Pool, mine: Permission, sale: builders.MadeCampaign) -> None:
    [id_] = await sending(pool, mine, sale)
    await age(pool, [id_], 3600)
    assert await claims.sweep(pool, mine, [], 30.0) == (0, 1)
    assert await apply(pool, fact(id_, 1, "unknown", mine)) == 0
    assert await evidence(pool, id_) == [(1, "unknown")]


async def test_a_claimer_s_mark_of_a_row_that_was_proven_meanwhile_is_gone(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [id_] = await builders.recipients(pool, sale, 1, tries=1)
    rows = await claim(pool, mine, sale)
    await apply(pool, fact(id_, 1, "accepted", mine))
    assert await mark(pool, mine, rows) == {id_: "gone"}
    assert (await row(pool, id_)).state is T
    await assert_books(pool)


# Duplicates: two tries of one row that Meta took


async def resent(pool: Pool, mine: Permission, made: builders.MadeCampaign) -> int:
    """A row whose first try is unknown and whose second has left."""
    [id_] = await sending(pool, mine, made)
    await apply(pool, fact(id_, 1, "unknown", mine))
    await pool.execute(
        "UPDATE recipient SET state = 'p', in_flight = NULL, next_attempt_at = now(), resend = true WHERE id = $1",
        id_,
    )
    await pool.execute("INSERT INTO book_delta (lane_id, f, t, n) VALUES ($1, 'u', 'p', 1)", made.lane_id)
    assert await mark(pool, mine, await claim(pool, mine, made)) == {id_: "ok"}
    return id_


async def test_two_accepted_tries_are_one_confirmed_duplicate(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    id_ = await resent(pool, mine, sale)
    await apply(pool, fact(id_, 2, "accepted", mine))
    assert (await tallies(pool, sale)).confirmed_duplicates == 0
    await apply(pool, fact(id_, 1, "accepted", mine))
    tally = await tallies(pool, sale)
    assert (tally.confirmed_duplicates, tally.accepted, tally.possible_duplicates) == (1, 1, 1)
    await assert_books(pool)


async def test_the_second_try_s_answer_after_proof_of_the_first_confirms_a_duplicate(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    id_ = await resent(pool, mine, sale)
    await status(pool, sale, T, id_, 1)
    assert (await row(pool, id_)).state is T
    await apply(pool, fact(id_, 2, "accepted", mine))
    assert (await tallies(pool, sale)).confirmed_duplicates == 1


async def test_a_status_that_was_quicker_than_our_own_answer_is_no_duplicate(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    [first] = await sending(pool, mine, sale)
    await status(pool, sale, D, first, 1)
    await apply(pool, fact(first, 1, "accepted", mine))
    again = await resent(pool, mine, sale)
    await status(pool, sale, D, again, 2)
    await apply(pool, fact(again, 2, "accepted", mine))
    tally = await tallies(pool, sale)
    assert (tally.confirmed_duplicates, tally.accepted) == (0, 2)
    assert await states(pool, [first, again]) == ["delivered", "delivered"]


async def test_a_late_answer_of_the_try_that_was_proven_is_no_duplicate(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    id_ = await resent(pool, mine, sale)
    await status(pool, sale, T, id_, 1)
    await apply(pool, fact(id_, 1, "accepted", mine))
    assert (await tallies(pool, sale)).confirmed_duplicates == 0
    await apply(pool, fact(id_, 2, "refused", mine, wanted=F, code=131026))
    assert (await tallies(pool, sale)).confirmed_duplicates == 0
    assert (await row(pool, id_)).state is T


async def test_a_duplicate_is_counted_once_however_it_becomes_known(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    id_ = await resent(pool, mine, sale)
    await status(pool, sale, D, id_, 1)
    await status(pool, sale, D, id_, 2)
    for n in (1, 2):
        await apply(pool, fact(id_, n, "accepted", mine))
    assert (await tallies(pool, sale)).confirmed_duplicates == 1
    await assert_books(pool)


# Any order of anything


@pytest.mark.parametrize("seed", range(6))
async def test_after_any_sequence_the_recount_equals_the_books(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign, seed: int
) -> None:
    chance = random.Random(seed)
    ids = await builders.recipients(pool, sale, 40)
    owner, past = mine, [mine]
    answers = list(ANSWERS)
    for _ in range(120):
        match chance.randrange(10):
            case 0 | 1:
                await claim(pool, owner, sale, chance.randrange(1, 15))
            case 2 | 3 | 4:
                held = await pool.fetch("SELECT id, tries FROM recipient WHERE state = 'c'")
                some = chance.sample(held, min(len(held), chance.randrange(1, 15)))
                await claims.mark(
                    pool, [claims.Ask(r["id"], chance.choice([owner, owner, *past]), r["tries"] + 1) for r in some]
                )  # fmt: skip
            case 5 | 6 | 7:
                facts = {}
                for r in await pool.fetch("SELECT id, tries FROM recipient WHERE tries > 0"):
                    if chance.random() < 0.5:
                        outcome, wanted, code = ANSWERS[chance.choice(answers)]
                        n = chance.randint(max(1, r["tries"] - 1), r["tries"])
                        facts[r["id"]] = fact(
                            r["id"], n, outcome, chance.choice(past), wanted=wanted, code=code
                        )
                if facts:
                    await apply(pool, *facts.values(), repeated=chance.random() < 0.5)
            case 8:
                await age(pool, ids, 20)
                await claims.sweep(pool, owner, chance.sample(ids, 10), 30.0)
                await claims.give_back(pool, owner, chance.sample(ids, 10))
            case _:
                owner = await taken_over(pool, owner)
                past.append(owner)
                await claims.rescue(pool, owner)
    await assert_books(pool)
    assert sum((await counted(pool, sale)).values()) == 40


@pytest.mark.parametrize("seed", range(6))
async def test_facts_and_statuses_in_any_order_leave_the_furthest_state(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign, seed: int
) -> None:
    chance = random.Random(seed)
    ids = await sending(pool, mine, sale, 12)
    news: list[tuple[int, State | None]] = [(id_, None) for id_ in ids]
    news += [(id_, state) for id_ in ids for state in (T, D, R)]
    chance.shuffle(news)
    for id_, state in news:
        if state is None:
            await apply(pool, fact(id_, 1, "accepted", mine))
        else:
            await status(pool, sale, state, id_, 1)
    assert await states(pool, ids) == ["read"] * 12
    tally = await tallies(pool, sale)
    assert (tally.accepted, tally.confirmed_duplicates) == (12, 0)
    await assert_books(pool)


async def test_one_fact_for_each_row_of_a_batch_in_any_order(
    pool: Pool, mine: Permission, sale: builders.MadeCampaign
) -> None:
    ids = await sending(pool, mine, sale, 50)
    batch = [replace(fact(id_, 1, "accepted", mine), raw=f"raw {id_}") for id_ in ids]
    random.Random(1).shuffle(batch)
    assert await apply(pool, *batch) == 50
    assert await counted(pool, sale) == {"sent": 50}
    raws = await pool.fetch("SELECT recipient_id, raw, wamid FROM try")
    assert all(r["raw"] == f"raw {r['recipient_id']}" for r in raws)
    assert all(r["wamid"] == f"wamid.{r['recipient_id']}.1" for r in raws)
