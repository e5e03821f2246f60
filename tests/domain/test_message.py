"""Tokens name one try for ever; messages say what the template wants."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.message import Template, Token, masked, parse_token, template_message

tokens = st.builds(
    Token,
    campaign=st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=32),
    row=st.integers(1, 2**63 - 1),
    n=st.integers(1, 10**9 - 1),
)


@given(tokens)
def test_a_token_parses_back(token: Token) -> None:
    assert parse_token(str(token)) == token
    assert len(str(token)) <= 68
    assert str(token).isascii()


@given(st.lists(tokens, unique=True, max_size=30))
def test_two_tries_never_share_a_token(made: list[Token]) -> None:
    assert len({str(token) for token in made}) == len(made)


@given(st.one_of(st.text(), st.none(), st.integers(), st.binary(), st.lists(st.text())))
def test_a_foreign_value_is_no_token(value: object) -> None:
    assert parse_token(value) is None


@given(tokens, st.text(min_size=1, max_size=3))
def test_a_token_with_anything_around_it_is_foreign(token: Token, more: str) -> None:
    assert parse_token(more + str(token)) is None
    found = parse_token(f"{token}{more}")
    assert found is None or str(found) == f"{token}{more}"  # more digits may make another token


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tg1",
        "tg1:abc:1",
        "tg1:abc:1:1:1",
        "tg2:abc:1:1",
        "TG1:abc:1:1",
        "tg1:ABC:1:1",
        "tg1::1:1",
        "tg1:abc:0:1",
        "tg1:abc:1:0",
        "tg1:abc:01:1",
        "tg1:abc:-1:1",
        "tg1:abc:1:1\n",
        "tg1:abc:1 :1",
        "tg1:abc:1٤:1",
        "tg1:abc:9223372036854775808:1",
        "tg1:abc:1:1000000000",
        f"tg1:{'a' * 33}:1:1",
    ],
)
def test_what_only_looks_like_a_token_is_foreign(text: str) -> None:
    assert parse_token(text) is None


def test_a_message_has_what_the_provider_wants() -> None:
    message = template_message(
        "+5511988880001",
        Template("reminder_v2", "pt_BR", ("name", "date")),
        {"date": "2 March", "name": "Ana", "other": "x"},
        Token("abc", 7, 2),
    )
    assert message == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "+5511988880001",
        "type": "template",
        "template": {
            "name": "reminder_v2",
            "language": {"code": "pt_BR"},
            "components": [
                {
                    "type": "body",
                    "parameters": [{"type": "text", "text": "Ana"}, {"type": "text", "text": "2 March"}],
                }
            ],
        },
        "biz_opaque_callback_data": "tg1:abc:7:2",
    }


def test_a_template_without_variables_has_no_components() -> None:
    message = template_message("+1", Template("hello", "en"), {}, Token("abc", 1, 1))
    assert "components" not in cast(dict[str, Any], message["template"])


def test_a_missing_parameter_is_no_empty_text() -> None:
    with pytest.raises(KeyError, match="date"):
        template_message("+1", Template("hello", "en", ("date",)), {"name": "x"}, Token("abc", 1, 1))


@given(st.from_regex(r"\+[1-9][0-9]{6,14}", fullmatch=True))
def test_a_masked_number_cannot_be_called(phone: str) -> None:
    shown = masked(phone)
    assert sum(c.isdigit() for c in shown) <= 5
    assert phone not in shown


def test_what_is_too_short_to_mask_is_hidden() -> None:
    assert masked("+123456") == "…"
