"""What alerts ask of the database: due work, last statuses, whoever holds a snapshot, the share that was delivered."""

from engine.domain.recipient import State
from engine.postgres import figures
from engine.postgres.pool import Pool, connect
from tests.support import builders
from tests.support.explain import explain

NUMBER = "106540352242922"
OLDER = "UPDATE try SET recorded_at = now() - make_interval(secs => $1)"
LATER = "UPDATE recipient SET next_attempt_at = now() + interval '1 hour' WHERE id = ANY($1)"


async def test_a_running_campaign_is_due_while_a_row_of_it_may_be_sent_now(pool: Pool) -> None:
    number_id = await builders.number(pool, NUMBER)
    running = await builders.campaign(pool, "running", numbers=[NUMBER], state="running")
    paused = await builders.campaign(pool, "paused", numbers=[NUMBER], state="paused")
    waiting = await builders.campaign(pool, "waiting", numbers=[NUMBER], state="running")
    await builders.recipients(pool, running, 2)
    await builders.recipients(pool, running, 2, state=State.SENDING, number_id=number_id)
    await builders.recipients(pool, paused, 2)
    await pool.execute(LATER, await builders.recipients(pool, waiting, 2))
    assert await figures.due(pool) == {running.lane_id: running.campaign_id}
    await pool.execute("UPDATE lane SET hold = 'country' WHERE campaign_id = $1", running.campaign_id)
    assert await figures.due(pool) == {}


async def test_rows_in_flight_are_counted_by_state_and_age(pool: Pool) -> None:
    number_id = await builders.number(pool, NUMBER)
    made = await builders.campaign(pool, numbers=[NUMBER], state="running")
    for state, n, age in (
        (State.CLAIMED, 4, 0), (State.SENDING, 3, 100), (State.SENDING, 2, 130), (State.SENDING, 1, 400),
        (State.UNKNOWN, 5, 900),
    ):  # fmt: skip
        await builders.recipients(pool, made, n, state=state, number_id=number_id, age=age)
    rows = (await figures.in_flight(pool))[number_id]
    assert (rows.claimed, rows.fresh, rows.to_5m, rows.to_30m, rows.over_30m, rows.unknown) == (
        4,
        3,
        2,
        1,
        0,
        5,
    )
    assert rows.stuck == 3
    assert 399 < rows.oldest < 460


async def test_the_oldest_snapshot_that_somebody_else_holds_open_is_found_with_its_pid(
    pool: Pool, database_url: str
) -> None:
    assert await figures.oldest_transaction(pool) is None
    async with connect(database_url) as other:
        pid = await other.fetchval("SELECT pg_backend_pid()")
        async with other.transaction(isolation="repeatable_read"):
            await other.execute("SET LOCAL application_name = 'a report'")
            await other.fetchval("SELECT count(*) FROM campaign")
            held = await figures.oldest_transaction(pool)
        assert held is not None
        assert (held.pid, held.application) == (pid, "a report")
        assert 0 <= held.age_s < 60
        assert await figures.oldest_transaction(pool) is None


async def test_the_delivered_share_is_of_sends_of_that_age_and_of_each_campaign_apart(pool: Pool) -> None:
    await builders.number(pool, NUMBER)
    for name, states in (("good", (State.DELIVERED, State.READ)), ("bad", (State.SENT, State.FAILED))):
        made = await builders.campaign(pool, name, numbers=[NUMBER], state="running")
        for state in states:
            for row in await builders.recipients(pool, made, 10, state=state):
                await builders.try_row(pool, row, 1, "accepted", wamid=f"wamid.{row}")
    await pool.execute(OLDER, 1000)
    shares = await figures.delivered(pool, 900.0)
    assert sorted(shares.values()) == [(20, 0), (20, 20)]
    assert await figures.delivered(pool, 1100.0) == {}
    assert await figures.delivered(pool, 300.0) == {}


async def test_the_sample_of_sends_is_looked_up_by_key_however_many_rows_there_are(pool: Pool) -> None:
    await builders.number(pool, NUMBER)
    made = await builders.campaign(pool, numbers=[NUMBER], state="running")
    rows = await builders.recipients(pool, made, 20_000, state=State.DELIVERED)
    async with pool.acquire() as db:
        await db.execute(
            "INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome) "
            "SELECT id, 1, 1, 1, now(), 'accepted' FROM unnest($1::bigint[]) AS id",
            rows,
        )
        await db.execute(OLDER, 1000)
        await db.execute("VACUUM ANALYZE recipient, try, lane")
        for generic in (False, True):
            plan = await explain(db, figures.DELIVERED, 900.0, generic=generic)
            assert "recipient_pkey" in plan.indexes
            assert "recipient" not in plan.scanned_whole
            assert plan.rows("recipient") <= 2000


async def test_due_campaigns_are_found_without_reading_their_rows(pool: Pool) -> None:
    await builders.number(pool, NUMBER)
    made = await builders.campaign(pool, numbers=[NUMBER], state="running")
    await builders.recipients(pool, made, 20_000)
    async with pool.acquire() as db:
        await db.execute("VACUUM ANALYZE recipient, lane, campaign")
        plan = await explain(db, figures.DUE)
        assert plan.rows("recipient") <= 100


async def test_the_last_status_of_a_number_is_told_by_metas_id(pool: Pool) -> None:
    await pool.execute("INSERT INTO webhook_seen VALUES ($1, now() - interval '3 minutes')", NUMBER)
    assert set(await figures.last_statuses(pool)) == {NUMBER}
