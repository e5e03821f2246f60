"""The life of a campaign on the command line: when it goes out, to whom first, and what it came to."""

import asyncio
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.cli import app
from engine.postgres.pool import connect

NUMBER, SECOND = "106540352242922", "106540352242923"
Tidegate = Callable[..., Result]
CREATE = f"campaign create sale --number {NUMBER} --template sale_v1 --language pt_BR --body name"

# Two delivered, one failed for good, one failed for now, one expired after a try, one suppressed; one still waits.
LIVED = """
UPDATE recipient r SET state = l.state::"char", next_attempt_at = CASE WHEN l.state = 'p' THEN now() END,
       code = l.code, tries = l.tries, attempts = l.tries, number_id = 1
  FROM (VALUES (2, 'd', NULL, 1), (3, 'r', NULL, 1), (4, 'f', 131026, 1), (5, 'f', 131000, 1), (6, 'x', 131000, 1),
               (7, 'z', NULL, 0), (8, 'p', NULL, 0)) AS l(line, state, code, tries), recipient_data d
 WHERE d.line = l.line AND r.id = d.id;
INSERT INTO book_delta (lane_id, f, t, n)
SELECT lane_id, 'p', state, count(*) FROM recipient WHERE state <> 'p' GROUP BY 1, 3;
INSERT INTO tally_delta (lane_id, what, code, n)
SELECT lane_id, 'F', code, count(*) FROM recipient WHERE state = 'f' GROUP BY 1, 3
UNION ALL SELECT lane_id, 'T', 0, sum(tries) FROM recipient GROUP BY 1
UNION ALL SELECT lane_id, 'A', 0, sum(attempts) FROM recipient GROUP BY 1
UNION ALL SELECT lane_id, 'K', 0, count(*) FROM recipient WHERE state IN ('d', 'r') GROUP BY 1;
INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, answered_at, outcome, code)
SELECT id, 1, 1, 1,
       date_trunc('minute', now()) + make_interval(secs => 10 * (row_number() OVER (ORDER BY id) - 1)), now(),
       CASE WHEN state IN ('d', 'r') THEN 'accepted' ELSE 'refused' END, code FROM recipient WHERE tries > 0;
INSERT INTO suppression (phone, scope, source) SELECT phone, 'all', 'stop' FROM recipient_data WHERE line = 7;
UPDATE campaign SET state = 'running', started_at = now()
"""


