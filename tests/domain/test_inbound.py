"""What people write: who it was, and whether it says stop."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.inbound import STOP_WORDS, StopWords, read

NUMBER = "106540352242922"
WORDS = StopWords()
EVERY_WORD = [word for words in STOP_WORDS.values() for word in words]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "from", "text", "body", "button", "payload", "interactive", "context"]),
            inner,
        )
    ),
    max_leaves=20,
)


def message(**more: Any) -> dict[str, Any]:
    return {"from": "5511988880001", "id": "wamid.IN", "timestamp": "1749416383"} | more


def text(body: str) -> dict[str, Any]:
    return message(type="text", text={"body": body})


@pytest.mark.parametrize("word", EVERY_WORD)
def test_every_default_word_says_stop(word: str) -> None:
    assert WORDS.said(read(text(word), (), NUMBER)) is not None
    assert WORDS.said(read(text(f"  {word.title()}.\n"), (), NUMBER)) is not None


@pytest.mark.parametrize("body", ["stop it please", "não quero parar", "", "   ", "non-stop", "STOP" * 40])
def test_a_word_within_a_sentence_says_nothing(body: str) -> None:
    assert WORDS.said(read(text(body), (), NUMBER)) is None


@pytest.mark.parametrize(
    "more",
    [
        {"type": "button", "button": {"payload": "STOP", "text": "No more of this"}},
        {"type": "button", "button": {"payload": "button-1", "text": "Parar"}},
        {"type": "interactive", "interactive": {"type": "button_reply", "button_reply": {"id": "baja"}}},
        {"type": "interactive", "interactive": {"list_reply": {"id": "7", "title": "Unsubscribe"}}},
    ],
)
def test_buttons_and_choices_say_stop_by_label_or_payload(more: dict[str, Any]) -> None:
    assert WORDS.said(read(message(**more), (), NUMBER)) is not None


def test_other_kinds_of_messages_say_nothing() -> None:
    image = message(type="image", image={"caption": "STOP", "id": "1"})
    reaction = message(type="reaction", reaction={"emoji": "STOP"})
    assert [WORDS.said(read(one, (), NUMBER)) for one in (image, reaction)] == [None, None]


def test_words_of_ones_own_take_the_place_of_the_defaults() -> None:
    words = StopWords(["Chega!", "  "])
    assert words.said(read(text("chega"), (), NUMBER)) == "chega"
    assert words.said(read(text("STOP"), (), NUMBER)) is None
    assert words.said(read(text(""), (), NUMBER)) is None


def test_a_message_names_its_writer_and_what_it_answers() -> None:
    read_ = read(message(context={"id": "wamid.OURS"}), (), NUMBER)
    assert (read_.number, read_.wamid, read_.phone, read_.context) == (
        NUMBER,
        "wamid.IN",
        "+5511988880001",
        "wamid.OURS",
    )
    assert "5511988880001" not in repr(read_)


def test_a_writer_with_a_user_name_alone_is_looked_up_in_the_contacts() -> None:
    unnamed = {"id": "wamid.IN", "from_user_id": "US.1349", "text": {"body": "STOP"}}
    contacts = [{"user_id": "US.7", "wa_id": "1"}, {"user_id": "US.1349", "wa_id": "16505551234"}]
    assert read(unnamed, contacts, NUMBER).phone == "+16505551234"
    assert read(unnamed, [{"user_id": "US.1349"}], NUMBER).phone is None
    assert read(unnamed, (), NUMBER).phone is None


@pytest.mark.parametrize("wa_id", ["", "abc", "US.1349", "12345", "1" * 16, "٠" * 12, None, 1.5, True])
def test_what_is_no_phone_is_none(wa_id: object) -> None:
    assert read({"from": wa_id}, (), None).phone is None


@given(JSON, JSON)
def test_nothing_that_stands_in_a_body_raises(item: object, contact: object) -> None:
    WORDS.said(read(item, [contact], NUMBER))
