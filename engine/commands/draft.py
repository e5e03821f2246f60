"""What a campaign to be must hold: refused here is what Meta or the engine could never carry out."""

import re
from dataclasses import replace

from engine import clock
from engine.commands.act import Refused
from engine.domain.content import Content, ContentRefused, read_content, write_content
from engine.domain.control import Control, ControlRefused, checked
from engine.postgres.campaigns import Draft

POLICIES = {
    "hold": "rows whose answer was lost wait for a person",
    "resend": "rows whose answer was lost are sent once more after {after}, which may reach a person twice",
    "assume_sent": "rows whose answer was lost count as sent after {after}, which may miss a person",
}
CATEGORIES = ("marketing", "utility", "authentication")


def checked_content(draft: Draft) -> Content | None:
    """What fills the template, checked: the draft's content, whose body the draft's columns overrule."""
    if draft.content is None:
        return None
    content = draft.content
    if draft.body:
        content = replace(content, body=Content.of_columns(draft.body).body)
    try:
        return read_content(write_content(content))
    except ContentRefused as refused:
        raise Refused(f"The campaign's content is not usable: {refused}.") from None


def checked_control(draft: Draft) -> Control | None:
    """Its control phones in E.164, with values for all that the template takes."""
    if draft.control is None:
        return None
    try:
        return checked(draft.control, draft.content or Content.of_columns(draft.body))
    except ControlRefused as refused:
        raise Refused(f"The control phones are not usable: {refused}.") from None


def check(draft: Draft) -> None:
    """Refuse what Meta or the engine could never carry out."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", draft.name):
        raise Refused(
            f"The name {draft.name!r} is not usable: write up to 64 letters, digits, dots, hyphens or _."
        )
    if not draft.numbers:
        raise Refused("A campaign needs a number to send from: give --number.")
    if not re.fullmatch(r"[a-z0-9_]{1,512}", draft.template):
        raise Refused(
            f"The template {draft.template!r} is not usable: lower-case letters, digits and _ alone."
        )
    if not re.fullmatch(r"[a-z]{2,3}(_[A-Z]{2,3})?", draft.language):
        raise Refused(f"The language {draft.language!r} is not usable: write it as Meta does, such as pt_BR.")
    if any(not column or column != column.strip() for column in draft.body):
        raise Refused(
            "--body names the columns for the template's variables, such as name,date: one is empty."
        )
    if draft.category not in CATEGORIES:
        raise Refused(f"The category {draft.category!r} is none of {', '.join(CATEGORIES)}.")
    if draft.unknown_policy not in POLICIES:
        raise Refused(f"The policy {draft.unknown_policy!r} is none of {', '.join(POLICIES)}.")
    if draft.deadline is not None and draft.deadline <= clock.now():
        raise Refused(f"The deadline {draft.deadline.isoformat()} has passed: nothing would be sent.")
    _check_times(draft)
    if not 1 <= draft.max_attempts <= 100:
        raise Refused(f"--max-attempts {draft.max_attempts} is not usable: 1 to 100.")
    if draft.try_budget is not None and draft.try_budget < 1:
        raise Refused(f"--try-budget {draft.try_budget} is not usable: 1 or more.")
    if not 0 <= draft.max_failed <= 1:
        raise Refused("--max-failed is a share of the rows: 0% to 100%.")
    if not -32768 <= draft.priority <= 32767:
        raise Refused(f"--priority {draft.priority} is not usable: -32768 to 32767.")


def _check_times(draft: Draft) -> None:
    if draft.start_at is not None and draft.start_at <= clock.now():
        raise Refused(
            f"The start {draft.start_at.isoformat()} has passed: leave out --start-at to start by hand."
        )
    if draft.start_at is not None and draft.deadline is not None and draft.deadline <= draft.start_at:
        raise Refused("The deadline comes before the start: nothing would be sent.")
    if draft.zone is not None and draft.quiet is None:
        raise Refused("--timezone is the zone of the quiet hours: give --quiet, too.")
    if draft.quiet is not None and draft.zone is None:
        raise Refused(
            "Quiet hours need a zone: give --timezone, such as America/Sao_Paulo, or recipient for each person's own."
        )
    if draft.retry_marketing_limit and draft.category != "marketing":
        raise Refused(
            "--retry-marketing-limit is for --category marketing: no other template has that limit."
        )
    if draft.canary is not None and draft.canary.wait_s < 0:
        raise Refused("--canary-wait is a time from 0s on.")
