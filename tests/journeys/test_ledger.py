"""A whole run at its rate, counted afterwards: by the provider's ledger, by our tries and by our stamps."""

from tests.support.world import NUMBER, SECOND, WINDOW_MS, most_in, scenario, world

RATES = {NUMBER: 60.0, SECOND: 20.0}
PEOPLE = 1_500
LEAST_USE = 0.98


async def test_a_run_uses_its_rate_and_never_more_and_asks_once_for_each_row(database_url: str) -> None:
    provider = scenario(latency={"median_ms": 120, "p95_ms": 300})
    async with world(database_url, provider, RATES, window_ms=WINDOW_MS) as w:
        await w.campaign(people=PEOPLE)
        ended = await (await w.engine("--until-finished", "--linger", "1s", lease="10s")).ended()
        assert ended.code == 0, ended.err

        ledger = await w.prove()
        refused = [entry for entry in ledger if entry["code"]]
        assert len(ledger) - len(refused) == PEOPLE
        # None, but where this machine was too busy to bring in time what had left in time.
        assert len(refused) <= len(await w.late(ledger))
        for number, rate in RATES.items():
            stamps = await w.stamps(number)
            assert len(stamps) == sum(1 for entry in ledger if entry["number"] == number)
            assert most_in(stamps, 1_000_000) <= rate
            used = steady_rate(stamps)
            assert used >= LEAST_USE * rate, f"{used:.2f}/s of {rate}/s"


def steady_rate(stamps: list[int]) -> float:
    """Sends per second between the 20th and the 80th percentile of the run."""
    low, high = len(stamps) // 5, len(stamps) * 4 // 5
    return (high - low) / (stamps[high] - stamps[low]) * 1e6
