"""The command line: help with examples, one sentence for what is wrong, public JSON shapes, exit codes."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner, Result

from engine.cli import app
from engine.domain.recipient import State

NUMBER = "106540352242922"
AWAY = "postgresql://nobody@127.0.0.1:1/nothing"
START = "from engine.cli import run_command; run_command()"
LISTINGS = ["number list", "campaign list", "rows list --campaign reminder"]

Tidegate = Callable[..., Result]


@pytest.fixture
def tidegate(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tidegate:
    """Runs one command on a fresh database: `tidegate("number list", "--json")`."""
    for name in [name for name in os.environ if name.startswith("TIDEGATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TIDEGATE_DATABASE_URL", database_url)
    monkeypatch.setenv("TIDEGATE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TOKEN", "EAA-not-a-secret")
    monkeypatch.chdir(tmp_path)

    def run(line: str, *more: str, env: Mapping[str, str] | None = None) -> Result:
        return CliRunner().invoke(app, [*line.split(), *more], env=env)

    return run


@pytest.fixture
def campaign(tidegate: Tidegate, tmp_path: Path) -> str:
    """A number and a campaign of three people, in draft."""
    add(tidegate)
    made = tidegate(
        f"campaign create reminder --number {NUMBER} --template reminder_v2 --language pt_BR --body name"
    )
    assert made.exit_code == 0, made.output
    (tmp_path / "audience.csv").write_text(
        "phone,name\n+5511988880001,Ana\n+5511988880002,Bia\n+5511988880003,Cy\n"
    )
    assert tidegate("import audience.csv --campaign reminder").exit_code == 0
    return "reminder"


def add(tidegate: Tidegate, number: str = NUMBER) -> None:
    made = tidegate(
        f"number add {number} --display +5511988880001 --account WABA1 --limit 80 --token env:TOKEN"
    )
    assert made.exit_code == 0, made.output


def commands() -> Iterator[tuple[str, Any]]:
    """(path, command) of everything that can be run."""

    def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
        below = getattr(command, "commands", None)
        if not below:
            yield path, command
            return
        for name, child in below.items():
            yield from walk(f"{path} {name}".strip(), child)

    return walk("", typer.main.get_command(app))


@pytest.mark.parametrize("path", [path for path, _ in commands()])
def test_every_command_has_help_with_an_example_of_itself(path: str) -> None:
    shown = CliRunner().invoke(app, [*path.split(), "--help"])
    assert shown.exit_code == 0
    assert "Example:" in shown.stdout
    assert f"tidegate {path}" in shown.stdout.split("Example:")[1]


def test_the_contracts_commands_are_there() -> None:
    wanted = {
        "check", "migrate", "import", "run", "reconcile", "audit", "pause-all", "resume-all", "demo", "simulate",
        "rows list", "rows show",
        *(f"number {verb}" for verb in ("add", "list", "show", "pause", "resume", "rate", "limit", "remove")),
        *(f"campaign {verb}" for verb in ("create", "start", "pause", "resume", "cancel", "show", "list")),
    }  # fmt: skip
    assert wanted <= {path for path, _ in commands()}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("nmber list", "No such command 'nmber'"),
        ("--lost", "No such option"),
        ("number", "Missing command"),
        (f"number rate {NUMBER} fast", "valid"),
        (f"number rate {NUMBER} 81", "above the provider's limit of 80/s"),
        (f"number rate {NUMBER} -- -1", "0 or more"),
        (f"number rate {NUMBER} nan", "not usable"),
        ("number rate 404 1", "no number 404"),
        ("number show 404", "no number 404"),
        ("number pause 404", "no number 404"),
        ("number pause ../x", "digits alone"),
        (f"number remove {NUMBER}", "used by reminder"),
        ("number add x --display +551199 --account W --limit 80 --token env:T", "digits alone"),
        ("number add 12345 --display +5511988880001 --account W --limit 80 --token EAAG", "by reference"),
        ("number add 12345 --display +5511988880001 --account W --limit 0 --token env:T", "above 0"),
        (
            f"number add {NUMBER} --display +5511988880001 --account W --limit 80 --token env:T",
            "known already",
        ),
        (f"campaign create reminder --number {NUMBER} --template t --language pt_BR", "already"),
        ("campaign create other --number 404 --template t --language pt_BR", "no number 404"),
        (
            f"campaign create other --number {NUMBER} --template t --language pt_BR --deadline soon",
            "ISO 8601",
        ),
        (
            f"campaign create other --number {NUMBER} --template t --language pt --deadline 2030-01-01",
            "time zone",
        ),
        (
            f"campaign create other --number {NUMBER} --template t --language pt --max-failed 200%",
            "0% to 100%",
        ),
        (
            f"campaign create other --number {NUMBER} --template t --language pt --unknown-after x",
            "such as 10",
        ),
        ("campaign show lost", "no campaign lost"),
        ("campaign start lost", "no campaign lost"),
        ("campaign pause reminder", "start it"),
        ("import nowhere.csv --campaign reminder", "nowhere.csv"),
        ("import audience.csv --campaign lost", "lost"),
        ("rows list --campaign lost", "no campaign lost"),
        ("rows list --campaign reminder --state lost", "pending, claimed"),
        ("rows show 404", "no row 404"),
        ("reconcile --campaign lost", "no campaign lost"),
        ("audit --campaign lost", "no campaign lost"),
        ("run --no-ui", "TIDEGATE_APP_SECRET"),
        ("run --no-webhook", "no screen"),
        ("run --no-ui --no-webhook --grace soon", "grace (from --grace)"),
        ("--config lost.toml check", "lost.toml does not exist"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_2(
    tidegate: Tidegate, campaign: str, line: str, sentence: str
) -> None:
    done = tidegate(line)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stderr.startswith("tidegate: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert "EAAG" not in done.output


@pytest.mark.parametrize(
    "line", [f"number rate {NUMBER} 81 --json", "campaign show lost --json", "number list --jso --json"]
)
def test_with_json_an_error_is_json_too(tidegate: Tidegate, campaign: str, line: str) -> None:
    done = tidegate(line)
    assert done.exit_code == 2
    assert list(json.loads(done.stdout)) == ["error"]


@pytest.mark.parametrize("line", [*LISTINGS, "audit", "reconcile", "check"])
def test_a_database_that_is_away_is_one_sentence(tidegate: Tidegate, line: str) -> None:
    done = tidegate(line, env={"TIDEGATE_DATABASE_URL": AWAY})
    assert done.exit_code == 2
    assert "could not be reached" in done.output
    assert "Traceback" not in done.output


def test_a_database_that_was_not_migrated_is_one_sentence(tidegate: Tidegate, postgres: Any) -> None:
    with postgres.database("template0") as url:
        env = {"TIDEGATE_DATABASE_URL": url}
        done = tidegate("number list", env=env)
        assert (done.exit_code, "tidegate migrate" in done.stderr) == (2, True)
        assert "0001_initial.sql" in tidegate("migrate", env=env).stdout
        assert "current already" in tidegate("migrate", env=env).stdout
        assert tidegate("number list", env=env).exit_code == 0


def test_migrations_are_printed_for_a_dba_without_a_database(tidegate: Tidegate) -> None:
    done = tidegate("migrate --sql", env={"TIDEGATE_DATABASE_URL": AWAY})
    assert done.exit_code == 0
    assert "CREATE TABLE recipient" in done.stdout


@pytest.mark.parametrize("line", LISTINGS)
def test_every_listing_prints_a_json_list(tidegate: Tidegate, campaign: str, line: str) -> None:
    assert isinstance(json.loads(tidegate(line, "--json").stdout), list)
    assert tidegate(line).stdout


def test_numbers_have_the_public_shape(tidegate: Tidegate, campaign: str) -> None:
    (listed,) = json.loads(tidegate("number list --json").stdout)
    assert list(listed) == [
        "id", "display", "account", "owner", "epoch", "state", "reason", "rate", "limit", "ceiling",
        "accepted_last_second", "tries_last_second", "bound_by", "owner_silent_s",
    ]  # fmt: skip
    assert listed == json.loads(tidegate(f"number show {NUMBER} --json").stdout)


def test_campaigns_have_the_public_shape(tidegate: Tidegate, campaign: str) -> None:
    shown = json.loads(tidegate("campaign show reminder --json").stdout)
    assert list(shown) == [
        "name", "state", "reason", "planned", "counts", "accepted", "tries", "attempts", "possible_duplicates",
        "assumed_sent", "errors", "refusals", "numbers", "started_at", "finished_at", "eta",
        "start_at", "deadline", "late", "canary", "waits", "aside", "controls",
    ]  # fmt: skip
    assert shown["counts"] == {state.word: 3 if state is State.PENDING else 0 for state in State}
    assert json.loads(tidegate("campaign list --json").stdout) == [shown]


def test_rows_have_the_public_shape_and_masked_phones(tidegate: Tidegate, campaign: str) -> None:
    listed = json.loads(tidegate("rows list --campaign reminder --json").stdout)
    assert [list(row) for row in listed] == [[
        "id", "campaign", "phone", "state", "number", "tries", "attempts", "code", "reason", "next_attempt_at",
        "moved_at",
    ]] * 3  # fmt: skip
    shown = json.loads(tidegate(f"rows show {listed[0]['id']} --json").stdout)
    acts = shown.pop("acts")
    assert [act["act"] for act in acts][:2] == ["create campaign", "import"]
    assert shown == {**listed[0], "timeline": [], "statuses": []}
    everything = (
        tidegate("rows list --campaign reminder").stdout + tidegate(f"rows show {listed[0]['id']}").stdout
    )
    assert "988880001" not in everything


def test_rows_are_listed_by_state_and_page_by_page(tidegate: Tidegate, campaign: str) -> None:
    first = json.loads(tidegate("rows list --campaign reminder --state pending --most 2 --json").stdout)
    rest = json.loads(tidegate(f"rows list --campaign reminder --after {first[-1]['id']} --json").stdout)
    assert (len(first), len(rest)) == (2, 1)
    assert json.loads(tidegate("rows list --campaign reminder --state sent --json").stdout) == []


def test_what_is_done_already_says_so_and_exits_0(tidegate: Tidegate, campaign: str) -> None:
    for line in (
        "campaign start reminder",
        "campaign pause reminder",
        "campaign resume reminder",
        f"number pause {NUMBER} --reason quality",
        f"number resume {NUMBER}",
        "pause-all --reason storm",
        "resume-all",
        "campaign cancel reminder",
    ):
        first, again = tidegate(line, "--json"), tidegate(line)
        assert (first.exit_code, again.exit_code) == (0, 0), first.output + again.output
        assert json.loads(first.stdout)["already"] is False
        assert "already" in again.stdout or "Nothing" in again.stdout


def test_a_pause_with_the_database_away_is_kept_and_said(tidegate: Tidegate, tmp_path: Path) -> None:
    add(tidegate)
    done = tidegate(f"number pause {NUMBER} --reason storm", env={"TIDEGATE_DATABASE_URL": AWAY})
    assert done.exit_code == 0
    assert "this machine" in done.stdout
    assert "could not be reached" in done.stderr
    kept = tmp_path / "data" / "paused" / NUMBER
    assert json.loads(kept.read_text())["reason"] == "storm"
    assert tidegate(f"number resume {NUMBER}").exit_code == 0
    assert not kept.exists()


def test_a_refused_file_exits_2_and_still_prints_the_report(
    tidegate: Tidegate, campaign: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.csv").write_text("telephone,name\n+5511988880001,Ana\n")
    done = tidegate("import bad.csv --campaign reminder --json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["file_fault"]["reason"]
    again = tidegate("import audience.csv --campaign reminder --json")
    assert (again.exit_code, json.loads(again.stdout)["already"]) == (0, 3)


def test_check_shows_origins_and_the_capacity_sum(tidegate: Tidegate, campaign: str) -> None:
    done = tidegate("check --audience 230400 --latency 250ms --inbound 8 --json", env={"TIDEGATE_LEESE": "1"})
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert shown["capacity"] == {
        "rate": 64, "in_flight": 16, "statuses": 200, "database_rows": 456, "audience": 230400, "hours": 1.0
    }  # fmt: skip
    origins = {line["name"]: line["origin"] for line in shown["settings"]}
    assert (origins["database_url"], origins["lease"]) == ("TIDEGATE_DATABASE_URL", "default")
    assert any("TIDEGATE_LEESE" in finding["text"] for finding in shown["findings"])


def test_check_fails_when_a_token_cannot_be_had(tidegate: Tidegate, campaign: str) -> None:
    done = tidegate("check", env={"TOKEN": ""})
    assert done.exit_code == 2
    assert "environment variable TOKEN" in done.stdout


def test_audit_exits_5_when_an_invariant_does_not_hold(
    tidegate: Tidegate, campaign: str, database_url: str
) -> None:
    assert tidegate("audit").exit_code == 0
    damage(database_url)
    done = tidegate("audit --json")
    assert done.exit_code == 5
    assert json.loads(done.stdout)["holds"] is False
    assert "invariant 2: reminder, lane" in tidegate("audit").stdout


def damage(url: str) -> None:
    import asyncio

    from engine.postgres.pool import connect

    async def once() -> None:
        async with connect(url) as db:
            await db.execute("DELETE FROM book_delta")

    asyncio.run(once())


def test_reconcile_prints_what_it_would_do(tidegate: Tidegate, campaign: str) -> None:
    shown = json.loads(tidegate("reconcile --dry-run --json").stdout)
    assert shown == {
        "dry_run": True, "to_sent": 0, "to_pending": 0, "stay_unknown": 0, "waiting": 0, "stuck_to_unknown": 0,
        "note": "", "conditions": [], "first": None, "last": None, "then": [],
    }  # fmt: skip
    assert "dry run" in tidegate("reconcile --dry-run").stdout


def test_help_loads_neither_database_nor_screen() -> None:
    look = (
        "import sys\nfrom engine.cli import app\n"
        "try: app(['campaign', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({m for m in sys.modules} & {'asyncpg','rich','textual','httpx','engine.config'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error(database_url: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    env = {**os.environ, "TIDEGATE_DATABASE_URL": database_url}
    command = [sys.executable, "-c", START, "migrate", "--sql"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=env, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_ends_a_command_with_130_and_no_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing?sslmode=disable"
        env = {**os.environ, "TIDEGATE_DATABASE_URL": url}
        command = [sys.executable, "-c", START, "number", "list"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
            accepted, _ = silent.accept()  # it is in the middle of connecting
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            accepted.close()
    assert (process.returncode, out, err) == (130, b"", b"")
