"""The follower sees what people want, soon, and survives a database that is away."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from engine.control import follower
from engine.control.follower import Follower, served
from engine.postgres import desired
from engine.postgres.desired import Desired
from engine.postgres.pool import Pool
from tests.support import builders

BUMP = "UPDATE control SET version = version + 1"


@asynccontextmanager
async def following(pool: Pool) -> AsyncIterator[tuple[Follower, "asyncio.Queue[Desired]"]]:
    """A follower at work and the news that it gives."""
    news: asyncio.Queue[Desired] = asyncio.Queue()
    made = Follower(pool, news.put_nowait)
    await made.refresh()
    task = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(60):
            yield made, news
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


async def next_that(news: "asyncio.Queue[Desired]", version: int) -> Desired:
    while (found := await news.get()).version < version:
        pass
    return found


async def test_an_act_is_seen(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "REREAD", 1e9)  # so that only the version can tell
    await builders.number(pool, "1")
    async with following(pool) as (_, news):
        first = await news.get()
        await pool.execute("UPDATE number SET rate = 3")
        await pool.execute(BUMP)
        found = await next_that(news, first.version + 1)
        assert [n.rate for n in found.numbers.values()] == [3]


async def test_an_import_is_seen_without_an_act(pool: Pool) -> None:
    number_id = await builders.number(pool, "1")
    made = await builders.campaign(pool, numbers=["1"], state="running")
    async with following(pool) as (at_work, news):
        lane = await builders.lane(pool, made.campaign_id, "BR")
        while lane not in at_work.running(number_id)[0].lanes:
            await news.get()


async def test_a_database_that_is_away_is_waited_out(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    away, asked = True, asyncio.Event()
    version = desired.version

    async def answer(db: Pool) -> int:
        asked.set()
        if away:
            raise ConnectionRefusedError
        return await version(db)

    monkeypatch.setattr(follower, "POLL", 0.0)
    monkeypatch.setattr(desired, "version", answer)
    made = Follower(pool, lambda _: None)
    task = asyncio.create_task(made.run())
    async with asyncio.timeout(60):
        await asked.wait()
        await until(lambda: not made.healthy)
        away = False
        await until(lambda: made.healthy)
    task.cancel()
    assert made.desired.version >= 0


async def test_a_campaign_stopped_from_here_is_not_served_any_more(pool: Pool) -> None:
    number_id = await builders.number(pool, "1")
    stopped = await builders.campaign(pool, "a", numbers=["1"], state="running")
    other = await builders.campaign(pool, "b", numbers=["1"], state="running")
    at_work = Follower(pool, lambda _: None)
    await at_work.refresh()
    at_work.forget(stopped.campaign_id)
    assert [c.campaign_id for c in at_work.running(number_id)] == [other.campaign_id]
    assert at_work.running(424242) == []


async def test_only_running_campaigns_are_served_by_their_numbers(pool: Pool) -> None:
    one, two = [await builders.number(pool, id_) for id_ in ("1", "2")]
    runs = await builders.campaign(pool, "runs", numbers=["1", "2"], state="running")
    for state in ("draft", "scheduled", "paused", "held", "cancelled"):
        await builders.campaign(pool, state, numbers=["1"], state=state)
    found = served(await desired.read(pool))
    assert {n: [c.campaign_id for c in cs] for n, cs in found.items()} == {
        one: [runs.campaign_id],
        two: [runs.campaign_id],
    }


async def test_a_country_s_lanes_and_a_template_s_campaigns_are_left_out_while_stopped(pool: Pool) -> None:
    number_id = await builders.number(pool, "1")
    made = await builders.campaign(pool, numbers=["1"], state="running", country="BR")
    chile = await builders.lane(pool, made.campaign_id, "CL")
    await pool.execute("INSERT INTO breaker (scope, key, state) VALUES ('country', 'WABA1/BR', 'held')")
    [campaign] = served(await desired.read(pool))[number_id]
    assert (campaign.lanes, campaign.countries) == ((chile,), ("CL",))
    await pool.execute(
        "INSERT INTO breaker (scope, key, state) VALUES ('template', 'WABA1/reminder_v2/pt_BR', 'held')"
    )
    assert served(await desired.read(pool)) == {}


async def test_a_number_that_was_added_while_reading_waits_for_the_next_look(pool: Pool) -> None:
    await builders.number(pool, "1")
    await builders.campaign(pool, numbers=["1"], state="running")
    found = await desired.read(pool)
    assert served(replace(found, numbers={})) == {}
