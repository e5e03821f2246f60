"""What is added to a snapshot so that it can be judged: throttling, grants, silence, budgets, stops."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from engine.domain.control import ControlSend
from engine.domain.errors import Scope
from engine.domain.recipient import State
from engine.domain.snapshot import ControlView, Snapshot
from engine.observe.figures import DatabaseFigures
from engine.observe.metrics import NodeFigures
from engine.observe.silence import LEAST
from engine.postgres.breakers import Breaker
from engine.postgres.desired import Desired
from engine.watch import Watch
from tests.support.quiet import AT, NUMBER, a_campaign, a_number, counts, quiet

NUMBER_ID, CAMPAIGN_ID = 7, 3


def wanted(
    *, breakers: tuple[Breaker, ...] = (), paused_by: str | None = None, try_budget: int | None = None
) -> Desired:
    """One number, one campaign, as far as a watch looks at them."""
    number = SimpleNamespace(
        number_id=NUMBER_ID, id=NUMBER, paused=paused_by is not None, paused_by=paused_by, pause_reason="spam"
    )
    campaign = SimpleNamespace(
        campaign_id=CAMPAIGN_ID,
        name="reminder",
        state="running",
        try_budget=try_budget,
        priority=0,
        deadline=None,
        numbers=(NUMBER_ID,),
        quiet=None,
        zones=(),
        unknown_policy="hold",
    )
    return Desired(1, cast("Any", {NUMBER_ID: number}), cast("Any", {CAMPAIGN_ID: campaign}), breakers)


def a_breaker(scope: Scope, key: str, state: str = "held") -> Breaker:
    return Breaker(1, scope, key, state, 131042, "payment", AT, None, AT)


class Scene:
    """A watch with its figures."""

    def __init__(self) -> None:
        self.figures = NodeFigures()
        self.database = DatabaseFigures(cast("Any", None))
        self.watch = Watch(self.figures, self.database)
        self.number = self.figures.number(NUMBER_ID)

    def complete(self, desired: Desired | None = None, snapshot: Snapshot | None = None) -> Snapshot:
        return self.watch.complete(snapshot or quiet(), desired or wanted())


async def test_the_share_and_the_grant_are_those_of_the_last_minute() -> None:
    scene, now = Scene(), asyncio.get_running_loop().time()
    for age in range(1, 121):
        scene.number.tries.add(now - 121 + age, 10)
        scene.number.accepted.add(now - 121 + age, 10 if age <= 60 else 6)
    scene.number.throttled.add(now - 1, 30)
    (number,) = scene.complete().numbers
    assert number.throttled_share == 30 / 600
    assert number.granted is not None
    assert 6 <= number.granted < 6.2  # one of the sixty seconds may be an older one


async def test_a_number_that_sends_nothing_has_no_share_and_no_grant() -> None:
    (number,) = Scene().complete().numbers
    assert (number.throttled_share, number.granted, number.silence_s, number.lease_lost_s) == (
        None,
        None,
        None,
        None,
    )


async def test_accepted_messages_without_a_status_are_a_silence_and_a_status_ends_it() -> None:
    scene = Scene()
    for _ in range(LEAST):
        scene.number.stored(1.0, "accepted", None, throttled=False)
    assert scene.complete().numbers[0].silence_s is not None
    scene.database.last_statuses = {NUMBER: AT}
    assert scene.complete().numbers[0].silence_s is None


async def test_a_lost_lease_is_told_with_its_age() -> None:
    scene = Scene()
    scene.number.lose_lease(asyncio.get_running_loop().time() - 30)
    lost = scene.complete().numbers[0].lease_lost_s
    assert lost is not None
    assert lost >= 30
    assert scene.number.leases_lost == 1


async def test_the_budget_is_the_campaigns_own_or_three_tries_for_each_row() -> None:
    scene = Scene()
    assert scene.complete(wanted()).campaigns[0].try_budget == 12_000
    assert scene.complete(wanted(try_budget=5)).campaigns[0].try_budget == 5


async def test_only_a_running_campaign_can_be_idle() -> None:
    scene, now = Scene(), asyncio.get_running_loop().time()
    counts: Any = {CAMPAIGN_ID: dict.fromkeys(State, 0)}
    scene.database.progress.see(now - 60, counts, {CAMPAIGN_ID})
    assert scene.complete().campaigns[0].idle_s >= 60
    paused = quiet(campaigns=(a_campaign(state="paused"),))
    assert scene.complete(snapshot=paused).campaigns[0].idle_s == 0


async def test_stops_are_what_needs_a_person_and_each_once() -> None:
    breakers = (
        a_breaker(Scope.ACCOUNT, "WABA1"),
        a_breaker(Scope.CREDENTIAL, "env:TOKEN", state="waiting"),
        a_breaker(Scope.NUMBER, NUMBER),
    )
    holds = Scene().complete(wanted(breakers=breakers, paused_by="auto")).holds
    assert sorted((hold.scope, hold.key) for hold in holds) == [("account", "WABA1"), ("number", NUMBER)]
    assert Scene().complete(wanted(paused_by="ana")).holds == ()


async def test_what_the_viewer_said_stays_as_it_was() -> None:
    before = quiet(numbers=(a_number(stuck=3),))
    after = Scene().complete(snapshot=before)
    assert replace(after.numbers[0], throttled_share=0.0, granted=79.0) == before.numbers[0]
    assert (after.at, after.seq, after.webhook_lag_s) == (before.at, before.seq, before.webhook_lag_s)


async def test_what_a_campaign_waits_for_is_told_until_it_has_ended() -> None:
    scene = Scene()
    scene.database.held = {CAMPAIGN_ID: {"twins": 3}}
    view = a_campaign(counts=counts(pending=3, unknown=1), planned=4)
    (campaign,) = scene.complete(snapshot=quiet(campaigns=(view,))).campaigns
    assert [wait.partition(":")[0] for wait in campaign.waits] == ["a person", "evidence or a person"]
    (ended,) = scene.complete(snapshot=quiet(campaigns=(replace(view, state="finished"),))).campaigns
    assert ended.waits == ()


async def test_a_control_phone_that_waits_is_told_masked() -> None:
    scene = Scene()
    scene.database.controls = {CAMPAIGN_ID: [ControlSend("+5511988880001", 1, "sent", 400.0)]}
    (campaign,) = scene.complete().campaigns
    assert campaign.controls == (ControlView("+551…01", 1, "sent", 400.0),)
