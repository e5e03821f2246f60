"""Whole imports on a real Postgres: what is kept, what is not, and what the report says."""

import asyncio
import csv
import json
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.intake.encoding import codec
from engine.intake.importer import ImportRefused, ImportStopped, import_audience
from engine.intake.report import Report
from engine.postgres.pool import Pool

CAMPAIGN = """
INSERT INTO campaign (name, random_id, state, template, language, body)
VALUES ($1, $1, $2, 'reminder_v2', 'pt_BR', $3)
"""

KEPT = """
SELECT d.line, d.phone, d.params::text, l.country, r.state, r.tries, r.next_attempt_at
  FROM recipient r JOIN recipient_data d USING (id) JOIN lane l USING (lane_id) ORDER BY r.id
"""

FLAWED = "\n".join([
    "phone,name,date",
    "+5511988880001,Ana,12/08",
    "(11) 98888-0001,Ana Lima,12/08",
    "+351 912 345 678,Rui,12/08",
    "",
    "119,Cau,12/08",
    "+5511988880002,,12/08",
    "11 98888 0003,Bia \\ Silva,12/08",
])  # fmt: skip


@pytest.fixture
async def campaign(pool: Pool) -> str:
    await pool.execute(CAMPAIGN, "reminder", "draft", ["name", "date"])
    return "reminder"


def audience(directory: Path, content: str, name: str = "audience.csv") -> Path:
    path = directory / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


async def imported(pool: Pool, path: Path, **wishes: object) -> Report:
    settings: dict[str, object] = {"campaign": "reminder", "author": "ana", "country": "BR"} | wishes
    return await import_audience(pool, path, **settings)  # type: ignore[arg-type]


async def footprint(pool: Pool) -> list[int]:
    """Everything that an import may leave behind."""
    row = await pool.fetchrow("""
        SELECT (SELECT count(*) FROM recipient), (SELECT count(*) FROM recipient_data), (SELECT count(*) FROM lane),
               (SELECT count(*) FROM book_delta), (SELECT count(*) FROM journal),
               (SELECT planned FROM campaign), (SELECT version FROM control)""")
    assert row is not None
    return list(row)


NOTHING = [0] * 7


def files_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_a_file_is_accounted_for_line_by_line(pool: Pool, campaign: str, tmp_path: Path) -> None:
    report = await imported(pool, audience(tmp_path, FLAWED))
    assert json.loads(report.json()) == {
        "encoding": "utf-8",
        "separator": ",",
        "lines": 8,
        "taken": 3,
        "refused": 2,
        "folded": 1,
        "blank": 1,
        "already": 0,
        "rejects": [
            {"line": 6, "column": "phone", "reason": "is too short for a phone number"},
            {"line": 7, "column": "name", "reason": "is empty, and the template needs it"},
        ],
        "folds": [{"line": 3, "into_line": 2}],
    }
    assert report.exit_code == 0


FOLDED: list[tuple[str, str, list[tuple[int, int]], int]] = [
    ("nobody twice", "phone,name,date\n11988880001,A,1\n11988880002,B,1\n", [], 2),
    ("the same spelling", "phone,name,date\n11988880001,A,1\n11988880001,A,1\n", [(3, 2)], 1),
    ("another way to write it", "phone,name,date\n11988880001,A,1\n+55 (11) 98888-0001,A,1\n", [(3, 2)], 1),
    ("other values: the first line wins", "phone,name,date\n11988880001,A,1\n11988880001,B,2\n", [(3, 2)], 1),
    (
        "three times",
        "phone,name,date\n11988880001,A,1\n11988880001,A,1\n11988880001,A,1\n",
        [(3, 2), (4, 2)],
        1,
    ),
    ("across blank lines", "phone,name,date\n\n11988880001,A,1\n,,\n11988880001,A,1\n", [(5, 3)], 1),
    ("not into a refused line", "phone,name,date\n11988880001,,1\n11988880001,A,1\n", [], 1),
    ("a refused line is not folded", "phone,name,date\n11988880001,A,1\n11988880001,,1\n", [], 1),
    (
        "two people, crossed",
        "phone,name,date\n11988880001,A,1\n11988880002,B,1\n11988880002,B,1\n11988880001,A,1\n",
        [(4, 3), (5, 2)],
        2,
    ),
]


