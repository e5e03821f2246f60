"""Small files, and exactly what is taken from each, what is refused and why."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.domain.content import Content, read_content
from engine.intake.audience import Audience, Blank, Needs, Refusal, Row
from engine.intake.fault import FileFault

NAME = Content.of_columns(["name"])
ANA, BIA, CAU = "+5511988880001", "+5511988880002", "+5511988880003"
HEAD = "phone,name\n"


@dataclass(frozen=True)
class Case:
    """`taken`: (line, phone, name). `refused`: (line, column, part of the reason). `blank`: lines."""

    says: str
    content: str | bytes
    taken: list[tuple[int, str, str]] = field(default_factory=list)
    refused: list[tuple[int, str | None, str]] = field(default_factory=list)
    blank: list[int] = field(default_factory=list)
    encoding: str = "utf-8"
    separator: str = ","
    phone_column: str = "phone"

    def __str__(self) -> str:
        return self.says


CASES = [
    Case("a plain file", f"{HEAD}{ANA},Ana\n{BIA},Bia\n", [(2, ANA, "Ana"), (3, BIA, "Bia")]),
    Case("no end of line at the end", f"{HEAD}{ANA},Ana", [(2, ANA, "Ana")]),
    Case("lines that end in CRLF", f"phone,name\r\n{ANA},Ana\r\n", [(2, ANA, "Ana")]),
    Case(
        "lines that end in CR alone", f"phone,name\r{ANA},Ana\r{BIA},Bia", [(2, ANA, "Ana"), (3, BIA, "Bia")]
    ),
    Case("a header and nothing else", HEAD),
    Case("UTF-8 with its mark", f"\ufeff{HEAD}{ANA},João\n".encode(), [(2, ANA, "João")]),
    Case("UTF-16", f"{HEAD}{ANA},João\n".encode("utf-16"), [(2, ANA, "João")], encoding="utf-16"),
    Case(
        "UTF-16, big end first",
        b"\xfe\xff" + f"{HEAD}{ANA},João\n".encode("utf-16-be"),
        [(2, ANA, "João")],
        encoding="utf-16",
    ),
    Case(
        "UTF-16 without its mark",
        f"{HEAD}{ANA},João\n".encode("utf-16-le"),
        [(2, ANA, "João")],
        encoding="utf-16-le",
    ),
    Case("Windows-1252", f"{HEAD}{ANA},João\n".encode("cp1252"), [(2, ANA, "João")], encoding="windows-1252"),
    Case("semicolons", f"phone;name\n{ANA};Lima, Ana\n", [(2, ANA, "Lima, Ana")], separator=";"),
    Case("tabs", f"phone\tname\n{ANA}\tAna\n", [(2, ANA, "Ana")], separator="\t"),
    Case("bars", f"phone|name\n{ANA}|Ana\n", [(2, ANA, "Ana")], separator="|"),
    Case("a sep= line", f"sep=;\nphone;name\n{ANA};Ana\n", [(3, ANA, "Ana")], separator=";"),
    Case(
        "a sep= line in quotes, after the mark",
        f'\ufeff"sep=|"\r\nphone|name\r\n{ANA}|Ana',
        [(3, ANA, "Ana")],
        separator="|",
    ),
    Case(
        "a separator that the header's other columns hold too",
        f"phone;name;a,b,c,d\n{ANA};Ana;x\n",
        [(2, ANA, "Ana")],
        separator=";",
    ),
    Case("headers in another case, between blanks", f" PHONE , Name\u00a0\n{ANA},Ana\n", [(2, ANA, "Ana")]),
    Case("headers with blanks inside", f"Pho ne,N A me\n{ANA},Ana\n", [(2, ANA, "Ana")]),
    Case(
        "a value that the spreadsheet was told is text",
        f'{HEAD}{ANA},="007"\n{BIA},"=""008"""\n',
        [(2, ANA, "007"), (3, BIA, "008")],
    ),
    Case("a mobile in its older spelling", f"{HEAD}11 8888-0001,Ana\n", [(2, "+551188880001", "Ana")]),
    Case("a number written from right to left", f"{HEAD}\u202b{ANA}\u202c,Ana\n", [(2, ANA, "Ana")]),
    Case("digits of another script", f"{HEAD}+٥٥١١٩٨٨٨٨٠٠٠١,Ana\n", [(2, ANA, "Ana")]),
    Case("whole numbers that a tool kept as decimals", f"{HEAD}5511988880001.0,Ana\n", [(2, ANA, "Ana")]),
    Case(
        "scientific notation that has lost nothing",
        f"{HEAD}5.511988880001E+12,Ana\n",
        [],
        [(2, "phone", "scientific")],
    ),
    Case("quoted headers", f'"phone","name"\n"{ANA}","Ana"\n', [(2, ANA, "Ana")]),
    Case(
        "a phone column of another name",
        f"name,Celular\nAna,{ANA}\n",
        [(2, ANA, "Ana")],
        phone_column="celular",
    ),
    Case(
        "columns that nobody needs, one of them without a name",
        f"x,phone,,name\n1,{ANA},,Ana\n",
        [(2, ANA, "Ana")],
    ),
    Case("blank lines before the header", f"\n\n{HEAD}{ANA},Ana\n", [(4, ANA, "Ana")], blank=[1, 2]),
    Case(
        "blank lines, and lines of separators",
        f"{HEAD}\n{ANA},Ana\n,\n   \n,,,\n\n",
        [(3, ANA, "Ana")],
        blank=[2, 4, 5, 6, 7],
    ),
    Case("a separator in quotes", f'{HEAD}{ANA},"Lima, Ana"\n', [(2, ANA, "Lima, Ana")]),
    Case("a quoted cell after a blank", f'{HEAD}{ANA}, "Lima, Ana" \n', [(2, ANA, "Lima, Ana")]),
    Case("quotes within quotes", f'{HEAD}{ANA},"Ana ""Nana"" Lima"\n', [(2, ANA, 'Ana "Nana" Lima')]),
    Case(
        "a quote in the middle of a plain cell",
        f'{HEAD}{ANA},Ana "Nana" Lima\n',
        [(2, ANA, 'Ana "Nana" Lima')],
    ),
    Case(
        "a phone that the spreadsheet was told is text",
        f'{HEAD}="{ANA}",Ana\n\'{BIA},Bia\n',
        [(2, ANA, "Ana"), (3, BIA, "Bia")],
    ),
    Case("a national number", f"{HEAD}(11) 98888-0001,Ana\n", [(2, ANA, "Ana")]),
    Case(
        "a cell over two lines that nobody needs",
        f'phone,name,note\n{ANA},Ana,"a\nb"\n{BIA},Bia,\n',
        [(2, ANA, "Ana"), (4, BIA, "Bia")],
    ),
    Case(
        "a cell of exactly 4,096 characters", f"phone,name,note\n{ANA},Ana,{'x' * 4096}\n", [(2, ANA, "Ana")]
    ),
    Case("a parameter of exactly 1,024 characters", f"{HEAD}{ANA},{'x' * 1024}\n", [(2, ANA, "x" * 1024)]),
    Case("a parameter with four blanks in a row", f"{HEAD}{ANA},Ana    Lima\n", [(2, ANA, "Ana    Lima")]),
    Case(
        "a parameter that begins with an equals sign or holds a backslash",
        f"{HEAD}{ANA},=a\\tb\n",
        [(2, ANA, "=a\\tb")],
    ),
    Case("an emoji", f"{HEAD}{ANA},Ana 🎉\n", [(2, ANA, "Ana 🎉")]),
    Case("a short row", f"{HEAD}{ANA}\n{BIA},Bia\n", [(3, BIA, "Bia")], [(2, None, "1 of the 2 cells")]),
    Case("an extra cell", f"{HEAD}{ANA},Lima, Ana\n", [], [(2, None, "3 cells where the header names 2")]),
    Case("no phone", f"{HEAD},Ana\n", [], [(2, "phone", "empty")]),
    Case(
        "no name", f"{HEAD}{ANA},\n{BIA},  \n{CAU},\u200b\n", [], [(n, "name", "is empty") for n in (2, 3, 4)]
    ),
    Case("a phone that is too short", f"{HEAD}119,Ana\n", [], [(2, "phone", "too short")]),
    Case("a superscript digit", f"{HEAD}1198888000²,Ana\n", [], [(2, "phone", "superscript two")]),
    Case(
        "scientific notation",
        'phone;name\n"5,51198888E+12";Ana\n',
        [],
        [(2, "phone", "scientific")],
        separator=";",
    ),
    Case("two phones in a cell", f"{HEAD}{ANA}/{BIA},Ana\n", [], [(2, "phone", "more than one number")]),
    Case(
        "a line break in a parameter",
        f'{HEAD}{ANA},"Ana\nLima"\n{BIA},Bia\n',
        [(4, BIA, "Bia")],
        [(2, "name", "line break")],
    ),
    Case("a tab in a parameter", f"{HEAD}{ANA},Ana\tLima\n", [], [(2, "name", "tab")]),
    Case("five blanks in a parameter", f"{HEAD}{ANA},Ana     Lima\n", [], [(2, "name", "four blanks")]),
    Case("a parameter that is too long", f"{HEAD}{ANA},{'x' * 1025}\n", [], [(2, "name", "1,024")]),
    Case(
        "an over-long cell",
        f"phone,name,note\n{ANA},Ana,{'x' * 4097}\n{BIA},Bia,y\n",
        [(3, BIA, "Bia")],
        [(2, "note", "4,096")],
    ),
    Case(
        "an over-long quoted cell",
        f'{HEAD}{ANA},"{"x" * 200_000}"\n{BIA},Bia\n',
        [(3, BIA, "Bia")],
        [(2, "name", "4,096")],
    ),
    Case(
        "an over-long line without quotes",
        f"{HEAD}{ANA},{'x' * 200_000}\n{BIA},Bia\n",
        [(3, BIA, "Bia")],
        [(2, "name", "4,096")],
    ),
    Case(
        "a line of a million separators",
        f"{HEAD}{',' * 1_000_000}\n{BIA},Bia\n",
        [(3, BIA, "Bia")],
        [(2, None, "4,096 cells")],
    ),
    Case(
        "a cell of twenty lines",
        f'phone,name,note\n{ANA},Ana,"{chr(10) * 19}"\n{BIA},Bia,\n',
        [(2, ANA, "Ana"), (22, BIA, "Bia")],
    ),
    Case(
        "a cell of more than twenty lines",
        f'phone,name,note\n{ANA},Ana,"{chr(10) * 20}"\n{BIA},Bia,\n',
        [(23, BIA, "Bia")],
        [(2, "note", "20 lines")],
    ),
    Case("a NUL byte", f"{HEAD}{ANA},A\x00na\n{BIA},Bia\n", [(3, BIA, "Bia")], [(2, "name", "NUL")]),
    Case(
        "a NUL byte in quotes",
        f'{HEAD}"{ANA}\x00",Ana\n{BIA},Bia\n',
        [(3, BIA, "Bia")],
        [(2, "phone", "NUL")],
    ),
    Case(
        "a lone surrogate in UTF-8",
        f"{HEAD}{ANA},A\ud800na\n{BIA},Bia\n".encode(errors="surrogatepass"),
        [(3, BIA, "Bia")],
        [(2, "name", "surrogate")],
    ),
    Case(
        "a lone surrogate in UTF-16",
        f"\ufeff{HEAD}{ANA},A\udc00na\n{BIA},Bia\n".encode("utf-16-le", "surrogatepass"),
        [(3, BIA, "Bia")],
        [(2, "name", "surrogate")],
        encoding="utf-16",
    ),
    Case(
        "text after a closing quote",
        f'{HEAD}{ANA},"Ana" Lima\n{BIA},Bia\n',
        [(3, BIA, "Bia")],
        [(2, "name", "closing quote")],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_of_every_file_it_is_known_what_is_taken_and_what_is_refused(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "audience.csv"
    path.write_bytes(case.content if isinstance(case.content, bytes) else case.content.encode())
    with Audience(path, Needs(case.phone_column, NAME, "BR")) as audience:
        found = list(audience)
        assert (audience.encoding, audience.heading.separator) == (case.encoding, case.separator)
    taken = [row for row in found if isinstance(row, Row)]
    refused = [row for row in found if isinstance(row, Refusal)]
    assert [(row.line, row.phone, row.params["name"]) for row in taken] == case.taken
    assert [(row.line, row.column) for row in refused] == [(line, column) for line, column, _ in case.refused]
    for row, (_, _, reason) in zip(refused, case.refused, strict=True):
        assert reason in row.reason
    assert [row.line for row in found if isinstance(row, Blank)] == case.blank
    assert {row.country for row in taken} <= {"BR"}


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


def test_a_refused_row_is_kept_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "audience.csv"
    path.write_text(f'{HEAD}119, "Lima, ""Ana"""\n', encoding="utf-8")
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
