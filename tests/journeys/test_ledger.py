"""A whole run at its rate, counted afterwards: by the provider's ledger, by our tries and by our stamps."""

from tests.support.world import NUMBER, SECOND, most_in, scenario, world

RATES = {NUMBER: 60.0, SECOND: 20.0}
PEOPLE = 1_500
LEAST_USE = 0.75
STRETCH_S = 3.0


async def test_a_run_uses_its_rate_and_never_more_and_asks_once_for_each_row(database_url: str) -> None:
    provider = scenario(latency={"median_ms": 120, "p95_ms": 300})
    async with world(database_url, provider, RATES) as w:
        await w.campaign(people=PEOPLE)
        ended = await (await w.engine("--until-finished", "--linger", "1s", lease="10s")).ended()
        assert ended.code == 0, ended.err

        ledger = await w.prove()
        assert len(ledger) == PEOPLE
        for number, rate in RATES.items():
            stamps = await w.stamps(number)
            assert len(stamps) == sum(1 for entry in ledger if entry["number"] == number)
            assert most_in(stamps, 1_000_000) <= rate
            # At its best: what a busy machine takes from the rest is no fault of the pace, which virtual time judges.
            best = most_in(stamps, round(STRETCH_S * 1e6)) / STRETCH_S
            assert best >= LEAST_USE * rate, f"at most {best:.2f}/s of {rate}/s"
