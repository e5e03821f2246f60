"""Every spelling of a number that spreadsheets bring, and what becomes of it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.phone import Phone, PhoneRefused, UnknownCountry, country_code, read_phone, twins

ANA = Phone("+5511988880001", "BR")


@pytest.mark.parametrize(
    ("text", "country"),
    [
        ("+5511988880001", None),
        ("+55 11 98888-0001", None),
        ("+55 (11) 9.8888-0001", None),
        ("(+55) 11 98888-0001", None),
        ("+55 (0)11 98888-0001", None),
        ("5511988880001", None),
        ("00 55 11 98888-0001", None),
        ("5511988880001", "BR"),
        ("5511988880001", "US"),
        ("11988880001", "BR"),
        ("(11) 98888-0001", "BR"),
        ("011 98888-0001", "BR"),
        ("0 15 11 98888-0001", "BR"),  # with the carrier that the caller chose
        ("'+5511988880001", None),
        ('="5511988880001"', None),
        ('= "+5511988880001"', None),
        ("5511988880001.0", None),
        ("11988880001,0", "BR"),
        ("\u202a+5511988880001\u202c", None),  # copied from a contact card
        ("\ufeff+55\u00a011\u200998888\u20110001\u200b", None),
        ("+٥٥١١٩٨٨٨٨٠٠٠١", None),
        ("\uff0b\uff15\uff15\uff08\uff11\uff11\uff0998888\u22120001", None),
        ("  11 98888 0001\t", "BR"),
    ],
)
def test_every_spelling_of_one_number_is_the_same_person(text: str, country: str | None) -> None:
    assert read_phone(text, country) == ANA


@pytest.mark.parametrize(
    ("text", "country", "e164", "region"),
    [
        ("+1 416 555 0123", None, "+14165550123", "CA"),
        ("030/901820", "DE", "+4930901820", "DE"),
        ("+39 06 1234 5678", None, "+390612345678", "IT"),  # the zero belongs to the number
        ("+800 1234 5678", None, "+80012345678", ""),  # freephone of no country
        ("55 98888-0001", "BR", "+5555988880001", "BR"),
        ("+351 912 345 678", "BR", "+351912345678", "PT"),
    ],
)
def test_a_number_brings_its_own_region(text: str, country: str | None, e164: str, region: str) -> None:
    assert read_phone(text, country) == Phone(e164, region)


def test_digits_that_are_valid_at_home_and_abroad_are_taken_at_home() -> None:
    digits = "4721234567"  # Joinville's old landlines, and +47 21234567 in Oslo
    assert read_phone(digits, None).country == "NO"
    assert read_phone(digits, "BR") == Phone("+554721234567", "BR")


@pytest.mark.parametrize(
    ("text", "country", "why"),
    [
        ("", "BR", "empty"),
        (" \u200b ", "BR", "empty"),
        ("'", "BR", "empty"),
        ("11988880001", None, "add the country code"),
        ("3333-4444", "BR", "neither a number of BR nor"),
        ("119", "BR", "too short"),
        ("--", "BR", "too short"),
        ("+", None, "too short"),
        ("+5511988880001123", None, "too long"),
        ("1" * 30, "BR", "too long"),
        ("+55 11 5888-0001x", None, "letters"),
        ("+52 1 55 1234 567", None, "not a number in any"),
        ("+999 123 456 789", None, "any country's plan"),
        ("11 9888 8000²", "BR", "superscript two (U+00B2)"),
        ("11 98888-000①", "BR", "circled digit one"),
        ("+55 11 98888 0001 📱", None, "mobile phone"),
        ("5,51198888E+12", "BR", "scientific notation"),
        ("5.5e12", "BR", "scientific notation"),
        ("11988880001/11988880002", "BR", "more than one number"),
        ("11988880001; 11988880002", "BR", "more than one number"),
        ("11988880001\n11988880002", "BR", "more than one number"),
        ("11 98888-0001 ramal 2", "BR", "letters"),
        ("1-800-FLOWERS", "US", "letters"),
        ("tel:+5511988880001", None, "letters"),
        ("++5511988880001", None, "wrong places"),
        ("55+11988880001", None, "wrong places"),
        ("11*988880001", "BR", "asterisk"),
        ("11\x07988880001", "BR", "control character"),
    ],
)
def test_what_is_not_plainly_one_number_is_refused_with_the_reason(
    text: str, country: str | None, why: str
) -> None:
    with pytest.raises(PhoneRefused, match=re.escape(why)):
        read_phone(text, country)


SOUP = st.text(st.sampled_from("0123456789+ -()./;²٣\u200b'=\"eE,xé"), max_size=24)


@given(SOUP, st.sampled_from([None, "BR", "DE"]))
def test_a_text_is_one_plain_number_or_refused_without_telling_its_digits(
    text: str, country: str | None
) -> None:
    result = outcome(text, country)
    if isinstance(result, str):
        told = sum(character.isdigit() for character in result)
        assert told <= 4  # at most the code of one character
    else:
        assert re.fullmatch(r"\+[1-9][0-9]{5,14}", result.e164)
        assert read_phone(result.e164, country) == result


def outcome(text: str, country: str | None) -> Phone | str:
    try:
        return read_phone(text, country)
    except PhoneRefused as refused:
        return str(refused)


def test_a_number_does_not_show_in_a_repr() -> None:
    assert "98888" not in repr(ANA)


def test_a_country_is_two_letters_in_any_case() -> None:
    assert country_code(" br ") == "BR"


@pytest.mark.parametrize("text", ["", "BRA", "UK", "55", "ZZ"])
def test_a_country_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(UnknownCountry, match="two letters"):
        country_code(text)


@pytest.mark.parametrize(
    ("text", "country", "e164", "twin"),
    [
        ("+55 11 98888-0001", None, "+5511988880001", "+551188880001"),
        ("+55 11 8888-0001", None, "+551188880001", "+5511988880001"),
        ("(11) 8888-0001", "BR", "+551188880001", "+5511988880001"),
        ("+55 11 6700-1234", None, "+551167001234", "+5511967001234"),
        ("+52 55 1234 5678", None, "+525512345678", "+5215512345678"),
        ("+52 1 55 1234 5678", None, "+5215512345678", "+525512345678"),
        ("+54 9 11 2345-6789", None, "+5491123456789", "+541123456789"),
        ("+54 11 2345-6789", None, "+541123456789", "+5491123456789"),
    ],
)
def test_a_mobile_is_taken_in_its_older_spelling_too_as_it_was_written_and_the_other_is_known(
    text: str, country: str | None, e164: str, twin: str
) -> None:
    assert read_phone(text, country).e164 == e164
    assert twins(e164) == (twin,)
    assert twins(twin) == (e164,)


@pytest.mark.parametrize("e164", ["+551133334444", "+5511933334444", "+14165550123", "+351912345678"])
def test_nothing_is_guessed_for_landlines_nor_in_other_countries(e164: str) -> None:
    assert twins(e164) == ()
