"""Faults of a whole file: it is refused, with the line and what to do; and what of its encoding is believed."""

from pathlib import Path

import pytest

from engine.domain.content import Content
from engine.intake.audience import Audience, Needs, Row
from engine.intake.fault import FileFault

NAME = Content.of_columns(["name"])
ANA, BIA, CAU = "+5511988880001", "+5511988880002", "+5511988880003"
HEAD = "phone,name\n"


FAULTS: list[tuple[str, str | bytes, int | None, str]] = [
    ("nothing at all", "", 1, "empty"),
    ("blank lines alone", "\n\n,\n", 1, "empty"),
    (
        "no phone column",
        "telefone,name\nx,y\n",
        1,
        "no column 'phone'; name the right one with --phone-column",
    ),
    ("no header", f"{ANA},Ana\n{BIA},Bia\n", 1, "looks like a row"),
    (
        "no column for the template",
        f"phone,date\n{ANA},x\n",
        1,
        "no column 'name', which the campaign's template needs",
    ),
    (
        "neither the phone's column nor the template's",
        "Telefone,Nome\nx,y\n",
        1,
        "no column 'phone', nor 'name', which the campaign's template needs; name the right one with --phone-column",
    ),
    ("a header twice", f"phone,name,Name \n{ANA},a,b\n", 1, "two columns are called 'Name'"),
    ("an odd separator", f"sep=^\nphone^name\n{ANA}^Ana\n", 1, "sep= line"),
    (
        "a quote that is never closed",
        f'{HEAD}{BIA},Bia\n{ANA},"Ana\n' + f"{CAU},Cau\n" * 50,
        3,
        "never closed",
    ),
    ("a quote that meets the next one", f'{HEAD}{ANA},"Ana\n{BIA},"Bia"\n', 2, "never closed"),
    ("a quote that opens in a record's second line", f'{HEAD}"{ANA}\n","Ana\n', 3, "never closed"),
    ("a quote that is never closed in the header", f'phone,"name\n{ANA},Ana\n', 1, "never closed"),
    (
        "UTF-8 with one line of Windows-1252",
        (f"{HEAD}{ANA},João\n" * 9).encode() + b"x,Jo\xe3o\n",
        19,
        "but not this line",
    ),
    ("UTF-16 that was cut short", f"{HEAD}{ANA},Ana\n".encode("utf-16")[:-1], 2, "cut short"),
    ("UTF-32", f"{HEAD}{ANA},Ana\n".encode("utf-32"), 1, "UTF-32"),
    (
        "bytes that no encoding has",
        f"{HEAD}{ANA},Ana ".encode() + b"\x81\n",
        2,
        "neither UTF-8 nor Windows-1252",
    ),
    ("Cyrillic", f"{HEAD}{ANA},Владимир\n".encode("cp1251") * 9, 2, "no Western language"),
    ("a DOS file", f"{HEAD}{ANA},João Conceição\n".encode("cp850") * 30, 2, "no Western language"),
]


@pytest.mark.parametrize(
    ("content", "line", "reason"), [fault[1:] for fault in FAULTS], ids=[f[0] for f in FAULTS]
)
def test_a_fault_of_the_file_refuses_it_naming_the_line(
    content: str | bytes, line: int | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "audience.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileFault) as raised, Audience(path, Needs("phone", NAME, "BR")) as audience:
        list(audience)
    assert raised.value.line == line
    assert reason in raised.value.reason
    assert "98888" not in raised.value.reason


def test_a_declared_encoding_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "audience.csv"
    path.write_bytes(f"{HEAD}{ANA},Владимир\n".encode("cp1251"))
    with Audience(path, Needs("phone", NAME, None, "cp1251")) as audience:
        assert [row.params["name"] for row in audience if isinstance(row, Row)] == ["Владимир"]


@pytest.mark.parametrize(
    ("declared", "reason"), [("ascii", "not ascii"), ("klingon", "no text encoding"), ("hex", "no text")]
)
def test_a_declared_encoding_that_does_not_fit_refuses_the_file(
    declared: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "audience.csv"
    path.write_text(f"{HEAD}{ANA},João\n", encoding="utf-8")
    with pytest.raises(FileFault, match=reason):
        Audience(path, Needs("phone", NAME, None, declared))
