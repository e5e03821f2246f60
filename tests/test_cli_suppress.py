"""tidegate suppress: shapes, masks and exit codes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.cli import app

ANA = "+5511988880001"
Tidegate = Callable[..., Result]


@pytest.fixture
def tidegate(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tidegate:
    monkeypatch.setenv("TIDEGATE_DATABASE_URL", database_url)
    monkeypatch.setenv("TIDEGATE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return lambda *line: CliRunner().invoke(app, ["suppress", *line])


def test_the_list_masks_phones_unless_they_are_asked_for(tidegate: Tidegate) -> None:
    assert tidegate("add", ANA, "--reason", "asked").exit_code == 0
    hidden = tidegate("list", "--json")
    assert hidden.exit_code == 0
    assert {line["phone"] for line in json.loads(hidden.stdout)} == {"+551…01"}
    shown = json.loads(tidegate("list", "--json", "--show-phones").stdout)
    assert list(shown[0]) == ["phone", "scope", "source", "detail", "at"]
    assert ANA in {line["phone"] for line in shown}
    assert ANA not in tidegate("list").stdout
    assert len(json.loads(tidegate("list", "--json", "--after", ANA).stdout)) == 0


def test_a_file_is_taken_with_its_bad_lines_on_stderr(tidegate: Tidegate) -> None:
    Path("stop.txt").write_text(f"{ANA}\n12\n")
    done = tidegate("import", "stop.txt")
    assert done.exit_code == 0
    assert done.stdout == "1 of 2 numbers suppressed (all).\n"
    assert done.stderr.startswith("line 2 ")


@pytest.mark.parametrize(
    "line", [("add", "12"), ("add", ANA, "--scope", "some"), ("import", "none.csv"), ("list", "--scope", "x")]
)
def test_what_is_wrong_ends_with_2_and_one_sentence(tidegate: Tidegate, line: tuple[str, ...]) -> None:
    done = tidegate(*line)
    assert done.exit_code == 2
    assert done.stderr.startswith("tidegate: ")
    assert done.stderr.count("\n") == 1


def test_removing_twice_says_so(tidegate: Tidegate) -> None:
    tidegate("add", ANA)
    assert "no more" in tidegate("remove", ANA).stdout
    done = tidegate("remove", ANA)
    assert (done.exit_code, "not suppressed" in done.stdout) == (0, True)
    assert tidegate("list").stdout == "Nobody is suppressed.\n"
