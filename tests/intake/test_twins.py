"""Other spellings of a number that is there, and files with many equal numbers: kept, but not sent by themselves."""

import asyncio
import json
from pathlib import Path

import pytest

from engine.intake.doubt import doubt
from engine.intake.importer import ImportRefused, import_audience
from engine.intake.report import Report
from engine.postgres import desired
from engine.postgres.pool import Pool

CAMPAIGN = """
INSERT INTO campaign (name, random_id, state, template, language) VALUES ('reminder', 'r', $1, 't', 'pt_BR')
"""

ROWS = """
SELECT d.line, d.phone, l.aside, l.hold, r.state
  FROM recipient r JOIN recipient_data d USING (id) JOIN lane l USING (lane_id) ORDER BY r.id
"""

NEW, OLD = "+5511988880001", "+551188880001"

PAIRS: list[tuple[str, list[str], list[int]]] = [
    ("Brazil, the ninth digit first", [NEW, OLD], [3]),
    ("Brazil, the ninth digit last", [OLD, NEW], [3]),
    ("Brazil, each spelling twice", [NEW, OLD, NEW, OLD], [3]),
    ("Mexico", ["+525512345678", "+5215512345678"], [3]),
    ("Argentina", ["+541123456789", "+5491123456789"], [3]),
    ("landlines with one digit more", ["+551133334444", "+5511933334444"], []),
    ("the same digits in two areas", ["+5511988880001", "+552188880001"], []),
    ("one spelling alone", [OLD], []),
    ("people of a country without twins", ["+351912345678", "+351212345678"], []),
]


async def campaign(pool: Pool, state: str = "draft") -> None:
    await pool.execute(CAMPAIGN, state)


async def bring(pool: Pool, directory: Path, phones: list[str], **wishes: object) -> Report:
    path = directory / "audience.csv"
    path.write_text("\n".join(["phone", *phones]), encoding="utf-8")
    settings: dict[str, object] = {"campaign": "reminder", "author": "ana"} | wishes
    return await import_audience(pool, path, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("phones", "aside"), [pair[1:] for pair in PAIRS], ids=[pair[0] for pair in PAIRS])
async def test_the_second_spelling_of_a_number_is_kept_aside(
    pool: Pool, tmp_path: Path, phones: list[str], aside: list[int]
) -> None:
    await campaign(pool)
    report = await bring(pool, tmp_path, phones)
    kept = await pool.fetch(ROWS)
    assert [row["line"] for row in kept if row["aside"] == "twins"] == aside
    assert all(row["hold"] == ("twins" if row["aside"] else None) for row in kept)
    assert {row["state"] for row in kept} == {b"p"}
    assert report.taken == len(kept)
    told = json.loads(report.json())
    assert told.get("aside", 0) == len(aside)
    assert told.get("twins", []) == [{"line": line, "of_line": 2} for line in aside]


async def test_a_spelling_of_somebody_who_is_in_the_campaign_already_is_kept_aside(
    pool: Pool, tmp_path: Path
) -> None:
    await campaign(pool)
    await bring(pool, tmp_path, [NEW])
    report = await bring(pool, tmp_path, [OLD, "+5511988880002"])
    assert json.loads(report.json())["twins"] == [{"line": 2, "of_line": None}]
    again = await bring(pool, tmp_path, [OLD, "+5511988880002"])
    assert (again.taken, again.already, json.loads(again.json()).get("aside")) == (0, 2, None)


async def test_what_is_kept_aside_is_planned_and_booked_but_no_lane_that_is_open_holds_it(
    pool: Pool, tmp_path: Path
) -> None:
    await campaign(pool, "running")
    await bring(pool, tmp_path, [NEW, OLD])
    assert await pool.fetchval("SELECT planned FROM campaign") == 2
    assert await pool.fetchval("SELECT sum(n) FROM book_delta WHERE t = 'p'") == 2
    [one] = (await desired.read(pool)).campaigns.values()
    aside = await pool.fetchval("SELECT lane_id FROM lane WHERE aside = 'twins'")
    assert len(one.lanes) == 1
    assert aside not in one.lanes


async def test_the_database_refuses_to_open_a_lane_aside(pool: Pool, tmp_path: Path) -> None:
    await campaign(pool)
    await bring(pool, tmp_path, [NEW, OLD])
    with pytest.raises(Exception, match="lane_aside_is_held"):
        await pool.execute("UPDATE lane SET hold = NULL")


async def test_two_imports_at_once_of_two_spellings_keep_the_later_one_aside(
    pool: Pool, tmp_path: Path
) -> None:
    await campaign(pool)
    directories = [tmp_path / name for name in ("one", "two")]
    for directory in directories:
        directory.mkdir()
    await asyncio.gather(bring(pool, directories[0], [NEW]), bring(pool, directories[1], [OLD]))
    assert sorted(row["aside"] for row in await pool.fetch(ROWS)) == ["", "twins"]


@pytest.mark.parametrize(
    ("most", "folded", "usable", "why"),
    [
        (1, 0, 10, None),
        (9, 8, 1_000, None),
        (10, 9, 1_000, "one number stands in 10 of 1,000 lines"),
        (3, 50, 1_000, None),
        (2, 50_000, 1_000_000, None),
        (2, 201, 1_000, "201 of 1,000 lines repeat a number"),
        (3, 9, 20, None),
    ],
)
def test_a_few_repeats_are_a_list_and_many_are_a_doubt(
    most: int, folded: int, usable: int, why: str | None
) -> None:
    found = doubt(most, folded, usable)
    assert found is None if why is None else found is not None and found.startswith(why)


async def test_many_equal_numbers_are_kept_as_a_doubt_about_the_import(pool: Pool, tmp_path: Path) -> None:
    await campaign(pool)
    report = await bring(pool, tmp_path, [NEW] * 12 + ["+5511988880002"])
    assert json.loads(report.json())["doubt"] == "one number stands in 12 of 13 lines"
    row = await pool.fetchrow("SELECT file, lines, taken, folded, doubt, confirmed_at FROM audience_import")
    assert row is not None
    assert tuple(row) == ("audience.csv", 14, 2, 11, "one number stands in 12 of 13 lines", None)


async def test_the_same_doubtful_file_again_raises_no_new_doubt(pool: Pool, tmp_path: Path) -> None:
    await campaign(pool)
    await bring(pool, tmp_path, [NEW] * 12)
    await bring(pool, tmp_path, [NEW] * 12)
    assert await pool.fetchval("SELECT count(*) FROM audience_import WHERE doubt IS NOT NULL") == 1


@pytest.mark.parametrize("state", ["scheduled", "running", "paused", "held"])
async def test_past_the_start_a_doubtful_file_is_refused_until_it_is_confirmed(
    pool: Pool, tmp_path: Path, state: str
) -> None:
    await campaign(pool, state)
    with pytest.raises(ImportRefused, match=f"one number stands in 12 of 12 lines.* is {state}.*--confirm"):
        await bring(pool, tmp_path, [NEW] * 12)
    assert await pool.fetchval("SELECT count(*) FROM recipient") == 0
    assert (await bring(pool, tmp_path, [NEW] * 12, confirm=True)).taken == 1
    assert await pool.fetchval("SELECT confirmed_by FROM audience_import") == "ana"
