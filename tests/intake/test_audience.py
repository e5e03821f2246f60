"""Small files, and exactly what is taken from each, what is refused and why."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.domain.content import Content
from engine.intake.audience import Audience, Blank, Needs, Refusal, Row

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
