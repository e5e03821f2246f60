"""Suppressing people by hand and by file, lifting it, and what the list and the journal show."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.commands import Commands, Refused
from engine.postgres import journal, suppressions
from engine.postgres.pool import Pool
from engine.postgres.suppressions import OptOut

ANA, ANA_BEFORE = "+5511988880001", "+551188880001"
NOW = datetime(2026, 10, 1, tzinfo=UTC)


@pytest.fixture
def commands(pool: Pool) -> Commands:
    return Commands(pool, author="ana", origin="cli")


async def listed(pool: Pool) -> list[tuple[str, str, str]]:
    return [(one.phone, one.scope, one.source) for one in await suppressions.listing(pool)]


async def test_a_person_is_suppressed_under_every_spelling_once(pool: Pool, commands: Commands) -> None:
    assert not (await commands.suppress([ANA])).already
    again = await commands.suppress([ANA_BEFORE])
    assert again.already
    assert await listed(pool) == [(ANA_BEFORE, "all", "person"), (ANA, "all", "person")]


async def test_the_journal_and_the_sentence_hold_no_full_number(pool: Pool, commands: Commands) -> None:
    done = await commands.suppress([ANA], "marketing", "asked by phone")
    entries = await journal.recent(pool)
    assert [(e.act, e.target, e.after, e.reason) for e in entries] == [
        ("suppress", "+551…01", "marketing", "asked by phone")
    ]
    assert ANA not in done.text
    assert ANA[1:] not in repr(await suppressions.listing(pool))
    assert ANA[1:] not in repr(OptOut(ANA, "all", "person", None, NOW))


async def test_lifting_takes_one_scope_or_both(pool: Pool, commands: Commands) -> None:
    for scope in ("all", "marketing"):
        await commands.suppress([ANA], scope)
    await commands.unsuppress([ANA_BEFORE], "marketing")
    assert {scope for _, scope, _ in await listed(pool)} == {"all"}
    await commands.unsuppress([ANA])
    assert await listed(pool) == []
    assert (await commands.unsuppress([ANA])).already


@pytest.mark.parametrize(
    ("phones", "scope", "sentence"),
    [
        (["5511"], "all", "The number … "),
        (["hello there"], "all", "holds letters"),
        ([ANA], "everything", "no scope: write all or marketing"),
    ],
)
async def test_what_is_wrong_is_one_sentence_and_changes_nothing(
    pool: Pool, commands: Commands, phones: list[str], scope: str, sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        await commands.suppress([*phones], scope)
    assert await listed(pool) == []


@pytest.mark.parametrize(
    "text",
    [
        "+5511988880001\n+16505551234\n",
        "5511988880001\n\n16505551234\n",
        "\ufeffphone\n+5511988880001\n+16505551234\n",
        "name;phone\nAna;+5511988880001\nBob;+1 650 555 1234\n",
        "+5511988880001,Ana\n+16505551234,Bob\n",
        "+5511988880001;Ana\r\n+16505551234;Bob\r\n",
    ],
)
async def test_a_file_of_numbers_is_read_however_it_is_written(
    pool: Pool, commands: Commands, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "stop.csv"
    path.write_text(text, encoding="utf-8", newline="")
    done = await commands.import_suppressions(path)
    assert done.text == "2 of 2 numbers suppressed (all)."
    assert await listed(pool) == [
        ("+16505551234", "all", "import"),
        (ANA_BEFORE, "all", "import"),
        (ANA, "all", "import"),
    ]


async def test_bad_lines_are_told_and_the_others_taken(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    path = tmp_path / "stop.csv"
    path.write_text("11 98888-0001\n12\n" + "x\n" * 12)
    done = await commands.import_suppressions(path, "marketing", "BR")
    assert done.after == "1 taken, 13 refused"
    assert done.warnings[0].startswith("line 2 ")
    assert done.warnings[-1] == "and 3 more refused lines"
    assert (await commands.import_suppressions(path, "marketing", "BR")).already


@pytest.mark.parametrize(
    ("text", "sentence"), [("", "holds no numbers"), ("12\n13\n", "line 1 is too short")]
)
async def test_a_file_without_a_number_is_refused(
    pool: Pool, commands: Commands, tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "stop.csv"
    path.write_text(text)
    with pytest.raises(Refused, match=sentence):
        await commands.import_suppressions(path)
    with pytest.raises(Refused, match="cannot be read"):
        await commands.import_suppressions(tmp_path / "none.csv")
    assert await listed(pool) == []


async def test_a_wish_for_marketing_takes_back_a_wish_and_no_decision_of_ours(pool: Pool) -> None:
    sources = {"+16505550001": "user_preferences", "+16505550002": "131050", "+16505550003": "person"}
    await suppressions.add(pool, [OptOut(p, "marketing", s, None, NOW) for p, s in sources.items()])
    await suppressions.add(pool, [OptOut("+16505550001", "all", "stop", "stop", NOW)])
    before = [(phone, NOW - timedelta(seconds=1)) for phone in sources]
    assert await suppressions.resume_marketing(pool, before) == 0
    assert await suppressions.resume_marketing(pool, [(phone, NOW) for phone in sources]) == 2
    assert await listed(pool) == [
        ("+16505550001", "all", "stop"),
        ("+16505550003", "marketing", "person"),
    ]


async def test_the_list_goes_on_after_its_last_line(pool: Pool, commands: Commands) -> None:
    phones = [f"+1650555{n:04}" for n in range(5)]
    await suppressions.add(pool, [OptOut(phone, "all", "import", None, NOW) for phone in phones])
    seen: list[str] = []
    after = ("", "")
    while page := (await commands.list_suppressions("all", after, 2))[1]:
        seen += [one.phone for one in page]
        after = page[-1].phone, page[-1].scope
    assert seen == phones
    assert (await commands.list_suppressions("marketing"))[0] == 0
