"""What an error of the provider means: its scope says who must wait, and whether this message was judged at all.

    Scope                   who stops                               spends an attempt
    NUMBER_THROUGHPUT       the number, for a moment                no
    ACCOUNT_THROUGHPUT      every number of the account/credential  no
    MAINTENANCE             the number, for less than a minute      no
    PAIR                    this person, for a while                yes
    TRANSIENT               this row, with full jitter              yes
    NUMBER ACCOUNT CREDENTIAL TEMPLATE COUNTRY   whatever is named, until a person looks   no
    RECIPIENT MARKETING UNLISTED                 nobody: this row has failed               yes

One table serves both paths, the HTTP answer and the `failed` webhook. Decide by `error.code`, never by the HTTP
status alone: the provider answers 130429 with 400, 403 and 429. Codes and scopes: the provider's error reference,
read 2026-09; the sentences are ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """How far an error reaches; the value is the word on the screen."""

    NUMBER_THROUGHPUT = "number throughput"
    ACCOUNT_THROUGHPUT = "account throughput"
    MAINTENANCE = "maintenance"
    PAIR = "pair"
    TRANSIENT = "transient"
    NUMBER = "number"
    ACCOUNT = "account"
    CREDENTIAL = "credential"
    TEMPLATE = "template"
    COUNTRY = "country"
    RECIPIENT = "recipient"
    MARKETING = "marketing limit"
    UNLISTED = "not known"


THROTTLES = frozenset({Scope.NUMBER_THROUGHPUT, Scope.ACCOUNT_THROUGHPUT, Scope.MAINTENANCE})
"""The number waits; the row keeps its attempt."""

STOPS = frozenset({Scope.NUMBER, Scope.ACCOUNT, Scope.CREDENTIAL, Scope.TEMPLATE, Scope.COUNTRY})
"""Wider than the row and not healed by waiting: the row goes back, a person looks."""


WAITS: Mapping[Scope, str] = {
    Scope.NUMBER_THROUGHPUT: "Retry-After, else 1 s of silence for the number, which then slows down",
    Scope.ACCOUNT_THROUGHPUT: "Retry-After, else 60 s for every number of the account",
    Scope.MAINTENANCE: "20 s for the number",
    Scope.PAIR: "4^n s for this person, at most 17 min",
    Scope.TRANSIENT: "full jitter up to 2^n s, at most 5 min",
    Scope.NUMBER: "until a person lifts the hold",
    Scope.ACCOUNT: "until a person lifts the hold",
    Scope.CREDENTIAL: "until the token changes, or a person lifts the hold",
    Scope.TEMPLATE: "until a person lifts the hold, or the template is approved again",
    Scope.COUNTRY: "until a person lifts the hold",
    Scope.RECIPIENT: "not tried again",
    Scope.MARKETING: "not before 24 h, and only with --retry-marketing-limit",
    Scope.UNLISTED: "not tried again; a run of them holds the campaign",
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """One line of the table."""

    scope: Scope
    title: str
    advice: str
    wait_s: float | None = None
    """Seconds to wait where the provider or experience gives a figure; None: the scope's own rule (see WAITS)."""

    @property
    def spends_attempt(self) -> bool:
        """Whether the answer was about this message, and not about something around it."""
        return self.scope not in THROTTLES and self.scope not in STOPS


_LIFT_TOKEN = "Put a valid token where the number's token reference points."
_CREDENTIAL = Meaning(Scope.CREDENTIAL, "The access token is not accepted", _LIFT_TOKEN)
_PERMISSION = Meaning(
    Scope.CREDENTIAL, "The token lacks a permission", "Grant whatsapp_business_messaging to the token's app."
)
_REGISTRATION = Meaning(Scope.NUMBER, "The number's registration failed", "Finish registering the number.")
_REQUEST = Meaning(
    Scope.TEMPLATE, "This kind of message is not accepted here", "Check template and category."
)
_ROW = Meaning(Scope.RECIPIENT, "A value of this message is not accepted", "Look at the row's parameters.")

UNBUILT = -1
"""Our own code, no answer of Meta's: the row's message could not be made."""

