"""Whether a webhook body really comes from Meta: HMAC-SHA256 with an app's secret, over the bytes as received."""

import hmac
import re
from collections.abc import Sequence

_PREFIX = "sha256="
_NON_ASCII = re.compile(r"[^\x00-\x7f]")


def sign(secret: bytes, body: bytes) -> str:
    """The value of `X-Hub-Signature-256` for `body`: `sha256=` and 64 lower-case hex digits."""
    return _PREFIX + hmac.digest(secret, body, "sha256").hex()


def valid(secrets: Sequence[bytes], body: bytes, header: str | None) -> bool:
    """Whether `header` signs `body` with any of the apps' `secrets`; each app signs with its own.

    Meta signs a form in which everything beyond ASCII is written `\\uXXXX`, lower-case. What arrives is normally
    that form already. A proxy on the way may have written the letters out, so a mismatch is tried once more
    over the escaped text. The time taken does not depend on where two signatures differ.
    """
    given = (header or "").encode("latin-1", "replace")
    if _any_match(secrets, body, given):
        return True
    if body.isascii():
        return False
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return False
    return _any_match(secrets, _NON_ASCII.sub(_escaped, text).encode(), given)


def _any_match(secrets: Sequence[bytes], body: bytes, given: bytes) -> bool:
    """Whether `given` is the header for `body` with one of `secrets`. All of them are tried, always."""
    found = False
    for secret in secrets:
        found |= hmac.compare_digest(sign(secret, body).encode(), given)
    return found


def _escaped(match: re.Match[str]) -> str:
    # Beyond the basic plane JSON writes two surrogates, so the units are those of UTF-16.
    return re.sub("....", r"\\u\g<0>", match[0].encode("utf-16-be").hex())
