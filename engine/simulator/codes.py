"""What Meta says with each error code: title, details and the HTTP status it usually comes with.

From section 2 of the reference (the status column is Meta's of about 2024; newer pages dropped it). A rule
of a scenario may override each of the three.
"""

from __future__ import annotations

from typing import NamedTuple


class Wording(NamedTuple):
    """The texts and the HTTP status of one error code."""

    http_status: int
    title: str
    details: str


UNKNOWN = Wording(400, "Unknown error", "An unknown error occurred.")

CODES: dict[int, Wording] = {
    0: Wording(401, "AuthException", "Unable to authenticate the app user."),
    1: Wording(400, "API Unknown", "Invalid request or possible server error."),
    2: Wording(503, "API Service", "Temporary due to downtime or due to being overloaded."),
    3: Wording(500, "API Method", "Capability or permissions issue."),
    4: Wording(400, "API Too Many Calls", "The app has reached its API call rate limit."),
    10: Wording(403, "Permission Denied", "Permission is either not granted or has been removed."),
    33: Wording(400, "Parameter value is not valid", "The business phone number has been deleted."),
    100: Wording(
        400, "Invalid parameter", "The request included one or more unsupported or misspelled parameters."
    ),
    190: Wording(401, "Error validating access token", "The access token has expired."),
    200: Wording(403, "API Permission", "Permission is either not granted or has been removed."),
    368: Wording(403, "Temporarily blocked for policies violations", "The account has been restricted."),
    613: Wording(429, "Calls to this api have exceeded the rate limit.", "Calls to this api are too many."),
    80007: Wording(400, "Rate limit issues", "The WhatsApp Business Account has reached its rate limit."),
    130429: Wording(429, "Rate limit hit", "Cloud API message throughput has been reached."),
    130472: Wording(400, "User's number is part of an experiment", "Message was not sent: experiment."),
    130497: Wording(
        403, "Business account is restricted from messaging users in this country.", "Country blocked."
    ),
    131000: Wording(500, "Something went wrong", "Message failed to send due to an unknown error."),
    131005: Wording(403, "Access denied", "Permission is either not granted or has been removed."),
    131008: Wording(400, "Required parameter is missing", "The request is missing a required parameter."),
    131009: Wording(400, "Parameter value is not valid", "One or more parameter values are invalid."),
    131016: Wording(500, "Service unavailable", "A service is temporarily unavailable."),
    131021: Wording(400, "Recipient cannot be sender", "Sender and recipient phone number is the same."),
    131026: Wording(400, "Message undeliverable", "Message Undeliverable."),
    131030: Wording(400, "Recipient phone number not in allowed list", "Add it to the allowed list first."),
    131031: Wording(403, "Account has been locked", "The account is locked: a policy was violated."),
    131037: Wording(400, "Display name approval is needed", "The 555 number has no approved display name."),
    131042: Wording(400, "Business eligibility payment issue", "There is a problem with the payment method."),
    131045: Wording(500, "Incorrect certificate", "Message failed: phone number registration error."),
    131047: Wording(400, "Re-engagement message", "More than 24 hours have passed since the last reply."),
    131048: Wording(
        400, "Spam rate limit hit", "Too many previous messages were blocked or flagged as spam."
    ),
    131049: Wording(
        400,
        "This message was not delivered to maintain healthy ecosystem engagement.",
        "In order to maintain a healthy ecosystem engagement, the message failed to be delivered.",
    ),
    131050: Wording(400, "User has stopped marketing messages", "The recipient stopped marketing messages."),
    131051: Wording(400, "Unsupported message type", "Message type is not currently supported."),
    131053: Wording(400, "Media upload error", "Unable to upload the media used in the message."),
    131056: Wording(400, "Pair rate limit hit", "Too many messages to the same recipient in a short time."),
    131057: Wording(500, "Account in maintenance mode", "Business Account is in maintenance mode."),
    131062: Wording(400, "Recipient not supported", "Business-scoped user ids are not supported here."),
    131064: Wording(400, "Messaging limit reached", "Template classification violations limit this account."),
    132000: Wording(
        400, "Number of parameters does not match", "The parameter count differs from the template."
    ),
    132001: Wording(404, "Template name does not exist in the translation", "The template does not exist."),
    132005: Wording(400, "Translated text too long", "The hydrated text is too long."),
    132007: Wording(400, "Template content violates a policy", "The content violates a WhatsApp policy."),
    132012: Wording(
        400, "Parameter format does not match", "A parameter's format differs from the template."
    ),
    132015: Wording(400, "Template is paused", "The template is paused due to low quality."),
    132016: Wording(400, "Template is disabled", "The template has been paused too many times."),
    132018: Wording(400, "Template parameters have a problem", "Check the parameters of the template."),
    133010: Wording(400, "Phone number not registered", "The business phone number is not registered."),
}


def wording(code: int) -> Wording:
    """The usual texts of a code; a neutral sentence for one that is not in the table."""
    return CODES.get(code, UNKNOWN)
