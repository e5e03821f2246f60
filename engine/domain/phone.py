"""From what people type in a spreadsheet to one E.164 number, or the reason why not.

A wrong number is worse than a refused row: whatever is not plainly one phone number is refused. Reasons never
hold the number itself, nor a part of it.
"""

import re
import unicodedata
from dataclasses import dataclass, field

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumber, PhoneNumberFormat, ValidationResult

_PLAIN = re.compile(r"\+?[0-9]{4,20}")
_WRITTEN = re.compile(r"\(?\+?[0-9 ()\[\]./-]*")
_SCIENTIFIC = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?[eE][+-]?[0-9]+")
_WHOLE_FLOAT = re.compile(r"(\+?[0-9]+)[.,]0")
_TWO_NUMBERS = re.compile(r"[0-9](?:[^0-9/]*[0-9]){5,}[^0-9/]*/|[;,|&]|\n|\r")
_SPREADSHEET_TEXT = re.compile(r'=\s*"(.*)"', re.DOTALL)
_APOSTROPHES = "'`\u2018\u2019"
_ALIKE = {  # fullwidth and small forms, the minus sign, the tabulator
    0xFF0B: "+",
    0xFE62: "+",
    0xFF08: "(",
    0xFF09: ")",
    0xFF0E: ".",
    0xFF0F: "/",
    0x2212: "-",
    0x9: " ",
}

_MISSING = "is empty: the row has no phone number"
_IMPOSSIBLE = {
    ValidationResult.TOO_SHORT: "is too short for a phone number",
    ValidationResult.IS_POSSIBLE_LOCAL_ONLY: "is too short: the area code is missing",
    ValidationResult.TOO_LONG: "is too long for a phone number",
    ValidationResult.INVALID_LENGTH: "has a length that no number of its country has",
    ValidationResult.INVALID_COUNTRY_CODE: "begins with a country code that does not exist",
}


@dataclass(frozen=True, slots=True)
class Phone:
    """A valid number: `e164` with its +, and its region as ISO 3166 alpha-2, or '' when it belongs to none."""

    e164: str = field(repr=False)  # a full number must not reach a log by accident
    country: str


class PhoneRefused(ValueError):
    """The text is not one valid phone number. The message says why, as the end of "the phone column …"."""


class UnknownCountry(ValueError):
    """Not an ISO 3166 alpha-2 code of a country that has phone numbers."""


def country_code(text: str) -> str:
    """`text` as an upper-case ISO 3166 alpha-2 code. Raises UnknownCountry."""
    code = text.strip().upper()
    if code not in phonenumbers.SUPPORTED_REGIONS:
        raise UnknownCountry(
            f"There is no country {text.strip()[:20]!r}: write two letters of ISO 3166, like BR."
        )
    return code


def read_phone(text: str, country: str | None = None) -> Phone:
    """The number that `text` stands for. Raises PhoneRefused.

    With a + it is international. Without one it is a national number of `country` (as from `country_code`)
    when that is valid, else an international one when that is; without `country` only the latter.
    """
    written = text if _PLAIN.fullmatch(text) else _clean(text)
    if written.startswith("+"):
        return _first_valid([(written, None)], "is not a number in any country's plan")
    candidates: list[tuple[str, str | None]] = [(written, country)] if country else []
    candidates.append((f"+{written}", None))
    if written.startswith("00"):  # the ITU's own prefix, where a + could not be typed
        candidates.append((f"+{written[2:]}", None))
    if country is None:
        return _first_valid(
            candidates, "has no + and is no international number: add the country code, or --country"
        )
    return _first_valid(candidates, f"is neither a number of {country} nor an international one")


def _first_valid(candidates: list[tuple[str, str | None]], otherwise: str) -> Phone:
    reason = otherwise
    for place, (digits, country) in enumerate(candidates):
        try:
            number = phonenumbers.parse(digits, country)
        except NumberParseException as error:
            if place == 0:
                reason = _unparsed(error, otherwise)
            continue
        if phonenumbers.is_valid_number(number) or _older_spelling(number):
            return _phone(number)
        if place == 0:
            reason = _IMPOSSIBLE.get(phonenumbers.is_possible_number_with_reason(number), otherwise)
    raise PhoneRefused(reason)


def _phone(number: PhoneNumber) -> Phone:
    country = phonenumbers.region_code_for_number(number)
    return Phone(
        phonenumbers.format_number(number, PhoneNumberFormat.E164),
        country
        if country in phonenumbers.SUPPORTED_REGIONS
        else "",  # "001": satellites, freephone of no country
    )