MEANINGS: Mapping[int, Meaning] = {
    UNBUILT: Meaning(
        Scope.RECIPIENT,
        "The message could not be built from this row",
        "Compare --body with the file's columns.",
    ),
    # throughput
    130429: Meaning(
        Scope.NUMBER_THROUGHPUT,
        "Rate limit of the number hit",
        "The engine slows down by itself. If it stays, lower the rate or ask Meta for more throughput.",
    ),
    # An answer 429 whose own code is not known, or that has none, goes by this one.
    429: Meaning(Scope.NUMBER_THROUGHPUT, "Too many requests", "The engine slows down by itself."),
    80007: Meaning(Scope.ACCOUNT_THROUGHPUT, "Rate limit of the account hit", "It passes; wait."),
    4: Meaning(
        Scope.ACCOUNT_THROUGHPUT, "The app reached its call limit", "It passes within the hour; wait."
    ),
    613: Meaning(Scope.ACCOUNT_THROUGHPUT, "Calls to this API exceeded the rate limit", "It passes; wait."),
    131057: Meaning(Scope.MAINTENANCE, "The account is in maintenance", "It passes within a minute; wait."),
    2494100: Meaning(Scope.MAINTENANCE, "The number is in maintenance", "It passes within minutes; wait."),
    131056: Meaning(Scope.PAIR, "Too many messages to this one person", "The row waits; others go on."),
    # transient
    2: Meaning(Scope.TRANSIENT, "The API is down or overloaded", "Retried by itself."),
    131000: Meaning(Scope.TRANSIENT, "Something went wrong at Meta", "Retried by itself."),
    131016: Meaning(Scope.TRANSIENT, "A service at Meta is unavailable", "Retried by itself."),
    1: Meaning(
        Scope.TRANSIENT, "Unknown error at Meta, or a bad request", "Retried; if it stays, look at a row."
    ),
    131053: Meaning(
        Scope.TRANSIENT,
        "Media could not be fetched or is not allowed",
        "Often passes; check the header's link.",
    ),
    132069: Meaning(Scope.TRANSIENT, "The template's flow is throttled for an hour", "Retried then.", 3600.0),
    134101: Meaning(Scope.TRANSIENT, "The template is still being synchronised", "Retried in 10 min.", 600.0),
    # number
    131048: Meaning(
        Scope.NUMBER,
        "The number is restricted: too many people blocked or reported it",
        "Stop this campaign and look at the template's quality before sending on.",
    ),
    131045: Meaning(Scope.NUMBER, "The number's registration is not valid", "Register the number again."),
    133010: Meaning(Scope.NUMBER, "The sending number is not registered", "Register the number."),
    33: Meaning(Scope.NUMBER, "The business number was deleted", "Check the number's id."),
    131037: Meaning(
        Scope.NUMBER, "The number's display name is not approved", "Get the display name approved."
    ),
    131030: Meaning(Scope.NUMBER, "A test number may only send to its own list", "Use a production number."),
    # account and credential
    131042: Meaning(Scope.ACCOUNT, "The account has a payment problem", "Mend the account's payment method."),
    131031: Meaning(Scope.ACCOUNT, "The account is locked", "Ask Meta's support."),
    368: Meaning(Scope.ACCOUNT, "The account is restricted for a policy violation", "Ask Meta's support."),
    131064: Meaning(
        Scope.ACCOUNT, "The account's messaging is limited for template misuse", "Wait for its end; ask Meta."
    ),
    131044: Meaning(Scope.ACCOUNT, "The account has a payment problem", "Mend the account's payment method."),
    134011: Meaning(
        Scope.ACCOUNT, "Payment terms wait to be accepted", "Accept them in the business manager."
    ),
    0: _CREDENTIAL,
    102: _CREDENTIAL,
    104: _CREDENTIAL,
    463: _CREDENTIAL,
    467: _CREDENTIAL,
    190: Meaning(Scope.CREDENTIAL, "The access token expired", _LIFT_TOKEN),
    3: _PERMISSION,
    10: _PERMISSION,
    131005: _PERMISSION,
    # template
    # The count is the same for every row; a format (132012, 132018 below) may be one row's, and a run of them holds.
    132000: Meaning(Scope.TEMPLATE, "The template wants another number of parameters", "Check --body."),
    132001: Meaning(
        Scope.TEMPLATE, "No such approved template in this language", "Check template and language."
    ),
    132007: Meaning(Scope.TEMPLATE, "The content breaks a policy", "Change the template."),
    132015: Meaning(Scope.TEMPLATE, "The template is paused for low quality", "Wait until Meta unpauses it."),
    132016: Meaning(Scope.TEMPLATE, "The template is disabled for good", "Use another template."),
    132068: Meaning(Scope.TEMPLATE, "The template's flow is blocked", "Mend the flow."),
    131051: _REQUEST,
    131055: _REQUEST,
    134100: _REQUEST,
    134102: Meaning(Scope.TEMPLATE, "The template is not available for this", "Check it in the manager."),
    131063: Meaning(
        Scope.TEMPLATE,
        "Marketing templates are switched off for this account",
        "Switch them on, or use another.",
    ),
    # country
    130497: Meaning(
        Scope.COUNTRY,
        "The account may not message people in this country",
        "Ask Meta; other countries go on.",
    ),
    # recipient
    131026: Meaning(
        Scope.RECIPIENT,
        "Message undeliverable",
        "Not on WhatsApp, old app, or terms not accepted. No proof of a dead number.",
    ),
    131047: Meaning(Scope.RECIPIENT, "More than 24 h since the person last wrote", "Use a template."),
    131050: Meaning(Scope.RECIPIENT, "The person stopped marketing messages", "Do not send again."),
    130472: Meaning(Scope.RECIPIENT, "The person is in an experiment of Meta's", "Resending gives the same."),
    130403: Meaning(Scope.RECIPIENT, "This business has blocked the person", "Unblock first."),
    131021: Meaning(Scope.RECIPIENT, "Sender and recipient are the same number", "Remove the row."),
    132005: Meaning(Scope.RECIPIENT, "The filled-in text is too long", "Shorten the row's parameters."),
    132012: Meaning(
        Scope.RECIPIENT,
        "A parameter has the wrong format",
        "Look at the row's values, and at --body against the template.",
    ),
    132018: Meaning(
        Scope.RECIPIENT, "The template's parameters are not accepted", "Look at the row's values."
    ),
    131062: Meaning(Scope.RECIPIENT, "People without a phone number cannot get this", "Leave the row out."),
    137000: Meaning(
        Scope.RECIPIENT, "The person's identity has changed", "Import the row again without its hash."
    ),
    131043: Meaning(Scope.RECIPIENT, "The message expired before it was delivered", "Nothing to do."),
    132008: _ROW,
    135000: _ROW,
    506: _ROW,
    131001: _ROW,
    131002: _ROW,
    131006: _ROW,
    131014: _ROW,
    131008: _ROW,
    131009: _ROW,
    100: _ROW,
    131049: Meaning(
        Scope.MARKETING,
        "Held back by the per-person marketing limit",
        "Not before 24 h; others are unaffected.",
    ),
}

_UNLISTED = Meaning(Scope.UNLISTED, "A code that Tidegate does not know", "Look at the raw answer of a row.")
_WRONG_ID = Meaning(
    Scope.NUMBER, "The number's id is wrong or the token may not use it", "Check id and token."
)


def describe(code: int) -> Meaning:
    """The table's line for a code; for a code that is not listed, a line that says so."""
    if 200 <= code <= 299:
        return _PERMISSION
    return MEANINGS.get(code, _UNLISTED)


def meaning(code: int, *, http_status: int = 400, details: str = "") -> Meaning:
    """As `describe`, with what only the whole answer tells: 100 by its details, 429 and 5xx with unknown codes."""
    if code in (100, 131009) and "object with id" in details.lower():
        return _WRONG_ID
    known = describe(code)
    if known is not _UNLISTED:
        return known
    if http_status == 429:
        return MEANINGS[429]
    return MEANINGS[131000] if http_status >= 500 else known
