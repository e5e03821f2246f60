"""`tidegate run --no-ui --until-finished`: how it ends, and with which exit code."""

import signal

from engine.domain.recipient import State
from tests.support.world import NUMBER, World, scenario, world

UNSTARTED = "SELECT count(*) FROM recipient WHERE state IN ('c', 's')"
HELD_LEASES = "SELECT count(*) FROM lease WHERE released_at IS NULL"
ANSWERED = "SELECT count(*) FROM try WHERE outcome = 'accepted'"


async def test_a_run_with_everything_read_ends_with_0_and_its_books(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        await w.campaign(people=60)
        ended = await (await w.engine("--until-finished", "--linger", "2s")).ended()
        assert ended.code == 0, ended.err
        assert "reminder: finished; planned 60" in ended.out
        assert "the books balance" in ended.out
        assert await w.ends() == {State.READ: 60}
        await w.prove()


async def test_more_failures_than_allowed_end_with_3(database_url: str) -> None:
    nobody = {"do": "error", "code": 131026, "match": {"to_ends_with": "7"}}
    async with world(database_url, scenario(nobody), {NUMBER: 40}) as w:
        await w.campaign(people=30, max_failed=0.05)
        ended = await (await w.engine("--until-finished", "--linger", "1s")).ended()
        assert ended.code == 3, ended.err
        assert "10.0% failed, allowed 5.0%" in ended.out
        assert await w.ends() == {State.READ: 27, State.FAILED: 3}
        assert await w.db.fetchval("SELECT count(*) FROM recipient WHERE code = 131026") == 3
        await w.prove()


async def test_only_holds_for_the_time_of_patience_end_with_4(database_url: str) -> None:
    expired = {"do": "error", "code": 190, "http_status": 401}
    async with world(database_url, scenario(expired), {NUMBER: 40}) as w:
        await w.campaign(people=30)
        ended = await (await w.engine("--until-finished", "--patience", "1s")).ended()
        assert ended.code == 4, ended.err
        assert "190 The access token expired" in ended.out
        assert await w.counts() == {State.PENDING: 30}
        await w.prove()


async def test_sigterm_records_what_is_in_flight_gives_the_rest_back_and_ends_with_143(
    database_url: str,
) -> None:
    async with world(database_url, scenario(latency={"fixed_ms": 1500}), {NUMBER: 40}) as w:
        await w.campaign(people=400)
        engine = await w.engine("--until-finished")
        await w.until_requests(45)
        engine.signal(signal.SIGTERM)
        ended = await engine.ended()
        assert ended.code == 143, ended.err
        requests = await w.requests()
        assert requests < 400
        assert await w.db.fetchval(ANSWERED) == requests
        await _nothing_is_left_in_hand(w)
        await w.prove()


async def test_a_drained_run_leaves_its_window_to_the_next_owner_who_need_not_wait(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        await w.campaign(people=120)
        for upto in (25, 55, 80):
            engine = await w.engine("--until-finished", "--linger", "1s")
            await w.until_requests(upto)
            engine.signal(signal.SIGTERM)
            assert (await engine.ended()).code == 143
            await _nothing_is_left_in_hand(w)
        assert (await (await w.engine("--until-finished", "--linger", "1s")).ended()).code == 0
        assert await w.ends() == {State.READ: 120}
        assert len(await w.prove()) == 120


async def _nothing_is_left_in_hand(w: World) -> None:
    assert await w.db.fetchval(UNSTARTED) == 0, await w.counts()
    assert await w.db.fetchval(HELD_LEASES) == 0
