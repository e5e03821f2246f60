"""A whole run at its rate, counted afterwards: by the provider's ledger, by our tries and by our stamps."""

from tests.support.world import NUMBER, SECOND, WINDOW_MS, scenario, world

RATES = {NUMBER: 60.0, SECOND: 20.0}
PEOPLE = 1_500
LEAST_USE = 0.98


async def test_a_run_uses_its_rate_and_never_more_and_asks_once_for_each_row(database_url: str) -> None:
    provider = scenario(latency={"median_ms": 120, "p95_ms": 300})
    async with world(database_url, provider, RATES) as w:
        await w.campaign(people=PEOPLE)
        ended = await (await w.engine("--until-finished", "--linger", "1s", lease="10s")).ended()
        assert ended.code == 0, ended.err

        ledger = await w.prove()
        assert len(ledger) == PEOPLE
        assert {entry["code"] for entry in ledger} == {0}, "the provider refused something"
        summary = await w.sim.summary(WINDOW_MS)
        for number, rate in RATES.items():
            assert summary["numbers"][number]["most_requests"] <= rate
            stamps = await w.stamps(number)
            assert len(stamps) == summary["numbers"][number]["requests"]
            assert most_in_a_second(stamps) <= rate
            used = steady_rate(stamps)
            assert used >= LEAST_USE * rate, f"{used:.2f}/s of {rate}/s"


def most_in_a_second(stamps: list[int]) -> int:
    """The most in any half-open second (t - 1 s, t], in microseconds."""
    most = first = 0
    for last, at in enumerate(stamps):
        while stamps[first] <= at - 1_000_000:
            first += 1
        most = max(most, last - first + 1)
    return most


def steady_rate(stamps: list[int]) -> float:
    """Sends per second between the 20th and the 80th percentile of the run."""
    low, high = len(stamps) // 5, len(stamps) * 4 // 5
    return (high - low) / (stamps[high] - stamps[low]) * 1e6
