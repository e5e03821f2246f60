"""Signatures of webhook bodies, with the vectors of the provider's reference, section 4.2."""

import pytest

from engine.domain.signature import sign, valid

SECRET = b"test_app_secret"
WIRE = (
    rb'{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages",'
    rb'"value":{"t":"\u00e4\u00f6\u00e5 a\u0040b.c http:\/\/x\/y"}}]}]}'
)
PLAIN = (
    rb'{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages",'
    rb'"value":{"t":"\u00e4\u00f6\u00e5 a@b.c http://x/y"}}]}]}'
)
UTF8 = PLAIN.decode().replace(r"\u00e4\u00f6\u00e5", "äöå").encode()
WIRE_SUM = "sha256=2a0ba9a74251e7263e80a5b6901d2d016e2f20bfc8a017ad2fa1e8a48cf1a7be"
PLAIN_SUM = "sha256=e824e5dc953072e5bf42ef3aa4daffd91f039cdcf93f0b8c1903629a97eb4bf2"
UTF8_SUM = "sha256=7052202fc807d2231b788638353accbcdf09e9140e626393ad37cf390b78d463"


@pytest.mark.parametrize(("body", "header"), [(WIRE, WIRE_SUM), (PLAIN, PLAIN_SUM), (UTF8, UTF8_SUM)])
def test_the_reference_vectors_hold(body: bytes, header: str) -> None:
    assert sign(SECRET, body) == header
    assert valid([SECRET], body, header)


def test_letters_written_out_on_the_way_still_verify() -> None:
    assert valid([SECRET], UTF8, PLAIN_SUM)


def test_an_emoji_is_escaped_as_two_surrogates() -> None:
    signed = sign(SECRET, rb'{"t":"\ud83d\ude00"}')
    assert valid([SECRET], '{"t":"😀"}'.encode(), signed)


def test_a_body_re_serialised_without_escaped_slashes_is_refused() -> None:
    assert not valid([SECRET], PLAIN, WIRE_SUM)


def test_each_app_may_sign_with_its_own_secret() -> None:
    assert valid([b"another", SECRET], WIRE, WIRE_SUM)
    assert not valid([b"another"], WIRE, WIRE_SUM)


def test_without_any_secret_nothing_is_valid() -> None:
    assert not valid([], WIRE, WIRE_SUM)


@pytest.mark.parametrize(
    "header",
    [None, "", "sha256=", WIRE_SUM[7:], WIRE_SUM.upper(), WIRE_SUM + "0", "sha1=" + WIRE_SUM[7:], "sha256=ä"],
)
def test_a_header_of_another_form_is_refused(header: str | None) -> None:
    assert not valid([SECRET], WIRE, header)


def test_bytes_that_are_not_text_are_refused_and_break_nothing() -> None:
    assert not valid([SECRET], b"\xff\xfe\x00", WIRE_SUM)
    assert valid([SECRET], b"\xff\xfe\x00", sign(SECRET, b"\xff\xfe\x00"))
