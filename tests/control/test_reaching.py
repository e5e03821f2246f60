"""An account stops before it has reached more people in a day than Meta allows, and goes on when there is room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import clock
from engine.commands import Commands, Refused
from engine.control.reaching import Reach, margin
from engine.postgres import breakers, reach
from engine.postgres.pool import Pool
from tests.support import builders, owned

NUMBER = "106540352242922"
CONTACTS = """
INSERT INTO contact SELECT 'WABA1', '+4917' || n, clock_timestamp() - make_interval(secs => $2 - n)
  FROM generate_series(1, $1) AS n
"""
DAY = 86_400


@pytest.fixture
async def commands(pool: Pool) -> Commands:
    await builders.number(pool, NUMBER, rate=8)
    return Commands(pool, author="ana", origin="cli")


async def waits(pool: Pool) -> list[tuple[str, str, str]]:
    return [(b.scope.value, b.key, b.state) for b in await breakers.open_breakers(pool)]


async def test_an_account_waits_until_so_many_people_count_no_more(pool: Pool, commands: Commands) -> None:
    await commands.limit_account("WABA1", 100)
    await pool.execute(CONTACTS, 95, 3600)
    await Reach(pool).guard()
    [stop] = await breakers.open_breakers(pool)
    assert (stop.scope.value, stop.key, stop.state) == ("account", "WABA1", "waiting")
    assert "has reached 95 people within 24 h; Meta allows it 100" in (stop.reason or "")
    assert stop.until is not None
    # 8/s stop 6 people early: 94 may stay: the oldest two must go
    assert abs((stop.until - clock.now()).total_seconds() - (DAY - 3600 + 2)) < 60


async def test_an_account_with_room_or_without_a_limit_goes_on(pool: Pool, commands: Commands) -> None:
    await pool.execute(CONTACTS, 500, 3600)
    await Reach(pool).guard()
    await commands.limit_account("WABA1", 1_000)
    await Reach(pool).guard()
    assert await waits(pool) == []


async def test_people_of_the_day_before_count_no_more_and_are_forgotten(
    pool: Pool, commands: Commands
) -> None:
    await commands.limit_account("WABA1", 100)
    await pool.execute(CONTACTS, 200, DAY + 3600)
    await pool.execute(CONTACTS.replace("+4917", "+4918"), 10, 3600)
    await Reach(pool).guard()
    assert await waits(pool) == []
    assert await reach.forget(pool) == 200
    assert await reach.reached(pool, "WABA1") == 10


async def test_marked_people_are_counted_once_each_and_only_where_there_is_a_limit(
    pool: Pool, commands: Commands
) -> None:
    permission = await owned.lease(pool, 1)
    assert permission is not None
    one, other = [await owned.running(pool, name, number=NUMBER) for name in ("one", "two")]
    await owned.sending(pool, permission, one, 3)
    assert await reach.reached(pool, "WABA1") == 0
    await pool.execute(
        "UPDATE recipient SET moved_at = moved_at - interval '1 minute', state = 't', in_flight = NULL"
    )
    await pool.execute("INSERT INTO account VALUES ('WABA1', 100)")
    await owned.sending(pool, permission, other, 5)  # three of them are the same people
    assert await reach.reached(pool, "WABA1") == 5


async def test_a_new_limit_counts_the_day_before_it(pool: Pool, commands: Commands) -> None:
    made = await builders.campaign(pool, numbers=[NUMBER])
    ids = await builders.recipients(pool, made, 4)
    for row in ids[:3]:
        await builders.try_row(pool, row, 1, "accepted")
    await builders.try_row(pool, ids[3], 1, "refused", code=131026)
    done = await commands.limit_account("WABA1", 1_000)
    assert done.text == "Account WABA1 may reach 1,000 people within 24 h. It has reached 3."
    assert (await commands.limit_account("WABA1", 1_000)).already
    [shown] = await commands.list_accounts()
    assert shown.as_json() == {
        "account": "WABA1", "numbers": 1, "rate": 8.0, "messaging_limit": 1000, "reached_24h": 3
    }  # fmt: skip
    await commands.limit_account("WABA1", None)
    assert (await commands.list_accounts())[0].limit is None


@pytest.mark.parametrize(("account", "limit"), [("WABA9", 10), ("WABA1", 0), ("WABA1", -5)])
async def test_what_cannot_be_is_refused(commands: Commands, account: str, limit: int) -> None:
    with pytest.raises(Refused):
        await commands.limit_account(account, limit)


async def test_an_account_far_from_its_limit_is_not_counted_again_at_each_look(
    pool: Pool, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = 0
    real = reach.reached

    async def counting(db: Pool, account: str) -> int:
        nonlocal counted
        counted += 1
        return await real(db, account)

    monkeypatch.setattr(reach, "reached", counting)
    await commands.limit_account("WABA1", 100_000)
    guard = Reach(pool)
    for _ in range(5):
        await guard.guard()
    assert counted == 1


@given(limit=st.integers(1, 10**6), rate=st.floats(0, 1000))
def test_the_margin_leaves_at_least_half_of_the_limit(limit: int, rate: float) -> None:
    assert 0 <= margin(limit, rate) <= limit / 2
