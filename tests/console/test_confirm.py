"""A question is refused when its target changed meanwhile: by somebody else, in something that a person decides by."""

from dataclasses import replace

import pytest

from engine.domain.act import PauseAll, ResumeAll, ResumeCampaign, SetRate
from engine.domain.snapshot import Snapshot
from tests.console.support import Running, a_campaign, a_number, normal, running


async def pause_everything(run: Running) -> None:
    await run.press("P", *"all", "enter", *"spam", "enter")
    assert run.link.submitted == [PauseAll("spam")]


def paused(snapshot: Snapshot, count: int, reason: str | None = None) -> Snapshot:
    numbers = tuple(
        replace(n, state="paused", reason=reason, bound_by="hold") if i < count else n
        for i, n in enumerate(snapshot.numbers)
    )
    return replace(snapshot, numbers=numbers)


async def test_c_and_y_right_after_p_are_taken_while_the_pause_still_comes_into_effect() -> None:
    async with running(normal()) as run:
        await pause_everything(run)
        run.link.current = paused(normal(), 3)
        run.link.answer("a1", "acknowledged")
        await run.press("C")
        run.link.current = paused(normal(campaigns=(a_campaign(state="paused"),)), 7)
        run.link.answer("a1", "acknowledged")
        await run.tick()
        run.link.current = paused(normal(campaigns=(a_campaign(state="paused"),)), 8)
        run.link.answer("a1", "in effect")
        await run.press("y")
        assert run.link.submitted[1:] == [ResumeAll()]


async def test_campaigns_that_follow_their_paused_numbers_change_nothing() -> None:
    async with running(paused(normal(), 8)) as run:
        await run.press("C")
        run.link.current = paused(normal(campaigns=(a_campaign(state="paused"),)), 8, "spam")
        await run.press("y")
        assert run.link.submitted == [ResumeAll()]


@pytest.mark.parametrize("count", [1, 8])
async def test_pauses_and_resumes_by_others_refuse_it(count: int) -> None:
    async with running(paused(normal(), 3)) as run:
        await run.press("C")
        run.link.current = paused(normal(), count)
        await run.press("y")
        assert run.link.submitted == []
        assert "changed meanwhile" in run.text()


async def test_what_changes_long_after_a_pause_that_no_node_confirmed_is_others_doing() -> None:
    async with running(normal()) as run:
        await pause_everything(run)
        run.clock.pass_(4)
        await run.press("C")
        run.link.current = paused(normal(), 3)
        await run.press("y")
        assert run.link.submitted == [PauseAll("spam")]
        assert "changed meanwhile" in run.text()


SLOWED = a_number("0017", state="slowed", rate=40.0, ceiling=25.0, reason="throttled to 25/s of 40/s")


@pytest.mark.parametrize(
    "moved",
    [
        {"ceiling": 26.0, "reason": "throttled to 26/s of 40/s"},
        {"state": "active", "reason": None},
        {"state": "waiting", "reason": "the provider asked for silence"},
        {"epoch": 9, "owner": "eng2"},
    ],
)
async def test_a_rate_is_set_however_the_number_is_going(moved: dict[str, object]) -> None:
    async with running(normal(numbers=(SLOWED,))) as run:
        await run.press("equals_sign", *"90", "enter")
        run.link.change(SLOWED.id, **moved)
        await run.press("y")
        assert run.link.submitted == [SetRate(SLOWED.id, 90.0)]


@pytest.mark.parametrize("moved", [{"state": "held"}, {"state": "paused"}, {"rate": 60.0}, {"limit": 80.0}])
async def test_a_rate_is_not_set_on_a_number_that_was_stopped_or_given_another_one(
    moved: dict[str, object],
) -> None:
    async with running(normal(numbers=(SLOWED,))) as run:
        await run.press("equals_sign", *"90", "enter")
        run.link.change(SLOWED.id, **moved)
        await run.press("y")
        assert run.link.submitted == []
        assert "changed meanwhile" in run.text()


async def test_a_campaign_s_question_looks_at_that_campaign_alone() -> None:
    held = a_campaign(state="held", reason="131048 on all numbers")
    async with running(normal(campaigns=(held, a_campaign("other")))) as run:
        await run.press("c", "enter", "r")
        run.link.current = paused(normal(campaigns=(held, a_campaign("other", state="finished"))), 2)
        await run.press("y")
        assert run.link.submitted == [ResumeCampaign(held.name)]
    async with running(normal(campaigns=(held,))) as run:
        await run.press("c", "enter", "r")
        run.link.current = normal(campaigns=(replace(held, reason="131031 account locked"),))
        await run.press("y")
        assert run.link.submitted == []
        assert "changed meanwhile" in run.text()
