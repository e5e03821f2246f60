"""A grant that falls, vanishes and returns, for real: rows only wait, and nothing is spent or lost."""

from __future__ import annotations

from typing import Any

from engine.domain.recipient import State
from tests.support.world import NUMBER, WINDOW_MS, World, scenario, world

PEOPLE = 180
RATE = 40


async def test_a_grant_that_falls_vanishes_and_returns_costs_no_row_anything(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=PEOPLE)
        engine = await w.engine("--until-finished", "--linger", "1s", lease="10s")
        await w.until_requests(40)
        await w.sim.replace(scenario(numbers=_granted(0)))

        async def refused_often() -> bool:
            return bool(await w.db.fetchval("SELECT count(*) >= 8 FROM try WHERE outcome = 'refused'"))

        await w.until(refused_often, "eight refusals")
        counts = await w.counts()
        assert counts[State.FAILED] == 0
        assert (await w.campaign_state())[0] == "running", "throughput refusals only slow a run"
        await w.until(lambda: _ceiling_kept(w), "what was found kept for the next owner")

        await w.sim.replace(scenario(numbers=_granted(12)))
        await w.until_requests(await w.requests() + 30)
        await w.sim.replace(scenario())
        ended = await engine.ended()
        assert ended.code == 0, ended.err
        assert await w.ends() == {State.READ: PEOPLE}
        ledger = await w.prove()
        throttled = sum(entry["code"] == 130429 for entry in ledger)
        assert len(ledger) == PEOPLE + throttled
        assert throttled < PEOPLE / 4, "it went on asking at the old rate"
        assert await w.db.fetchval("SELECT sum(attempts) FROM recipient") == PEOPLE
        assert await w.db.fetchval("SELECT sum(tries) FROM recipient") == len(ledger)
        shown = (await w.tidegate("campaign", "show", "reminder", "--json")).json
        assert [(r["code"], r["count"]) for r in shown["refusals"]] == [(130429, throttled)]
        assert shown["errors"] == []


async def _ceiling_kept(w: World) -> bool:
    return bool(await w.db.fetchval("SELECT ceiling < $1 FROM number", RATE))


def _granted(limit: int) -> dict[str, Any]:
    return {NUMBER: {"limit": limit, "window_ms": WINDOW_MS}}


async def test_a_spent_try_budget_holds_the_run_until_a_person_raises_it_by_resuming(
    database_url: str,
) -> None:
    # Every second person is refused again and again: never many in a row, but each a request.
    sick = [{"do": "error", "code": 131016, "match": {"to_ends_with": str(n)}} for n in (1, 3, 5, 7, 9)]
    async with world(database_url, scenario(*sick), {NUMBER: RATE}) as w:
        await w.campaign(people=40, try_budget=50)
        await w.engine(lease="10s")
        await w.until_campaign("held")
        _, reason = await w.campaign_state()
        assert reason == "the try budget of 50 is spent. Look at what was refused; resuming raises it."
        await w.until_counts(read=20, pending=20)
        tries = await w.requests()
        assert 50 <= tries < 50 + RATE, "it went on long after its budget was spent"
        shown = (await w.tidegate("campaign", "show", "reminder", "--json")).json
        [refusal] = shown["refusals"]
        assert (refusal["code"], refusal["count"], shown["tries"]) == (131016, tries - 20, tries)
        assert refusal["example"] is not None
        assert refusal["advice"]

        await w.sim.replace(scenario())
        resumed = await w.tidegate("campaign", "resume", "reminder")
        assert resumed.code == 0, resumed.err
        assert f"{tries + 60:,} now" in resumed.out + resumed.err
        await w.until_campaign("finished")
        await w.until_counts(read=40)
        await w.prove()
