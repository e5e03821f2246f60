"""The command line around an audience: campaigns from files, imports that need a person's look, previews."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from engine.cli import app
from engine.postgres.pool import connect
from tests.support.database import apart

NUMBER = "106540352242922"
TICKET = """\
number = ["106540352242922"]
template = "ticket_v1"
language = "pt_BR"
category = "marketing"
priority = 3
deadline = 2031-07-01T18:00:00-03:00
unknown = "resend"
unknown-after = "45m"
max_attempts = 4
max-failed = "10%"
body = [{ column = "name", name = "first_name" }, { text = "12 March", name = "day" }]

[header]
type = "document"
link = { column = "ticket_url" }
filename = "ticket.pdf"

[[buttons]]
type = "url"
index = 0
column = "code"

[[buttons]]
type = "quick_reply"
index = 1
text = "STOP"

[[buttons]]
type = "copy_code"
index = 2
column = "code"
"""
AUDIENCE = """\
phone,name,ticket_url,code
+5511988880001,Ana,https://example.org/t/1.pdf,A1
+5511988880002,Bia,https://example.org/t/2.pdf,B 2
+5511988880003,Cy,example.org,C3
+12025550123,Dee,https://example.org/t/4.pdf,D4
+551188880001,Ana,https://example.org/t/5.pdf,A5
"""

Tidegate = Callable[..., Result]


@pytest.fixture
def tidegate(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tidegate:
    """Runs one command on a fresh database that has a number."""
    for name in [name for name in os.environ if name.startswith("TIDEGATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TIDEGATE_DATABASE_URL", database_url)
    monkeypatch.setenv("TIDEGATE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TOKEN", "EAA-not-a-secret")
    monkeypatch.chdir(tmp_path)

    def run(line: str, *more: str) -> Result:
        return CliRunner().invoke(app, [*line.split(), *more])

    added = run(
        f"number add {NUMBER} --display +5511988880009 --account WABA1 --limit 80 --rate 10 --token env:TOKEN"
    )
    assert added.exit_code == 0, added.output
    (tmp_path / "ticket.toml").write_text(TICKET)
    (tmp_path / "audience.csv").write_text(AUDIENCE)
    return run


@pytest.fixture
def ticket(tidegate: Tidegate) -> Tidegate:
    """The campaign of the file, with its audience."""
    assert tidegate("campaign create ticket --from ticket.toml").exit_code == 0
    assert tidegate("import audience.csv --campaign ticket --json").exit_code == 0
    return tidegate


def stored(url: str) -> Any:
    """The one campaign, as the database has it."""

    async def read() -> Any:
        async with connect(url) as connection:
            return await connection.fetchrow("SELECT * FROM campaign")

    return apart(read)


def test_a_file_says_all_that_flags_do_and_more(tidegate: Tidegate, database_url: str) -> None:
    made = tidegate("campaign create ticket --from ticket.toml")
    assert made.exit_code == 0, made.output
    row = stored(database_url)
    assert (row["template"], row["category"], row["priority"]) == ("ticket_v1", "marketing", 3)
    assert (row["unknown_policy"], row["unknown_after"].total_seconds()) == ("resend", 2700)
    assert (row["max_attempts"], row["max_failed"]) == (4, 0.1)
    assert row["deadline"].isoformat() == "2031-07-01T21:00:00+00:00"
    content = json.loads(row["content"])
    assert content["header"] == {
        "type": "document",
        "link": {"column": "ticket_url"},
        "filename": "ticket.pdf",
    }
    assert content["body"][1] == {"text": "12 March", "name": "day"}
    assert [button["type"] for button in content["buttons"]] == ["url", "quick_reply", "copy_code"]


def test_flags_overrule_the_file(tidegate: Tidegate, database_url: str) -> None:
    made = tidegate(
        "campaign create ticket --from ticket.toml --priority 9 --language en --body name --max-failed 5%"
    )
    assert made.exit_code == 0, made.output
    row = stored(database_url)
    assert (row["priority"], row["language"], row["max_failed"]) == (9, "en", 0.05)
    content = json.loads(row["content"])
    assert content["body"] == [{"column": "name"}]
    assert content["header"]["type"] == "document"


def test_a_file_of_flags_alone_is_the_same_as_flags(
    tidegate: Tidegate, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "plain.toml").write_text(
        f'name = "plain"\nnumber = "{NUMBER}"\ntemplate = "t"\nlanguage = "pt_BR"\nbody = "name, date"\n'
    )
    made = tidegate("campaign create --from plain.toml")
    assert made.exit_code == 0, made.output
    row = stored(database_url)
    assert (row["name"], row["body"], row["content"]) == ("plain", ["name", "date"], None)


WRONG: list[tuple[str, str, str]] = [
    (
        "priority = 3",
        "colour = 3",
        "ticket.toml, line 5: there is no key 'colour', only body, buttons, canary",
    ),
    ("priority = 3", "priority = [3]", "line 5: 'priority' takes one value"),
    ("priority = 3", "priority = 'high'", "'--priority'"),
    ("priority = 3", "priority 3", "ticket.toml is not TOML"),
    ('column = "ticket_url"', 'colum = "ticket_url"', "line 15: the header's link knows no 'colum'"),
    ('type = "document"', 'type = "audio"', "'audio' is none of text, image, video, document"),
    ("index = 2", "index = 1", "two buttons have the index 1"),
    ('unknown = "resend"', 'json = "yes"', "line 7: there is no key 'json'"),
    ("deadline = 2031-07-01T18:00:00-03:00", "deadline = 2031-07-01", "has no time zone"),
    (', name = "day" }', " }", "some variables have a name and some have none"),
    ("12 March", "12     March", "the body's variable day holds more than four blanks"),
]


@pytest.mark.parametrize(("was", "becomes", "sentence"), WRONG)
def test_what_is_wrong_in_a_file_is_one_sentence_with_its_place(
    tidegate: Tidegate, tmp_path: Path, was: str, becomes: str, sentence: str
) -> None:
    assert was in TICKET
    (tmp_path / "ticket.toml").write_text(TICKET.replace(was, becomes))
    done = tidegate("campaign create ticket --from ticket.toml")
    assert done.exit_code == 2, done.output
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.output
    assert "no campaign ticket" in tidegate("campaign show ticket").stderr


@pytest.mark.parametrize(("content", "sentence"), [(None, "lost.toml"), (b"\xff\xfe", "is not UTF-8")])
def test_a_file_that_cannot_be_read_is_one_sentence(
    tidegate: Tidegate, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "lost.toml").write_bytes(content)
    done = tidegate("campaign create ticket --from lost.toml")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert sentence in done.stderr


def test_an_import_checks_the_columns_of_every_component(tidegate: Tidegate) -> None:
    tidegate("campaign create ticket --from ticket.toml")
    report = json.loads(tidegate("import audience.csv --campaign ticket --json").stdout)
    assert report["taken"] == 3
    assert [(r["line"], r["column"]) for r in report["rejects"]] == [(3, "code"), (4, "ticket_url")]
    assert report["twins"] == [{"line": 6, "of_line": 2}]


def test_what_is_kept_aside_is_told_listed_released_and_discarded(ticket: Tidegate) -> None:
    [row] = json.loads(ticket("rows list --campaign ticket --twins --json").stdout)
    assert row["state"] == "pending"
    assert "likely a duplicate" in row["reason"]
    said = ticket("campaign start ticket").stderr
    assert "1 row kept aside" in said
    assert "1 US number in it, and Meta delivers no marketing there" in said
    done = json.loads(ticket("rows release --campaign ticket --json --row", str(row["id"])).stdout)
    assert done["after"] == "0 aside"
    assert json.loads(ticket("rows list --campaign ticket --twins --json").stdout) == []
    assert json.loads(ticket("rows discard --campaign ticket --json").stdout)["already"]
    assert ticket("rows discard --campaign lost").exit_code == 2


def test_an_import_of_many_equal_numbers_says_so_and_the_start_waits_for_a_confirmation(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    tidegate(f"campaign create plain --number {NUMBER} --template t --language pt_BR")
    (tmp_path / "same.csv").write_text("phone\n" + "+5511988880001\n" * 40)
    assert "one number stands in 40 of 40 lines" in tidegate("import same.csv --campaign plain").stderr
    refused = tidegate("campaign start plain")
    assert refused.exit_code == 2
    assert "in same.csv one number stands in 40 of 40 lines" in refused.stderr
    assert tidegate("campaign start plain --confirm").exit_code == 0


def test_what_was_cleaned_is_reported_by_line(tidegate: Tidegate, tmp_path: Path) -> None:
    tidegate(f"campaign create plain --number {NUMBER} --template t --language pt_BR --body name")
    (tmp_path / "marks.csv").write_text('phone,name\n\'+5511988880001,Ana\n+5511988880002,="007"\n')
    report = json.loads(tidegate("import marks.csv --campaign plain --json").stdout)
    assert report["taken"] == 2
    assert [(c["line"], c["column"]) for c in report["cleaned"]] == [(2, "phone"), (3, "name")]
    assert "line 2, column phone: was marked as text" in tidegate("import marks.csv --campaign plain").stdout


def test_a_preview_is_the_exact_request_with_the_phone_masked(ticket: Tidegate) -> None:
    shown = json.loads(ticket("campaign preview ticket --json").stdout)
    assert (shown["line"], shown["state"], shown["method"]) == (2, "pending", "POST")
    assert shown["url"].endswith(f"/{NUMBER}/messages")
    body = shown["body"]
    assert body["to"] == "+551…01"
    assert body["biz_opaque_callback_data"].endswith(f":{shown['row']}:1")
    assert body["template"] == {
        "name": "ticket_v1",
        "language": {"code": "pt_BR"},
        "components": [
            {
                "type": "header",
                "parameters": [
                    {
                        "type": "document",
                        "document": {"link": "https://example.org/t/1.pdf", "filename": "ticket.pdf"},
                    }
                ],
            },
            {
                "type": "body",
                "parameters": [
                    {"type": "text", "parameter_name": "first_name", "text": "Ana"},
                    {"type": "text", "parameter_name": "day", "text": "12 March"},
                ],
            },
            {
                "type": "button",
                "sub_type": "url",
                "index": "0",
                "parameters": [{"type": "text", "text": "A1"}],
            },
            {
                "type": "button",
                "sub_type": "quick_reply",
                "index": "1",
                "parameters": [{"type": "payload", "payload": "STOP"}],
            },
            {
                "type": "button",
                "sub_type": "copy_code",
                "index": "2",
                "parameters": [{"type": "coupon_code", "coupon_code": "A1"}],
            },
        ],
    }


def test_a_row_can_be_named_by_its_line_or_id_and_its_phone_asked_for(ticket: Tidegate) -> None:
    shown = json.loads(ticket("campaign preview ticket --line 6 --show-phones --json").stdout)
    assert (shown["body"]["to"], shown["aside"]) == ("+551188880001", "twins")
    assert json.loads(ticket("campaign preview ticket --json --row", str(shown["row"])).stdout)["line"] == 6
    text = ticket("campaign preview ticket --line 6").stdout
    assert "line 6, pending, kept aside" in text
    assert "+551188880001" not in text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("campaign preview lost", "no campaign lost"),
        ("campaign preview lost --audience", "no campaign lost"),
        ("campaign preview ticket --line 3", "has no row of line 3"),
        ("campaign preview ticket --row 404", "has no row 404"),
        ("campaign preview ticket --row 1 --line 2", "give one of them"),
        ("campaign preview ticket --audience --line 2", "leave out --row and --line"),
    ],
)
def test_a_preview_of_nothing_is_one_sentence(ticket: Tidegate, line: str, sentence: str) -> None:
    done = ticket(line)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert sentence in done.stderr


def test_a_dry_run_says_what_becomes_of_everybody(ticket: Tidegate, database_url: str) -> None:
    async def suppress() -> None:
        async with connect(database_url) as connection:
            await connection.execute(
                "INSERT INTO suppression (phone, scope, source) VALUES ('+5511988880001', 'marketing', 'person')"
            )

    apart(suppress)
    found = json.loads(ticket("campaign preview ticket --audience --json").stdout)
    assert {
        key: found[key] for key in ("planned", "waiting", "would_send", "suppressed", "aside", "expired")
    } == {
        "planned": 3,
        "waiting": 3,
        "would_send": 1,
        "suppressed": 1,
        "aside": 1,
        "expired": 0,
    }
    assert (found["refused"], found["folded"], found["marketing_to_us"], found["rate"]) == (2, 0, 1, 10)
    assert found["seconds"] == 0.1
    assert found["eta"] is not None
    text = ticket("campaign preview ticket --audience").stdout
    assert "1 are US numbers, and Meta delivers no marketing" in text
    assert "At 10/s it takes 0 s: until" in text