@pytest.fixture
def tidegate(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tidegate:
    """Runs one command on a fresh database with two numbers."""
    monkeypatch.setenv("TIDEGATE_DATABASE_URL", database_url)
    monkeypatch.setenv("TIDEGATE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TOKEN", "EAA-not-a-secret")
    monkeypatch.chdir(tmp_path)

    def run(line: str) -> Result:
        return CliRunner().invoke(app, line.split())

    for number, account in ((NUMBER, "WABA1"), (SECOND, "WABA2")):
        line = (
            f"number add {number} --display +5511988880001 --account {account} --limit 80 --token env:TOKEN"
        )
        assert run(line).exit_code == 0
    return run


@pytest.fixture
def lived(tidegate: Tidegate, database_url: str, tmp_path: Path) -> Tidegate:
    """With a campaign of seven people near its end."""
    assert tidegate(CREATE).exit_code == 0
    people = "".join(f"+551198888{n:04d},Ana\n" for n in range(2, 9))
    (tmp_path / "people.csv").write_text("phone,name\n" + people)
    assert tidegate("import people.csv --campaign sale").exit_code == 0
    execute(database_url, LIVED)
    return tidegate


def execute(url: str, script: str) -> None:
    async def once() -> None:
        async with connect(url) as db:
            await db.execute(script)

    asyncio.run(once())


def test_a_report_tells_every_outcome_with_its_reason_and_balances(lived: Tidegate) -> None:
    done = lived("campaign report sale --json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["balances"] is True
    assert {word: n for word, n in found["counts"].items() if n} == {
        "pending": 1, "delivered": 1, "read": 1, "failed": 2, "expired": 1, "suppressed": 1
    }  # fmt: skip
    assert [(r["outcome"], r["code"], r["rows"]) for r in found["reasons"]] == [
        ("failed", 131000, 1), ("failed", 131026, 1), ("suppressed", None, 1), ("expired", 131000, 1)
    ]  # fmt: skip
    assert found["reasons"][2]["reason"] == "wrote a stop word"
    (minute,) = found["minutes"]
    assert (minute["tries"], minute["accepted"], minute["refused"], minute["throttled"]) == (5, 2, 3, 0)
    (pace,) = found["numbers"]
    assert (pace["number"], pace["mean_per_second"], pace["rate"]) == (NUMBER, 0.1, 64)


def test_a_report_as_text_and_as_csv_holds_the_same_figures(lived: Tidegate) -> None:
    text = lived("campaign report sale").stdout
    assert "It balances: 7 planned, 7 accounted for." in text
    assert "Message undeliverable" in text
    table = list(csv.reader(io.StringIO(lived("campaign report sale --csv").stdout)))
    assert table[0] == ["section", "name", "detail", "value"]
    assert ["outcome", "failed", "", "2"] in table
    assert ["reason", "failed", "131026 Message undeliverable", "1"] in table
    assert sum(int(row[3]) for row in table if row[0] == "outcome") == 7
    assert {len(row) for row in table} == {4}


def test_a_report_says_that_a_rate_is_todays_and_when_it_was_set_before(lived: Tidegate) -> None:
    assert lived(f"number rate {NUMBER} 40").exit_code == 0
    assert lived(f"number rate {NUMBER} 40").exit_code == 0  # changes nothing
    (change,) = json.loads(lived("campaign report sale --json").stdout)["pace_changes"]
    assert (change["number"], change["act"], change["before"], change["after"]) == (
        NUMBER,
        "rate",
        "64",
        "40",
    )
    text = lived("campaign report sale").stdout
    assert "RATE/S NOW" in text
    assert f"rate of {NUMBER} from 64 to 40 (messages/s), by " in text


def test_a_report_that_does_not_add_up_says_so_and_ends_with_five(lived: Tidegate, database_url: str) -> None:
    execute(database_url, "UPDATE campaign SET planned = planned + 1")
    done = lived("campaign report sale")
    assert done.exit_code == 5
    assert "IT DOES NOT BALANCE: 8 rows were planned and 7 are counted." in done.stdout


def test_a_terminal_is_asked_before_a_campaign_is_cancelled_and_a_script_is_not(
    lived: Tidegate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.cli.campaign.at_terminal", lambda: True)
    asked = CliRunner().invoke(app, ["campaign", "cancel", "sale"], input="n\n")
    assert asked.exit_code == 2
    assert "sale is running: 1 row will never be sent, 0 under way stay open" in asked.stdout
    assert "Nothing is changed" in asked.stderr
    assert json.loads(lived("campaign show sale --json").stdout)["state"] == "running"
    monkeypatch.setattr("engine.cli.campaign.at_terminal", lambda: False)
    assert "1 row cancelled" in lived("campaign cancel sale").stdout
    monkeypatch.setattr("engine.cli.campaign.at_terminal", lambda: True)
    assert "already" in lived("campaign cancel sale").stdout, "nothing is left to ask about"


def test_a_name_that_a_draft_has_says_what_to_do_about_the_draft(tidegate: Tidegate) -> None:
    assert tidegate(CREATE).exit_code == 0
    again = tidegate(CREATE)
    assert again.exit_code == 2
    assert (
        "already (draft): choose another name, such as sale-2; `tidegate campaign cancel sale`"
        in again.stderr
    )


def test_an_import_lists_what_it_folded(tidegate: Tidegate, tmp_path: Path) -> None:
    assert tidegate(CREATE).exit_code == 0
    (tmp_path / "people.csv").write_text("phone,name\n+5511988880001,Ana\n+5511988880001,Ana\n")
    done = tidegate("import people.csv --campaign sale")
    assert "line 3 folded into line 2: the same number" in done.stdout


def test_rows_are_exported_masked_into_a_file_of_ones_own(lived: Tidegate, tmp_path: Path) -> None:
    done = lived("rows export --campaign sale --output all.csv")
    assert done.exit_code == 0, done.output
    assert "7 rows" in done.stdout
    assert (tmp_path / "all.csv").stat().st_mode & 0o777 == 0o600
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert [row["line"] for row in rows] == [str(n) for n in range(2, 9)]
    assert all("…" in row["phone"] for row in rows)
    assert rows[2]["reason"] == "Message undeliverable"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".all")] == []


def test_an_export_by_state_shows_whole_phones_only_when_asked_and_overwrites_nothing(
    lived: Tidegate, tmp_path: Path
) -> None:
    assert lived("rows export --campaign sale --state failed --show-phones --output f.csv").exit_code == 0
    rows = list(csv.DictReader((tmp_path / "f.csv").read_text().splitlines()))
    assert [row["phone"] for row in rows] == ["+5511988880004", "+5511988880005"]
    again = lived("rows export --campaign sale --output f.csv")
    assert again.exit_code == 2
    assert "there already" in again.stderr
    for line, sentence in (
        ("--campaign lost --output g.csv", "no campaign lost"),
        ("--campaign sale --state lost --output g.csv", "is no state"),
        ("--campaign sale --output nowhere/g.csv", "no directory"),
    ):
        wrong = lived(f"rows export {line}")
        assert (wrong.exit_code, sentence in wrong.stderr) == (2, True), wrong.stderr


def test_failed_rows_are_counted_first_and_sent_again(lived: Tidegate) -> None:
    counted = lived("campaign retry-failed sale --dry-run")
    assert counted.exit_code == 0, counted.output
    assert "131026" in counted.stdout
    assert "refused again" in counted.stdout
    assert "1 failed row of campaign sale would be sent again" in counted.stdout
    refused = lived("campaign retry-failed sale --code 131026")
    assert refused.exit_code == 2
    assert "not sent again" in refused.stderr
    done = json.loads(lived("campaign retry-failed sale --json").stdout)
    assert (done["retried"], done["state"]) == (1, "running")
    assert json.loads(lived("campaign show sale --json").stdout)["counts"]["pending"] == 2


def test_numbers_of_a_campaign_change_while_it_runs(lived: Tidegate) -> None:
    def numbers() -> list[str]:
        found: list[str] = json.loads(lived("campaign show sale --json").stdout)["numbers"]
        return found

    added = lived(f"campaign number sale --add {SECOND}")
    assert added.exit_code == 0, added.output
    assert "another account, WABA2" in added.stderr
    assert numbers() == [NUMBER, SECOND]
    assert "already" in lived(f"campaign number sale --add {SECOND}").stdout
    assert lived(f"campaign number sale --remove {NUMBER}").exit_code == 0
    assert numbers() == [SECOND]
    for line, sentence in (
        (f"--remove {SECOND}", "only number"),
        ("--add 404", "no number 404"),
        ("--remove 404", "no number 404"),
        ("", "--add and --remove"),
    ):
        wrong = lived(f"campaign number sale {line}")
        assert (wrong.exit_code, sentence in wrong.stderr) == (2, True), wrong.stderr


def test_when_a_campaign_goes_out_is_said_at_its_creation_and_shown(tidegate: Tidegate) -> None:
    made = tidegate(
        f"{CREATE} --start-at 2099-01-01T09:00-03:00 --deadline 2099-01-02T09:00-03:00 --quiet 21:00-08:00 "
        "--timezone recipient --canary 2% --category marketing --retry-marketing-limit"
    )
    assert made.exit_code == 0, made.output
    assert "starts by itself at 2099-01-01T09:00-03:00" in made.stdout
    shown = json.loads(tidegate("campaign show sale --json").stdout)
    assert (shown["state"], shown["late"]) == ("scheduled", 0)
    assert shown["start_at"].startswith("2099-01-01T12:00")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--quiet night --timezone UTC", "21:00-08:00"),
        ("--quiet 21:00-08:00", "need a zone"),
        ("--quiet 21:00-08:00 --timezone Mars/Base", "no time zone 'Mars/Base'"),
        ("--start-at tomorrow", "ISO 8601"),
        ("--start-at 2020-01-01T00:00Z", "has passed"),
        ("--start-at 2099-01-02T00:00Z --deadline 2099-01-01T00:00Z", "before the start"),
        ("--canary 0", "no canary"),
        ("--canary 100%", "no canary"),
    ],
)
def test_what_cannot_be_is_one_sentence(tidegate: Tidegate, flags: str, sentence: str) -> None:
    done = tidegate(f"{CREATE} {flags}")
    assert done.exit_code == 2, done.output
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
