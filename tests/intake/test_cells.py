"""What is checked in a cell, what is taken off it, and what is kept of a refused row."""

from pathlib import Path

import pytest

from engine.domain.content import Content, read_content
from engine.intake.audience import Audience, Needs, Refusal, Row

NAME = Content.of_columns(["name"])
ANA = "+5511988880001"


def test_a_refused_row_is_kept_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "audience.csv"
    path.write_text('phone,name\n119, "Lima, ""Ana"""\n', encoding="utf-8")
    with Audience(path, Needs("phone", NAME, "BR")) as audience:
        (refusal,) = audience
    assert isinstance(refusal, Refusal)
    assert refusal.raw == '119, "Lima, ""Ana"""\n'


PLACES = read_content(
    {
        "header": {"type": "image", "link": {"column": "photo"}},
        "body": ["name", {"text": "x" * 1_000}],
        "buttons": [{"type": "url", "column": "code"}, {"type": "copy_code", "column": "code"}],
    }
)
PHOTO = "https://example.org/a.png"

COMPONENTS: list[tuple[str, str, str, str | None, str | None]] = [
    ("Ana", PHOTO, "A1", None, None),
    ("Ana", "example.org/a.png", "A1", "photo", "is no link"),
    ("Ana", "", "A1", "photo", "is empty"),
    ("Ana", PHOTO, "A 1", "code", "holds a blank"),
    ("Ana", PHOTO, "A" * 21, "code", "20 characters that a code to copy"),
    ("x" * 24, PHOTO, "A1", None, None),
    ("x" * 25, PHOTO, "A1", None, "together longer than the 1,024"),
]


@pytest.mark.parametrize(("name", "photo", "code", "column", "reason"), COMPONENTS)
def test_every_column_of_a_template_is_checked_for_its_place(
    name: str, photo: str, code: str, column: str | None, reason: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "audience.csv"
    path.write_text(f"phone,name,photo,code\n{ANA},{name},{photo},{code}\n", encoding="utf-8")
    with Audience(path, Needs("phone", PLACES, None)) as audience:
        (found,) = audience
    if reason is None:
        assert isinstance(found, Row)
        assert found.params == {"name": name, "photo": photo, "code": code}
    else:
        assert isinstance(found, Refusal)
        assert found.column == column
        assert reason in found.reason


@pytest.mark.parametrize(
    ("cells", "cleaned"),
    [
        (f"{ANA},Ana", []),
        (f"'{ANA},Ana", [("phone", "marked as text")]),
        (f'="{ANA}",="Ana"', [("phone", "marked as text"), ("name", "marked as text")]),
        ("5511988880001.0,Ana", [("phone", "decimals")]),
        (f"\u200b{ANA},Ana", [("phone", "cannot be seen")]),
        ("+٥٥١١٩٨٨٨٨٠٠٠١,Ana", [("phone", "another script")]),
        (f"{ANA},O'Hara", []),
    ],
)
def test_what_was_taken_off_a_cell_is_told(
    cells: str, cleaned: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = tmp_path / "audience.csv"
    path.write_text(f"phone,name\n{cells}\n", encoding="utf-8")
    with Audience(path, Needs("phone", NAME, None)) as audience:
        (row,) = audience
    assert isinstance(row, Row)
    assert [cell.column for cell in row.cleaned] == [column for column, _ in cleaned]
    for cell, (_, part) in zip(row.cleaned, cleaned, strict=True):
        assert part in cell.reason
        assert "98888" not in cell.reason
