"""The audit passes on what is right and names what is wrong."""

from datetime import UTC, datetime

import pytest

from engine.control.audit import Audit, Check, UnknownCampaignError, run
from engine.domain.recipient import State
from engine.postgres.pool import Pool
from tests.support import builders

NUMBER = "106540352242922"
IMPORT = """
INSERT INTO journal (author, origin, act, target, before, after, result)
VALUES ('ana', 'cli', 'import', $1, $2, $3, 'taken')
"""
BATCH = """
INSERT INTO send_log (number_id, epoch, lane, rate, lim, base_mono_us, base_db, err_us, us)
VALUES ($1, $2, $3, $4, 80, $5, $6, 100, $7)
"""
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


async def sound(pool: Pool) -> builders.MadeCampaign:
    """A campaign of which every invariant holds."""
    number_id = await builders.number(pool, NUMBER)
    made = await builders.campaign(pool, numbers=[NUMBER], state="running")
    await builders.recipients(pool, made, 5)
    sent = await builders.recipients(pool, made, 3, state=State.SENT, number_id=number_id)
    await builders.recipients(pool, made, 2, state=State.FAILED, number_id=number_id, code=131026)
    for id_ in sent:
        await builders.try_row(pool, id_, 1, "accepted", number_id=number_id)
    await pool.execute(IMPORT, made.name, "planned 0", "planned 10")
    return made


def broken(done: Audit) -> list[Check]:
    return [check for check in done.checks if not check.holds]


async def test_it_passes_on_a_sound_campaign(pool: Pool) -> None:
    await sound(pool)
    done = await run(pool)
    assert broken(done) == []
    assert {check.invariant for check in done.checks} == {1, 2, 3, 5}


async def test_it_passes_on_an_empty_database(pool: Pool) -> None:
    assert (await run(pool)).holds


async def test_a_campaign_that_does_not_exist_is_said(pool: Pool) -> None:
    with pytest.raises(UnknownCampaignError):
        await run(pool, "reminder")


async def test_a_second_taken_request_is_found(pool: Pool) -> None:
    await sound(pool)
    id_ = await pool.fetchval("SELECT recipient_id FROM try LIMIT 1")
    await builders.try_row(pool, id_, 2, "accepted")
    (check,) = broken(await run(pool))
    assert check.invariant == 1
    assert check.offenders == (f"row {id_} of reminder: 2 requests taken",)


@pytest.mark.parametrize("outcome", ["resend_decided", "failed_later", "refused", "unknown"])
async def test_a_second_request_is_right_after_a_decision_or_a_refusal(pool: Pool, outcome: str) -> None:
    await sound(pool)
    id_ = await pool.fetchval("SELECT recipient_id FROM try LIMIT 1")
    if outcome in ("refused", "unknown"):
        await builders.try_row(pool, id_, 2, outcome)
    else:
        await builders.try_row(pool, id_, 1, outcome)
        await builders.try_row(pool, id_, 2, "accepted")
    assert (await run(pool)).holds


async def test_proof_of_a_try_that_was_accepted_is_no_second_message(pool: Pool) -> None:
    await sound(pool)
    id_ = await pool.fetchval("SELECT recipient_id FROM try LIMIT 1")
    await builders.try_row(pool, id_, 1, "proven")
    assert (await run(pool)).holds


async def test_a_row_that_moved_without_its_books_is_found(pool: Pool) -> None:
    made = await sound(pool)
    await pool.execute(
        "UPDATE recipient SET state = 'x', next_attempt_at = NULL WHERE id = (SELECT min(id) FROM recipient)"
    )
    (check,) = broken(await run(pool))
    assert check.name == "books balance"
    assert check.offenders == (
        f"reminder, lane {made.lane_id}, pending: 4 rows, 5 in the books",
        f"reminder, lane {made.lane_id}, expired: 1 rows, 0 in the books",
    )


async def test_a_counter_that_the_rows_do_not_prove_is_found(pool: Pool) -> None:
    made = await sound(pool)
    await pool.execute("INSERT INTO tally_delta (lane_id, what, n) VALUES ($1, 'T', 1)", made.lane_id)
    await pool.execute(
        "INSERT INTO tally_delta (lane_id, what, code, n) VALUES ($1, 'F', 131026, -1)", made.lane_id
    )
    (check,) = broken(await run(pool))
    assert check.offenders == (
        "reminder, tries: 5 by the rows, 6 counted",
        "reminder, failed with 131026: 2 by the rows, 1 counted",
    )


async def test_rows_and_data_that_do_not_belong_together_are_found(pool: Pool) -> None:
    await sound(pool)
    lost = await pool.fetchval("DELETE FROM recipient_data WHERE line = 3 RETURNING id")
    await pool.execute(
        "INSERT INTO recipient_data VALUES (999, (SELECT campaign_id FROM campaign), '+1', '{}', 7)"
    )
    (check,) = broken(await run(pool))
    assert check.invariant == 5
    assert check.offenders == (f"row {lost}: no data of its campaign with a line number", "data 999: no row")


async def test_imports_that_do_not_add_up_to_what_is_planned_are_found(pool: Pool) -> None:
    await sound(pool)
    await pool.execute(IMPORT, "reminder", "planned 10", "planned 11")
    (check,) = broken(await run(pool))
    assert check.offenders == ("reminder: imports in the journal add 11, planned is 10",)


async def test_one_campaign_is_audited_without_the_others(pool: Pool) -> None:
    await sound(pool)
    other = await builders.campaign(pool, "other")
    await builders.recipients(pool, other, 2)  # no import in the journal
    assert (await run(pool, "reminder")).holds
    assert not (await run(pool, "other")).holds
    assert not (await run(pool)).holds


async def test_windows_are_proved_over_overlapping_batches(pool: Pool) -> None:
    number_id = await builders.number(pool, NUMBER, rate=4)
    await pool.execute(BATCH, number_id, 1, b"c", 4.0, 1_000_000, NOON, [0, 500_000])
    await pool.execute(BATCH, number_id, 1, b"c", 4.0, 1_000_100, NOON, [0, 250_000])
    done = await run(pool)
    (window,) = done.windows
    assert done.holds
    assert (window.number, window.sends, window.worst, window.allowed, window.share) == (NUMBER, 4, 4, 4, 1.0)
    await pool.execute(BATCH, number_id, 1, b"c", 4.0, 1_900_000, NOON, [99_999])
    done = await run(pool)
    (check,) = broken(done)
    assert check.invariant == 3
    assert done.windows[0].breaches == 1
    assert "5 of 4 (rate)" in check.offenders[0]


async def test_the_windows_of_each_number_and_epoch_are_apart(pool: Pool) -> None:
    one, two = await builders.number(pool, NUMBER), await builders.number(pool, "106540352242923")
    for number_id in (one, two):
        await pool.execute(BATCH, number_id, 1, b"c", 2.0, 900, NOON, [0, 1])
    later = NOON.replace(minute=5)
    await pool.execute(BATCH, one, 2, b"c", 2.0, 3, later, [0, 1])
    done = await run(pool)
    assert done.holds
    assert [(w.sends, w.worst) for w in done.windows] == [(4, 2), (2, 2)]


async def test_a_seam_that_holds_too_much_is_found(pool: Pool) -> None:
    number_id = await builders.number(pool, NUMBER)
    await pool.execute(BATCH, number_id, 1, b"c", 2.0, 900, NOON, [0, 1])
    await pool.execute(BATCH, number_id, 2, b"c", 2.0, 3, NOON.replace(microsecond=500_000), [0])
    (check,) = broken(await run(pool))
    assert "3 of 2 (seam)" in check.offenders[0]
