"""What fills a template: the shapes that are read, the request that they become, and what is refused."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from engine.domain.content import Content, ContentRefused, parse_content, read_content, write_content
from engine.domain.message import Template, Token, template_message
from engine.domain.parameter import Kind, body_too_long, unfit

PARAMS = {
    "name": "Ana",
    "date": "12/03",
    "photo": "https://example.org/a.png",
    "code": "SAVE20",
    "ref": "a/b?c=1",
}

SHAPES: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("nothing", {}, []),
    (
        "a body of columns, as the flag has it",
        {"body": ["name", "date"]},
        [
            {
                "type": "body",
                "parameters": [{"type": "text", "text": "Ana"}, {"type": "text", "text": "12/03"}],
            }
        ],
    ),
    (
        "a body of a column and a constant, with names",
        {"body": [{"column": "name", "name": "first_name"}, {"text": "São Paulo", "name": "city"}]},
        [
            {
                "type": "body",
                "parameters": [
                    {"type": "text", "parameter_name": "first_name", "text": "Ana"},
                    {"type": "text", "parameter_name": "city", "text": "São Paulo"},
                ],
            }
        ],
    ),
    (
        "a header of text",
        {"header": {"type": "text", "column": "name"}},
        [{"type": "header", "parameters": [{"type": "text", "text": "Ana"}]}],
    ),
    (
        "a header of text without its type",
        {"header": {"text": "Today", "name": "when"}},
        [{"type": "header", "parameters": [{"type": "text", "parameter_name": "when", "text": "Today"}]}],
    ),
    (
        "a picture by a link from a column",
        {"header": {"type": "image", "link": {"column": "photo"}}},
        [
            {
                "type": "header",
                "parameters": [{"type": "image", "image": {"link": "https://example.org/a.png"}}],
            }
        ],
    ),
    (
        "a film by the id of an upload",
        {"header": {"type": "video", "id": "1166846181421424"}},
        [{"type": "header", "parameters": [{"type": "video", "video": {"id": "1166846181421424"}}]}],
    ),
    (
        "a document with a name for its file",
        {"header": {"type": "document", "link": {"column": "photo"}, "filename": {"text": "ticket.pdf"}}},
        [
            {
                "type": "header",
                "parameters": [
                    {
                        "type": "document",
                        "document": {"link": "https://example.org/a.png", "filename": "ticket.pdf"},
                    }
                ],
            }
        ],
    ),
    (
        "all kinds of buttons, in the order of their places",
        {
            "buttons": [
                {"type": "copy_code", "index": 2, "column": "code"},
                {"type": "url", "index": 0, "column": "ref"},
                {"type": "quick_reply", "index": 1, "text": "STOP"},
            ]
        },
        [
            {
                "type": "button",
                "sub_type": "url",
                "index": "0",
                "parameters": [{"type": "text", "text": "a/b?c=1"}],
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
                "parameters": [{"type": "coupon_code", "coupon_code": "SAVE20"}],
            },
        ],
    ),
]


@pytest.mark.parametrize(("written", "components"), [s[1:] for s in SHAPES], ids=[s[0] for s in SHAPES])
def test_each_shape_becomes_its_components(
    written: Mapping[str, Any], components: list[dict[str, Any]]
) -> None:
    template = Template("t", "pt_BR", content=read_content(written))
    body = template_message("+5511988880001", template, PARAMS, Token("r", 1, 1))
    told: Any = body["template"]
    assert told.get("components", []) == components
    assert ("components" in told) == bool(components)


@pytest.mark.parametrize("written", [s[1] for s in SHAPES], ids=[s[0] for s in SHAPES])
def test_what_is_written_down_reads_back_the_same(written: Mapping[str, Any]) -> None:
    content = read_content(written)
    assert parse_content(msgspec.json.decode(msgspec.json.encode(write_content(content)))) == content


def test_columns_alone_say_the_same_as_a_content_of_columns() -> None:
    plain, whole = (
        Template("t", "pt_BR", ("name", "date")),
        Template("t", "pt_BR", (), Content.of_columns(("name", "date"))),
    )
    token = Token("r", 1, 1)
    assert template_message("+55", plain, PARAMS, token) == template_message("+55", whole, PARAMS, token)


def test_a_row_without_a_needed_column_is_an_error_that_names_it() -> None:
    template = Template("t", "pt_BR", content=read_content({"header": {"column": "lost"}}))
    with pytest.raises(KeyError, match="lost"):
        template_message("+5511988880001", template, PARAMS, Token("r", 1, 1))


def test_a_column_is_checked_for_every_place_that_it_fills() -> None:
    content = read_content(
        {"body": ["code", "name", "code"], "buttons": [{"type": "copy_code", "column": "code"}]}
    )
    assert content.columns() == {"code": (Kind.BODY, Kind.CODE), "name": (Kind.BODY,)}


REFUSED: list[tuple[dict[str, Any], str, str | None]] = [
    ({"footer": {}}, "knows no 'footer', only header, body, buttons", "footer"),
    ({"header": "x"}, "'header' must be a table", "header"),
    (
        {"header": {"type": "audio", "link": "https://x.org"}},
        "'audio' is none of text, image, video, document",
        "type",
    ),
    ({"header": {"type": "image"}}, "an image needs a link or the id", "header"),
    ({"header": {"type": "image", "link": "https://x.org", "id": "1"}}, "one of them", "header"),
    (
        {"header": {"type": "image", "link": "https://x.org", "filename": "a"}},
        "knows no 'filename'",
        "filename",
    ),
    ({"header": {"type": "image", "link": "ftp://x.org"}}, "header's image link is no link", "text"),
    ({"header": {"type": "image", "link": "https://a:b@x.org"}}, "a password in it", "text"),
    ({"header": {"type": "video", "id": "12a"}}, "no media id", "text"),
    ({"header": {"type": "document", "id": "12", "filename": "a/b.pdf"}}, "is a path", "text"),
    ({"header": {"text": "x" * 61}}, "the header is longer than the 60 characters", "text"),
    ({"header": {}}, "the header needs a column or a text", None),
    ({"header": {"column": "a", "text": "b"}}, "one of them", None),
    ({"body": "name"}, "'body' must be a list", "body"),
    ({"body": [{"column": "name", "colour": "red"}]}, "the body's variable 1 knows no 'colour'", "colour"),
    ({"body": [{"column": ""}]}, "names no column", "column"),
    ({"body": [{"text": 5}]}, "write it in quotes", "text"),
    ({"body": [{"text": " "}]}, "the body's variable 1 is empty", "text"),
    ({"body": [{"text": "a\nb"}]}, "line break", "text"),
    ({"body": [{"text": "a\0b"}]}, "NUL", "text"),
    ({"body": [{"text": "a     b"}]}, "four blanks", "text"),
    ({"body": [{"column": "name", "name": "First"}]}, "lower-case letters", "name"),
    ({"body": [{"column": "a", "name": "x"}, "b"]}, "some variables have a name and some have none", None),
    ({"header": {"column": "a"}, "body": [{"column": "a", "name": "x"}]}, "some variables have a name", None),
    (
        {"body": [{"column": "a", "name": "x"}, {"column": "b", "name": "x"}]},
        "two variables of the body",
        "name",
    ),
    ({"buttons": [{"type": "call", "text": "x"}]}, "'call' is none of url, quick_reply, copy_code", "type"),
    ({"buttons": [{"type": "url", "text": "x", "index": "0"}]}, "no number from 0 to 9", "index"),
    ({"buttons": [{"type": "url", "text": "x", "index": 10}]}, "no number from 0 to 9", "index"),
    ({"buttons": [{"type": "url", "text": "x", "index": 0}] * 2}, "two buttons have the index 0", "index"),
    (
        {"buttons": [{"type": "copy_code", "text": "A"}, {"type": "copy_code", "text": "B"}]},
        "at most",
        "type",
    ),
    (
        {"buttons": [{"type": "copy_code", "text": "x" * 21}]},
        "button 0 (copy_code) is longer than the 20",
        "text",
    ),
    ({"buttons": [{"type": "url", "text": "a b"}]}, "holds a blank", "text"),
]


@pytest.mark.parametrize(("written", "sentence", "key"), REFUSED)
def test_what_cannot_be_is_refused_with_the_key_at_fault(
    written: Mapping[str, Any], sentence: str, key: str | None
) -> None:
    with pytest.raises(ContentRefused) as raised:
        read_content(written)
    assert sentence in str(raised.value)
    assert raised.value.key == key
    assert "\n" not in str(raised.value)


FITS: list[tuple[Kind, str, str | None]] = [
    (Kind.BODY, "x" * 1024, None),
    (Kind.BODY, "x" * 1025, "1,024 characters"),
    (Kind.BODY, "a    b", None),
    (Kind.BODY, "a\u00a0\u00a0\u00a0\u00a0\u00a0b", "four blanks"),
    (Kind.BODY, "a\u2028b", "line break"),
    (Kind.BODY, "\u200b", "is empty"),
    (Kind.HEADER, "x" * 60, None),
    (Kind.HEADER, "a\tb", "tab"),
    (Kind.URL, "x" * 2000, None),
    (Kind.URL, "x" * 2001, "2,000 characters"),
    (Kind.URL, "a\u00a0b", "blank"),
    (Kind.PAYLOAD, "not today", None),
    (Kind.PAYLOAD, "x" * 257, "256 characters"),
    (Kind.PAYLOAD, "a\nb", "control character"),
    (Kind.CODE, "x" * 20, None),
    (Kind.CODE, "A B", "blank"),
    (Kind.LINK, "https://example.org/a.png?x=1", None),
    (Kind.LINK, "example.org/a.png", "no link"),
    (Kind.LINK, "https://", "no link"),
    (Kind.LINK, "https://[::1", "no link"),
    (Kind.LINK, "https://example.org/a b.png", "no link"),
    (Kind.MEDIA_ID, "1166846181421424", None),
    (Kind.MEDIA_ID, "١٢", "no media id"),
    (Kind.FILENAME, "fatura março.pdf", None),
    (Kind.FILENAME, "a\\b.pdf", "path"),
    (Kind.FILENAME, "", "is empty"),
]


@pytest.mark.parametrize(("kind", "value", "reason"), FITS)
def test_each_place_has_its_own_rules(kind: Kind, value: str, reason: str | None) -> None:
    found = unfit(value, kind)
    assert found is None if reason is None else found is not None and reason in found


@pytest.mark.parametrize(
    ("values", "fits"), [(["x" * 1024], True), (["x" * 512] * 2, True), (["x" * 513] * 2, False)]
)
def test_a_bodys_values_may_not_be_longer_together_than_a_body(values: list[str], fits: bool) -> None:
    assert (body_too_long(values) is None) is fits
