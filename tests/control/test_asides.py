"""What stands between an import and its sending: many equal numbers, and other spellings of a number."""

import asyncio
from pathlib import Path

import pytest

from engine.commands import Commands, Refused
from engine.control import audit
from engine.domain.recipient import State
from engine.intake.importer import import_audience
from engine.postgres import books, desired
from engine.postgres.campaigns import Draft
from engine.postgres.pool import Pool

NUMBER = "106540352242922"
TWINS = ["+5511988880001", "+551188880001", "+5511988880002", "+551188880002", "+351912345678"]
ASIDE = "SELECT r.id FROM recipient r JOIN lane l USING (lane_id) WHERE l.aside = 'twins' ORDER BY 1"


@pytest.fixture
async def commands(pool: Pool) -> Commands:
    made = Commands(pool, author="ana", origin="cli")
    await made.add_number(NUMBER, display="+5511988880009", account="W", token="env:T", limit=80)
    await made.create_campaign(Draft("reminder", (NUMBER,), "reminder_v2", "pt_BR"))
    return made


async def bring(pool: Pool, directory: Path, phones: list[str]) -> None:
    path = directory / "list.csv"
    path.write_text("\n".join(["phone", *phones]), encoding="utf-8")
    await import_audience(pool, path, campaign="reminder", author="ana")


async def pending_in_open_lanes(pool: Pool) -> int:
    [one] = (await desired.read(pool)).campaigns.values()
    counts = await books.balance_by_lane(pool)
    return sum(counts.get((lane, State.PENDING.value), 0) for lane in one.lanes)


async def test_many_equal_numbers_block_the_start_until_a_person_confirms(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await bring(pool, tmp_path, ["+5511988880001"] * 30)
    for _ in range(2):
        with pytest.raises(Refused, match=r"in list\.csv one number stands in 30 of 30 lines.*--confirm"):
            await commands.start_campaign("reminder")
    assert (await commands.show_campaign("reminder")).campaign.state == "draft"
    assert (await commands.start_campaign("reminder", confirm=True)).after == "running"
    assert await pool.fetchval("SELECT confirmed_by FROM audience_import") == "ana"
    assert (await commands.start_campaign("reminder")).already


async def test_a_confirmation_does_not_reach_a_later_file(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="has no recipients"):
        await commands.start_campaign("reminder", confirm=True)
    await bring(pool, tmp_path, ["+5511988880001"] * 30)
    with pytest.raises(Refused, match="30 of 30"):
        await commands.start_campaign("reminder")


async def test_two_confirmed_starts_at_once_are_one(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    await bring(pool, tmp_path, ["+5511988880001"] * 30)
    done = await asyncio.gather(*(commands.start_campaign("reminder", confirm=True) for _ in range(2)))
    assert sorted(one.already for one in done) == [False, True]


async def test_the_start_says_what_is_kept_aside(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    await bring(pool, tmp_path, TWINS)
    done = await commands.start_campaign("reminder")
    assert "2 rows kept aside" in done.warnings[0]
    assert "tidegate rows release --campaign reminder" in done.warnings[0]


async def test_a_release_moves_the_rows_and_the_books_to_where_they_belong(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await bring(pool, tmp_path, TWINS)
    assert await pending_in_open_lanes(pool) == 3
    done = await commands.release_rows("reminder")
    assert "2 rows of campaign reminder released" in done.text
    assert await pending_in_open_lanes(pool) == 5
    while await books.fold(pool):
        pass
    assert (await audit.run(pool)).holds
    assert (await commands.release_rows("reminder")).already


async def test_one_row_can_be_released_and_the_rest_discarded(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await bring(pool, tmp_path, TWINS)
    first, second = [row["id"] for row in await pool.fetch(ASIDE)]
    assert "1 still kept aside" in (await commands.release_rows("reminder", [first])).text
    assert (await commands.release_rows("reminder", [first])).already
    assert "cancelled; 0 still kept aside" in (await commands.discard_rows("reminder")).text
    states = {row["id"]: row["state"] for row in await pool.fetch("SELECT id, state FROM recipient")}
    assert (states[first], states[second]) == (b"p", b"k")
    counts = (await commands.show_campaign("reminder")).counts
    assert (counts[State.PENDING], counts[State.CANCELLED]) == (4, 1)
    assert (await audit.run(pool)).holds


async def test_a_cancelled_campaign_leaves_nothing_aside(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await bring(pool, tmp_path, TWINS)
    await commands.cancel_campaign("reminder")
    assert await pool.fetchval("SELECT count(*) FROM recipient WHERE state <> 'k'") == 0
    with pytest.raises(Refused, match="is cancelled: nothing of it waits"):
        await commands.release_rows("reminder")


async def test_later_spellings_stay_aside_after_a_release(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await bring(pool, tmp_path, TWINS)
    await commands.release_rows("reminder")
    await bring(pool, tmp_path, ["+5511988880003", "+551188880003"])
    assert len(await pool.fetch(ASIDE)) == 1


async def test_what_an_import_checked_rows_against_can_never_change(pool: Pool, commands: Commands) -> None:
    with pytest.raises(Exception, match="content of campaign reminder was frozen when it was created"):
        await pool.execute("""UPDATE campaign SET content = '{"body": ["name"]}'""")
