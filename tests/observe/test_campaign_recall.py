"""What a campaign did is remembered for six hours, of so many campaigns and no more."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.domain.recall import MOST_CAMPAIGNS, OF_A_CAMPAIGN, longest, remembered
from engine.domain.snapshot import CampaignView, Snapshot
from engine.observe.metrics import NodeFigures
from engine.observe.recall import Recall
from tests.console.support import NIGHT, a_campaign, normal, running


def run(recall: Recall, seconds: range, *campaigns: CampaignView, pace: int = 50) -> Snapshot:
    """Once a second; each accepts `pace` messages in it."""
    snapshot = normal(numbers=())
    for second in seconds:
        done = (second - seconds.start) * pace
        views = tuple(
            replace(c, accepted=c.accepted + done, counts={**c.counts, "pending": 100_000 - done})
            for c in campaigns
        )
        snapshot = recall.complete(replace(snapshot, campaigns=views), {}, second + 1.0, None)
    return snapshot


def test_pace_pending_and_failed_are_kept_for_each_window() -> None:
    past = run(Recall(NodeFigures()), range(1000, 1400), a_campaign()).campaigns[0].past
    assert past.keys() == {name for name, _, _ in OF_A_CAMPAIGN}
    assert [len(points) for points in past["accepted"]] == [30, 30, 13, 3, 0]
    assert past["accepted"][1][-1] == pytest.approx(50.0)
    assert past["pending"][0] == tuple(sorted(past["pending"][0], reverse=True))
    assert set(past["failed"][0]) == {377.0}


def test_what_was_accepted_before_the_node_began_is_no_pace() -> None:
    past = run(Recall(NodeFigures()), range(1000, 1070), a_campaign()).campaigns[0].past
    assert max(past["accepted"][0]) == pytest.approx(50.0)


def test_it_is_bounded_and_those_under_way_come_first() -> None:
    begun = NIGHT - timedelta(hours=9)
    ended = [
        a_campaign(f"e{i:02d}", state="finished", finished_at=begun + timedelta(minutes=i), started_at=begun)
        for i in range(30)
    ]
    going, draft = a_campaign("going", state="held"), a_campaign("draft", state="draft", started_at=None)
    kept = [c.name for c in remembered([*ended, draft, going])]
    assert kept == ["going", *(f"e{i:02d}" for i in range(29, 30 - MOST_CAMPAIGNS, -1))]
    recall = Recall(NodeFigures())
    snapshot = run(recall, range(1000, 1003), *ended, draft, going)
    assert sum(bool(c.past) for c in snapshot.campaigns) == MOST_CAMPAIGNS
    run(recall, range(1003, 1005), going)
    assert recall._campaigns.keys() == {"going"}


def test_of_several_nodes_the_one_that_has_run_longest_remembers_most() -> None:
    old, young = {"accepted": ((1.0, 2.0),)}, {"accepted": ((2.0,),)}
    first = normal(uptime_s=9000.0, campaigns=(a_campaign(past=old),))
    second = normal(uptime_s=10.0, campaigns=(a_campaign(past=young), a_campaign("new")))
    assert [c.past for c in longest([first, second], second.campaigns)] == [old, {}]


async def test_the_trends_page_and_the_campaign_s_own_show_them() -> None:
    snapshot = run(Recall(NodeFigures()), range(1000, 1400), a_campaign())
    async with running(replace(snapshot, numbers=normal().numbers), (80, 50)) as shown:
        await shown.press("t")
        await shown.until(lambda: "CAMPAIGN natl-07" in shown.text())
        assert shown.text().split("CAMPAIGN natl-07")[1].split("\n")[2].split()[:2] == ["pending", "80,275"]
        await shown.press("escape", "c", "enter")
        await shown.until(lambda: "TRENDS of 5m" in shown.text())
        assert "80,275" in shown.text()
        await shown.press("w")
        await shown.until(lambda: "TRENDS of 15m" in shown.text())
