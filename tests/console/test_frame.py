"""Which campaign the header speaks of, and whose rows are summed beside it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from console.frame import headline, totals
from engine.domain.snapshot import CampaignView
from tests.console.support import NIGHT, a_campaign, normal

STATES = ("running", "held", "paused", "finished", "scheduled", "draft")
"""The one that comes first wins the header."""


def campaign(state: str, name: str = "") -> CampaignView:
    waits = state in ("draft", "scheduled")
    return a_campaign(
        name or f"a-{state}", state=state, planned=200, accepted=0 if waits else 150,
        started_at=None if waits else NIGHT - timedelta(hours=1), finished_at=NIGHT if state == "finished" else None,
    )  # fmt: skip


@pytest.mark.parametrize("at", range(len(STATES)))
def test_the_header_prefers_what_goes_then_what_has_just_ended_then_what_is_to_come(at: int) -> None:
    shown = headline(normal(campaigns=tuple(campaign(state) for state in reversed(STATES[at:]))), None)
    assert (shown.name, shown.word) == (f"a-{STATES[at]}", STATES[at].upper())


def test_a_campaign_that_has_just_ended_stays_with_its_own_figures() -> None:
    before = replace(campaign("finished", "yesterday"), finished_at=NIGHT - timedelta(hours=9), accepted=7)
    picture = normal(campaigns=(campaign("draft"), campaign("finished", "tonight"), before))
    assert headline(picture, None).name == "tonight"
    assert (totals(picture).sent, totals(picture).planned) == (150, 200)


def test_drafts_are_not_summed_with_what_runs() -> None:
    picture = normal(campaigns=(campaign("draft"), campaign("running"), campaign("paused")))
    assert (totals(picture).sent, totals(picture).planned) == (300, 400)
    assert headline(picture, None).others == "+1 paused +1 draft"


def test_a_draft_that_was_cancelled_does_not_hide_another() -> None:
    cancelled = replace(campaign("draft", "old"), state="cancelled", finished_at=NIGHT)
    assert headline(normal(campaigns=(cancelled, campaign("draft"))), None).name == "a-draft"