@pytest.mark.parametrize(("content", "folds", "taken"), [f[1:] for f in FOLDED], ids=[f[0] for f in FOLDED])
async def test_a_person_who_stands_twice_is_folded_into_the_first_line(
    pool: Pool, campaign: str, tmp_path: Path, content: str, folds: list[tuple[int, int]], taken: int
) -> None:
    report = await imported(pool, audience(tmp_path, content))
    assert [(fold.line, fold.into_line) for fold in report.folds] == folds
    assert (report.taken, report.folded) == (taken, len(folds))
    assert report.lines == 1 + report.taken + report.folded + report.refused + report.blank


async def test_rows_are_pending_at_once_and_in_the_order_of_the_file(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    await imported(pool, audience(tmp_path, FLAWED))
    kept = await pool.fetch(KEPT)
    assert [(r["line"], r["phone"], r["country"], r["state"], r["tries"]) for r in kept] == [
        (2, "+5511988880001", "BR", b"p", 0),
        (4, "+351912345678", "PT", b"p", 0),
        (8, "+5511988880003", "BR", b"p", 0),
    ]
    assert len({r["next_attempt_at"] for r in kept}) == 1
    assert json.loads(kept[2]["params"]) == {"name": "Bia \\ Silva", "date": "12/08"}


async def test_the_books_lanes_and_journal_agree_with_the_rows(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    await imported(pool, audience(tmp_path, FLAWED))
    books = await pool.fetch(
        "SELECT country, f, t, n FROM book_delta JOIN lane USING (lane_id) ORDER BY country"
    )
    assert [tuple(row) for row in books] == [("BR", b" ", b"p", 2), ("PT", b" ", b"p", 1)]
    assert await pool.fetchval("SELECT planned FROM campaign") == 3
    [entry] = await pool.fetch("SELECT author, origin, act, target, before, after, result FROM journal")
    result = "taken 3, refused 2, folded 1, already 0, blank 1"
    assert tuple(entry) == ("ana", "cli", "import", "reminder", "planned 0", "planned 3", result)
    assert await pool.fetchval("SELECT version FROM control") == 1


async def test_the_same_file_again_adds_nobody(pool: Pool, campaign: str, tmp_path: Path) -> None:
    path = audience(tmp_path, FLAWED)
    await imported(pool, path)
    report = await imported(pool, path)
    assert (report.taken, report.already, report.folded, report.exit_code) == (0, 3, 1, 0)
    assert await pool.fetchval("SELECT count(*) FROM recipient") == 3
    assert await pool.fetchval("SELECT planned FROM campaign") == 3


async def test_what_was_imported_is_frozen_whatever_a_later_file_says(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    await imported(pool, audience(tmp_path, "phone,name,date\n11988880001,Ana,1\n"))
    report = await imported(pool, audience(tmp_path, "phone,name,date\n11988880001,Eva,2\n"))
    assert (report.taken, report.already) == (0, 1)
    [row] = await pool.fetch(KEPT)
    assert json.loads(row["params"]) == {"name": "Ana", "date": "1"}


async def test_a_second_file_adds_to_what_is_planned_and_uses_the_lanes_that_are_there(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    await imported(pool, audience(tmp_path, FLAWED))
    report = await imported(
        pool, audience(tmp_path, "phone;name;date\n11988880009;Gil;1\n11988880001;Ana;1\n")
    )
    assert (report.taken, report.already) == (1, 1)
    assert await pool.fetchval("SELECT planned FROM campaign") == 4
    assert await pool.fetchval("SELECT count(*) FROM lane") == 2


async def test_the_same_person_may_be_in_two_campaigns(pool: Pool, campaign: str, tmp_path: Path) -> None:
    await pool.execute(CAMPAIGN, "other", "running", [])
    path = audience(tmp_path, FLAWED)
    await imported(pool, path)
    report = await imported(pool, path, campaign="other")
    assert (report.taken, report.already) == (4, 0)  # its template needs no name


async def test_a_dry_run_says_the_same_and_keeps_nothing(pool: Pool, campaign: str, tmp_path: Path) -> None:
    path = audience(tmp_path, FLAWED)
    rehearsed = await imported(pool, path, dry_run=True)
    assert await footprint(pool) == NOTHING
    assert rehearsed == await imported(pool, path)


async def test_strict_refuses_the_whole_file_for_one_row(pool: Pool, campaign: str, tmp_path: Path) -> None:
    report = await imported(pool, audience(tmp_path, FLAWED), strict=True)
    assert await footprint(pool) == NOTHING
    found = json.loads(report.json())
    assert found["file_fault"]["line"] == 6
    assert "too short" in found["file_fault"]["reason"]
    assert [found[key] for key in ("lines", "taken", "refused", "folded", "blank", "already")] == [0] * 6
    assert [reject["line"] for reject in found["rejects"]] == [6, 7]
    assert report.exit_code == 2


async def test_strict_takes_a_file_whose_only_oddity_is_a_person_twice(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    path = audience(tmp_path, "phone,name,date\n11988880001,Ana,1\n+5511988880001,Ana,1\n\n")
    report = await imported(pool, path, strict=True)
    assert (report.taken, report.folded, report.blank) == (1, 1, 1)


async def test_a_fault_after_thousands_of_good_rows_keeps_none_of_them(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    good = "".join(f"+55119{80000000 + n},Ana,1\n" for n in range(5_000))
    report = await imported(pool, audience(tmp_path, f'phone,name,date\n{good}11988880001,"Ana,1\n'))
    assert json.loads(report.json())["file_fault"]["line"] == 5_002
    assert (report.taken, report.lines, report.exit_code) == (0, 0, 2)
    assert await footprint(pool) == NOTHING


async def test_a_missing_column_refuses_the_file_by_its_name(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    report = await imported(pool, audience(tmp_path, "phone,name\n+5511988880001,Ana\n"))
    fault = json.loads(report.json())["file_fault"]
    assert fault["line"] == 1
    assert "no column 'date'" in fault["reason"]


async def test_a_file_with_other_names_hears_them_all_and_both_ways_out(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    report = await imported(pool, audience(tmp_path, "phone,Nome,Data\n+5511988880001,Ana,1\n"))
    reason = json.loads(report.json())["file_fault"]["reason"]
    assert "no column 'name' nor 'date', which the campaign's template needs" in reason
    assert reason.endswith(
        "create another campaign whose --body names the file's columns, such as --body Nome,Data"
    )


async def test_a_file_of_refused_rows_alone_is_no_success(pool: Pool, campaign: str, tmp_path: Path) -> None:
    report = await imported(pool, audience(tmp_path, "phone,name,date\n119,Ana,1\n"))
    assert (report.refused, report.exit_code) == (1, 2)


@pytest.mark.parametrize("dry_run", [False, True])
async def test_the_rejects_file_holds_the_rows_as_they_were_for_their_owner_alone(
    pool: Pool, campaign: str, tmp_path: Path, dry_run: bool
) -> None:
    content = 'phone,name,date\n119,"Lima, ""Cau""",1\n+5511988880001,Ana,1\n+5511988880002,"a\nb",1\n'
    rejects = tmp_path / "rejects.csv"
    await imported(pool, audience(tmp_path, content), rejects=rejects, dry_run=dry_run)
    with rejects.open(encoding="utf-8-sig", newline="") as source:
        rows = list(csv.reader(source))
    assert [row[:2] + row[3:] for row in rows] == [
        ["line", "column", "phone", "name", "date"],
        ["2", "phone", "119", 'Lima, "Cau"', "1"],
        ["4", "name", "+5511988880002", "a\nb", "1"],
    ]
    assert stat.S_IMODE(rejects.stat().st_mode) == 0o600
    assert files_in(tmp_path) == ["audience.csv", "rejects.csv"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-8", "utf-16"])
async def test_rejects_can_be_mended_in_what_made_the_file_and_imported_again(
    pool: Pool, campaign: str, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "people.csv"
    people = ["phone;name;date;line", "119;Conceição;1;x", '118;"João; Zé";2;y', "+5511988880009;Ana;3;z"]
    path.write_bytes("\r\n".join(people).encode(encoding))
    rejects = tmp_path / "rejects.csv"
    report = await imported(pool, path, rejects=rejects)
    assert (report.taken, report.refused) == (1, 2)
    text = rejects.read_bytes().decode(codec(encoding))
    assert text.splitlines()[0] == "line 2;column;reason;phone;name;date;line"
    assert text.splitlines()[2].endswith(';118;"João; Zé";2;y')
    mended = text.replace(";119;", ";+5511988880001;").replace(";118;", ";+5511988880002;")
    path.write_bytes(mended.encode(codec(encoding)))
    again = await imported(pool, path)
    assert (again.taken, again.refused) == (2, 0)
    names = await pool.fetch("SELECT params ->> 'name' AS name FROM recipient_data ORDER BY id")
    assert [row["name"] for row in names][1:] == ["Conceição", "João; Zé"]


async def test_a_refused_row_that_was_cut_off_spoils_no_other(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    endless = '+5511988880001,"' + "x" * 70_000 + '",1'
    path = audience(tmp_path, f"phone,name,date\n{endless}\n119,Ana,1\n")
    rejects = tmp_path / "rejects.csv"
    await imported(pool, path, rejects=rejects)
    with rejects.open(encoding="utf-8-sig", newline="") as source:
        rows = list(csv.reader(source))
    assert [row[0] for row in rows] == ["line", "2", "3"]
    assert rows[2][3:] == ["119", "Ana", "1"]


async def test_a_refused_file_leaves_an_older_rejects_file_alone(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    rejects = audience(tmp_path, "older", "rejects.csv")
    await imported(pool, audience(tmp_path, 'phone,name,date\n119,Ana,1\n1,"'), rejects=rejects)
    assert rejects.read_text(encoding="utf-8") == "older"
    assert files_in(tmp_path) == ["audience.csv", "rejects.csv"]


async def test_reports_tell_no_phone_number(pool: Pool, campaign: str, tmp_path: Path) -> None:
    lines = [
        "phone,name,date",
        "+5511988880001²,A,1",
        "551198888000112345,B,1",
        "+5511988880001,,1",
        "1198888000e,C,1",
    ]
    report = await imported(pool, audience(tmp_path, "\n".join(lines)))
    assert report.refused == 4
    assert "98888" not in report.json()


async def test_what_is_done_is_told_on_the_way_in_bytes(pool: Pool, campaign: str, tmp_path: Path) -> None:
    path = audience(tmp_path, "phone,name,date\n" + "119,Ana,1\n" * 3_000)
    told: list[tuple[int, int]] = []
    await imported(pool, path, progress=lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[-1] == (size, size)


async def test_stopped_in_the_middle_nothing_is_kept_and_the_pool_goes_on(
    pool: Pool, campaign: str, tmp_path: Path
) -> None:
    path = audience(
        tmp_path, "phone,name,date\n" + "".join(f"+55119{80000000 + n},Ana,1\n" for n in range(5_000))
    )
    rejects = tmp_path / "rejects.csv"
    first = asyncio.Event()
    task = asyncio.ensure_future(
        imported(pool, path, rejects=rejects, progress=lambda done, total: first.set())
    )
    await first.wait()
    task.cancel()
    with pytest.raises(ImportStopped, match=r"nothing of audience\.csv was kept in campaign reminder"):
        await task
    assert await footprint(pool) == NOTHING
    assert files_in(tmp_path) == ["audience.csv"]
    assert (await imported(pool, path)).taken == 5_000


@pytest.mark.parametrize("state", ["finished", "cancelled"])
async def test_a_campaign_that_has_ended_takes_nobody(pool: Pool, tmp_path: Path, state: str) -> None:
    await pool.execute(CAMPAIGN, "reminder", state, [])
    with pytest.raises(ImportRefused, match=f"is {state}"):
        await imported(pool, audience(tmp_path, FLAWED))


@pytest.mark.parametrize("state", ["draft", "scheduled", "running", "paused", "held"])
async def test_a_campaign_takes_people_until_it_ends(pool: Pool, tmp_path: Path, state: str) -> None:
    await pool.execute(CAMPAIGN, "reminder", state, [])
    assert (await imported(pool, audience(tmp_path, FLAWED))).taken == 4


async def test_a_connection_of_ones_own_will_do(pool: Pool, campaign: str, tmp_path: Path) -> None:
    async with pool.acquire() as connection:
        report = await import_audience(
            connection, audience(tmp_path, FLAWED), campaign=campaign, author="ana", country="br"
        )
    assert report.taken == 3


WRONG: Sequence[tuple[dict[str, object], str, str]] = [
    ({"campaign": "no-such"}, "audience.csv", "no campaign called no-such"),
    ({}, "missing.csv", "There is no file"),
    ({}, ".", "is not a file"),
    ({"country": "UK"}, "audience.csv", "There is no country 'UK'"),
    ({"rejects": "audience.csv"}, "audience.csv", "would overwrite"),
    ({"rejects": "nowhere/rejects.csv"}, "audience.csv", "no directory"),
]


@pytest.mark.parametrize(("wishes", "name", "sentence"), WRONG)
async def test_wrong_use_gets_one_sentence(
    pool: Pool, campaign: str, tmp_path: Path, wishes: dict[str, object], name: str, sentence: str
) -> None:
    audience(tmp_path, FLAWED)
    if "rejects" in wishes:
        wishes = wishes | {"rejects": tmp_path / str(wishes["rejects"])}
    with pytest.raises(ImportRefused, match=sentence) as raised:
        await imported(pool, tmp_path / name, **wishes)
    assert "\n" not in str(raised.value)
    assert await footprint(pool) == NOTHING
