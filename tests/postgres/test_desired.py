"""What people want, read as a whole."""

from engine.postgres import desired
from engine.postgres.pool import Pool
from tests.support import builders

BUMP = "UPDATE control SET version = version + 1"


async def test_nothing_is_wanted_of_an_empty_database(pool: Pool) -> None:
    found = await desired.read(pool)
    assert (found.numbers, found.campaigns) == ({}, {})
    assert found.version == await desired.version(pool)


async def test_the_version_is_that_of_what_was_read(pool: Pool) -> None:
    before = await desired.version(pool)
    await pool.execute(BUMP)
    assert await desired.version(pool) == before + 1
    assert (await desired.read(pool)).version == before + 1


async def test_a_number_is_read_with_its_pause_and_rate(pool: Pool) -> None:
    number_id = await builders.number(pool, "1", rate=8, limit=20)
    await pool.execute("UPDATE number SET paused_at = now(), paused_by = 'ana', pause_reason = 'lunch'")
    number = (await desired.read(pool)).numbers[number_id]
    assert (number.id, number.rate, number.limit, number.ceiling) == ("1", 8, 20, None)
    assert (number.paused, number.paused_by, number.pause_reason) == (True, "ana", "lunch")


async def test_a_campaign_has_its_numbers_and_the_lanes_that_nothing_holds(pool: Pool) -> None:
    one, two = [await builders.number(pool, id_) for id_ in ("1", "2")]
    made = await builders.campaign(pool, numbers=["2", "1"], state="running", body=["name", "date"])
    held = await builders.lane(pool, made.campaign_id, "CL")
    brazil = await builders.lane(pool, made.campaign_id, "BR")
    await pool.execute("UPDATE lane SET hold = 'x' WHERE lane_id = $1", held)
    await pool.execute("UPDATE lane SET deadline = now() WHERE lane_id = $1", brazil)
    campaign = (await desired.read(pool)).campaigns[made.campaign_id]
    assert campaign.numbers == (one, two)
    assert campaign.lanes == (brazil, made.lane_id)  # the nearest deadline first
    assert campaign.countries == ("BR", "")
    assert campaign.body == ("name", "date")
    assert (campaign.name, campaign.state, campaign.language) == ("reminder", "running", "pt_BR")


async def test_what_ended_long_ago_is_not_read_unless_rows_are_open(pool: Pool) -> None:
    await builders.number(pool, "1")
    over = await builders.campaign(pool, "over", state="finished")
    new = await builders.campaign(pool, "new", state="finished")
    open_ = await builders.campaign(pool, "open", state="cancelled")
    await pool.execute("UPDATE campaign SET finished_at = now() - interval '2 days' WHERE name <> 'new'")
    await pool.execute("UPDATE campaign SET finished_at = now() WHERE name = 'new'")
    await pool.execute("INSERT INTO book (lane_id, state, n) VALUES ($1, 's', 1)", open_.lane_id)
    found = (await desired.read(pool)).campaigns
    assert set(found) == {new.campaign_id, open_.campaign_id}
    assert over.campaign_id not in found
