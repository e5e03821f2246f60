"""The grammar against the csv module as its oracle, and the account of every record."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.content import Content
from engine.intake.audience import Audience, Blank, Needs, Refusal, Row
from engine.intake.fault import FileFault
from engine.intake.records import PIECE_CHARS, Record, Records

NAME = Content.of_columns(["name"])

CELL = st.text(st.sampled_from('ab "\n\r,;é🎉'), max_size=8)
TABLE = st.lists(st.lists(CELL, min_size=2, max_size=4), max_size=8)
SOUP = st.text(st.sampled_from('a",\n\r ;1+5'), max_size=80)


@given(TABLE, st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_the_csv_module_writes_is_read_back_cell_for_cell(
    table: list[list[str]], separator: str, end: str
) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(table)
    written.seek(0)
    assert [record.cells for record in Records(written, separator)] == table


@given(SOUP)
def test_records_hold_every_character_of_the_text_once_and_in_order(text: str) -> None:
    read, fault = records_of(text)
    whole = "".join(record.raw for record in read)
    if fault is None:
        assert whole == text
    else:
        assert text.startswith(whole)
        assert fault.line is not None
        assert '"' in lines_of(text)[fault.line - 1]
    ahead = [sum(len(before.raw) for before in read[:place]) for place in range(len(read))]
    assert [record.line for record in read] == [len(lines_of(text[:start])) + 1 for start in ahead]


def records_of(text: str) -> tuple[list[Record], FileFault | None]:
    read: list[Record] = []
    try:
        for record in Records(io.StringIO(text, newline=""), ","):
            read.append(record)
    except FileFault as fault:
        return read, fault
    return read, None


def lines_of(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


@pytest.mark.parametrize("short", range(-2, 3))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_lines_that_end_where_a_piece_ends_are_counted_once(short: int, end: str, quote: str) -> None:
    cell = "x" * (PIECE_CHARS - short - 2 * len(quote))
    records = list(Records(io.StringIO(f"{quote}{cell}{quote}{end}next{end}", newline=""), ","))
    assert [(record.line, record.cells) for record in records[1:]] == [(2, ["next"])]


ROWS = [
    "+5511988880001,Ana", "(11) 98888-0001,Ana", "+5511988880002,Bia", "+5511988880003,", ",", "", "  ", "119,Cau",
    "+5511988880004", '+5511988880005,"a\nb"', '+5511988880006,"a""b"', "+5511988880007,x,y", "+5511988880008,\x00",
]  # fmt: skip


@given(rows=st.lists(st.sampled_from(ROWS), max_size=30))
def test_every_record_is_a_row_a_refusal_or_a_blank(
    rows: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "accounted.csv"
    path.write_text("".join(f"{line}\n" for line in ["phone,name", *rows]), encoding="utf-8")
    with Audience(path, Needs("phone", NAME, "BR")) as audience:
        found = list(audience)
    kinds = [type(each) for each in found]
    assert kinds.count(Row) + kinds.count(Refusal) + kinds.count(Blank) == len(rows)
    assert audience.heading_records == 1
    assert [each.line for each in found] == first_lines(rows)


def first_lines(rows: list[str]) -> list[int]:
    places, line = [], 2
    for row in rows:
        places.append(line)
        line += row.count("\n") + 1
    return places


def test_the_encoding_is_decided_by_the_whole_file_not_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_bytes(
        b"phone,name\n" + b"+5511988880001,Ana\n" * 200_000 + "+5511988880002,João\n".encode("cp1252")
    )
    with Audience(path, Needs("phone", NAME, None)) as audience:
        assert audience.encoding == "windows-1252"
