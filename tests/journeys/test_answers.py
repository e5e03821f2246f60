"""What the provider answers, and what becomes of the rows: nothing lost, nothing asked for twice."""

from __future__ import annotations

from itertools import pairwise

from engine.domain.recipient import State
from tests.support.relay import relay
from tests.support.world import NUMBER, SILENT, World, free_port, scenario, world


async def test_an_ambiguous_answer_is_unknown_until_a_status_tells(database_url: str) -> None:
    endings = {
        "1": "never_answer",
        "2": "close_after_reading",
        "3": "html_502",
        "4": "no_id",
        "5": "half_reply",
    }
    taken = [{"do": do, "accepted": True, "match": {"to_ends_with": n}} for n, do in endings.items()]
    refused = {"do": "html_502", "accepted": False, "match": {"to_ends_with": "6"}}
    async with world(database_url, scenario(*taken, refused, statuses=SILENT), {NUMBER: 40}) as w:
        await w.campaign(people=40)
        engine = await w.engine(request_deadline="3s", lease="10s")
        await w.until_counts(unknown=24, sent=16)
        assert len(await w.prove()) == 40

        for entry in await w.sim.ledger():
            if entry["accepted"]:
                await w.tell(entry, "read")
        await w.until_counts(read=36)
        assert await w.counts() == {State.READ: 36, State.UNKNOWN: 4}
        assert (await w.campaign_state())[0] == "running"  # four rows are open: nobody knows about them
        assert len(await w.prove()) == 40, "a row of unknown outcome was asked for again"
        assert engine.running


async def test_a_storm_of_130429_silences_the_number_and_costs_no_row_anything(database_url: str) -> None:
    storm = {"do": "error", "code": 130429, "http_status": 429, "match": {"first": 6}}
    async with world(database_url, scenario(storm), {NUMBER: 40}) as w:
        await w.campaign(people=60)
        ended = await (await w.engine("--until-finished", "--linger", "1s")).ended()
        assert ended.code == 0, ended.err
        assert await w.ends() == {State.READ: 60}
        ledger = await w.prove()
        assert len(ledger) == 66
        assert max(later - earlier for earlier, later in pairwise(await w.stamps())) >= 1_000_000, (
            "the number did not fall silent"
        )
        assert await w.db.fetchval("SELECT sum(attempts) FROM recipient") == 60
        assert await w.db.fetchval("SELECT sum(tries) FROM recipient") == 66


async def test_a_transient_error_is_tried_again_until_the_attempts_are_spent(database_url: str) -> None:
    sick = {"do": "error", "code": 131000, "match": {"to_ends_with": "07"}}
    once = {"do": "error", "code": 131016, "match": {"first": 5}}
    async with world(database_url, scenario(sick, once), {NUMBER: 40}) as w:
        await w.campaign(people=40, max_attempts=3)
        ended = await (await w.engine("--until-finished", "--linger", "1s")).ended()
        assert ended.code == 0, ended.err
        assert await w.ends() == {State.READ: 39, State.FAILED: 1}
        sick_row = await w.db.fetchrow("SELECT tries, attempts, code FROM recipient WHERE state = 'f'")
        assert sick_row is not None
        assert tuple(sick_row) == (3, 3, 131000)
        assert len(await w.prove()) == 39 + 5 + 3


async def test_an_expired_token_stops_everything_under_it_until_its_file_holds_a_new_one(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        token = w.directory / "token"
        token.write_text(w.environment["TOKEN"])
        await w.db.execute("UPDATE number SET token_ref = $1", f"file:{token}")
        await w.campaign(people=80)
        engine = await w.engine(lease="10s")
        await w.until_requests(20)
        await w.sim.replace(scenario(tokens=["the-new-one"]))
        await w.until_campaign("held")
        _, reason = await w.campaign_state()
        assert reason is not None
        assert reason.startswith("190 ")
        [hold] = (await w.tidegate("hold", "list", "--json")).json
        assert (hold["scope"], hold["key"], hold["state"]) == ("credential", f"file:{token}", "held")

        await w.until(lambda: _at_rest(w), "everything in flight recorded")
        counts = await w.counts()
        assert counts[State.PENDING] + counts[State.READ] == 80, counts
        token.write_text("the-new-one")
        await w.until_campaign("finished")
        await w.until_counts(read=80)
        await w.prove()
        assert engine.running


async def test_a_lifted_hold_lets_the_campaign_go_on(database_url: str) -> None:
    restricted = {"do": "error", "code": 131048, "match": {"every": 16, "first": 1}}
    async with world(database_url, scenario(restricted), {NUMBER: 20}) as w:
        await w.campaign(people=40)
        engine = await w.engine("--until-finished", "--linger", "1s")
        await w.until_campaign("held")
        [hold] = (await w.tidegate("hold", "list", "--json")).json
        assert (hold["scope"], hold["key"], hold["code"]) == ("number", NUMBER, 131048)
        lifted = await w.tidegate("hold", "lift", str(hold["breaker_id"]))
        assert lifted.code == 0, lifted.err
        assert (await engine.ended()).code == 0
        assert await w.ends() == {State.READ: 40}
        await w.prove()


async def test_a_provider_that_refuses_connections_is_waited_out(database_url: str) -> None:
    port = free_port()
    async with (
        relay(port) as way,
        world(database_url, scenario(), {NUMBER: 40}, api_url=f"http://127.0.0.1:{port}/v25.0") as w,
    ):
        way.target = int(w.sim.base.rpartition(":")[2])
        await w.campaign(people=60)
        engine = await w.engine("--until-finished", "--linger", "1s")

        async def refused_often() -> bool:
            return bool(await w.db.fetchval("SELECT count(*) >= 8 FROM try WHERE outcome = 'not_sent'"))

        await w.until(refused_often, "eight connections refused")
        assert await w.requests() == 0
        await way.open()
        ended = await engine.ended()
        assert ended.code == 0, ended.err
        assert await w.ends() == {State.READ: 60}
        assert await w.db.fetchval("SELECT sum(attempts) FROM recipient") == 60
        assert len(await w.prove()) == 60


async def _at_rest(w: World) -> bool:
    counts = await w.counts()
    return not any(counts[s] for s in (State.CLAIMED, State.SENDING, State.SENT, State.DELIVERED))