def _older_spelling(number: PhoneNumber) -> bool:
    """Whether it is a mobile as it was written before its country's plan changed, and as WhatsApp may still know it.

    Brazil's without the ninth digit, Mexico's with the 1: plans no longer list them, people's address books do.
    """
    if number.country_code not in (_BRAZIL, _MEXICO_CODE):
        return False
    e164 = phonenumbers.format_number(number, PhoneNumberFormat.E164)
    return any(phonenumbers.is_valid_number(phonenumbers.parse(twin)) for twin in twins(e164))


def _unparsed(error: NumberParseException, otherwise: str) -> str:
    match error.error_type:
        case NumberParseException.TOO_LONG:
            return _IMPOSSIBLE[ValidationResult.TOO_LONG]
        case NumberParseException.TOO_SHORT_NSN | NumberParseException.TOO_SHORT_AFTER_IDD:
            return _IMPOSSIBLE[ValidationResult.TOO_SHORT]
        case NumberParseException.NOT_A_NUMBER:
            return _IMPOSSIBLE[ValidationResult.TOO_SHORT]
    return otherwise


def _clean(text: str) -> str:
    """Only digits, after a + if one was written. Raises PhoneRefused for all that is not plainly one number."""
    text = _ascii(text).strip()
    if quoted := _SPREADSHEET_TEXT.fullmatch(text):
        text = quoted[1].strip()
    text = text.lstrip(_APOSTROPHES).strip()
    if not text:
        raise PhoneRefused(_MISSING)
    if _SCIENTIFIC.fullmatch(text):
        raise PhoneRefused("is in scientific notation, which has lost digits: export the column as text")
    if whole := _WHOLE_FLOAT.fullmatch(text):  # a column of whole numbers that a tool kept as floats
        text = whole[1]
    if _TWO_NUMBERS.search(text):
        raise PhoneRefused("holds more than one number: give each its own row")
    if not _WRITTEN.fullmatch(text):
        raise PhoneRefused(_odd(text))
    return ("+" if "+" in text else "") + re.sub("[^0-9]", "", text)


def _ascii(text: str) -> str:
    """`text` without what cannot be seen, its digits, dashes and blanks in ASCII; all else as it is."""
    if text.isascii():
        return text.replace("\t", " ")
    # Not NFKC: that would turn a superscript, a footnote's mark, into a digit of the number.
    return "".join(map(_ascii_character, text.translate(_ALIKE)))


def _ascii_character(character: str) -> str:
    match unicodedata.category(character):
        case "Cf":
            return ""
        case "Nd":
            return str(unicodedata.decimal(character))
        case "Pd":
            return "-"
        case "Zs":
            return " "
    return character


def _odd(text: str) -> str:
    """Why `text` is no number, by the first character that has no place in one."""
    for character in text:
        if character.isalpha():
            return "holds letters"
        if not re.fullmatch(r"[0-9 ()\[\]./+-]", character):
            name = unicodedata.name(character, "a control character").lower()
            return f"holds a character that no phone number has: {name} (U+{ord(character):04X})"
    return "has its signs in the wrong places: write + and digits"


_BRAZIL, _MEXICO_CODE = 55, 52
_BRAZIL_MOBILE = re.compile(r"\+55([1-9][1-9])(9?)([6-9][0-9]{7})")
_MEXICO = re.compile(r"\+52(1?)([2-9][0-9]{9})")
_ARGENTINA = re.compile(r"\+54(9?)([1-3][0-9]{9})")


def twins(e164: str) -> tuple[str, ...]:
    """The other spellings under which WhatsApp may know the same person; without `e164` itself.

    Brazil's mobiles with and without the ninth digit, Mexico's with and without the 1, Argentina's with and without
    the 9. Never of a Brazilian landline, nor one that would be somebody's landline: there the plans overlap. In
    Mexico and Argentina no two subscribers share the ten digits behind, so a twin is the same person or nobody.
    """
    if match := _BRAZIL_MOBILE.fullmatch(e164):
        return (f"+55{match[1]}{'' if match[2] else '9'}{match[3]}",)
    if match := _MEXICO.fullmatch(e164):
        return (f"+52{'' if match[1] else '1'}{match[2]}",)
    if match := _ARGENTINA.fullmatch(e164):
        return (f"+54{'' if match[1] else '9'}{match[2]}",)
    return ()
