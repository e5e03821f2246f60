"""Completes a snapshot with what must be judged over time: throttling, silence, growth, idleness, stops.

The viewer shows how things stand; here is how they change. Belongs to the engine's thread.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from engine.domain.control import ControlSend, by_phone
from engine.domain.errors import Scope
from engine.domain.forecast import ENDED, Demand, late_rows
from engine.domain.message import masked
from engine.domain.pacing import interval
from engine.domain.recipient import State
from engine.domain.snapshot import CampaignView, ControlView, HoldView, NodeView, NumberView, Snapshot
from engine.domain.waits import waits
from engine.observe.figures import DatabaseFigures
from engine.observe.metrics import NodeFigures
from engine.observe.silence import Silence
from engine.observe.watchdog import Open
from engine.postgres.desired import Campaign, Desired, Number
from engine.sending.pipeline import Pipeline

MINUTE = 60
"""Seconds over which throttling is judged."""

STALLED = 120.0
"""Seconds that a number with rows to send may do nothing."""


class Watch:
    """Remembers what it must between two snapshots."""

    def __init__(self, figures: NodeFigures, database: DatabaseFigures) -> None:
        self._figures = figures
        self._database = database
        self._silences: dict[int, Silence] = {}

    def complete(self, snapshot: Snapshot, desired: Desired, lost: Sequence[NodeView] = ()) -> Snapshot:
        """The same snapshot with everything that the alert rules look at. `lost`: dead owners of numbers."""
        numbers = {n.id: n for n in desired.numbers.values()}
        campaigns = {c.name: c for c in desired.campaigns.values()}
        demands = {view.name: _demand(view, campaigns[view.name]) for view in snapshot.campaigns}
        at = asyncio.get_running_loop().time()
        return replace(
            snapshot,
            numbers=tuple(self._number(view, numbers[view.id], at) for view in snapshot.numbers),
            lost=tuple(lost),
            campaigns=tuple(
                replace(
                    self._campaign(view, campaigns[view.name], at),
                    late=late_rows(demands[view.name], demands.values(), snapshot.at),
                )
                for view in snapshot.campaigns
            ),
            holds=_holds(desired),
            oldest_transaction=self._database.oldest_transaction,
            blocker=self._database.blocker,
        )

    def _number(self, view: NumberView, number: Number, at: float) -> NumberView:
        figures = self._figures.number(number.number_id)
        tries = sum(figures.tries.last(at, MINUTE))
        silence = self._silences.setdefault(number.number_id, Silence())
        heard = self._database.last_statuses.get(number.id)
        return replace(
            view,
            throttled_share=sum(figures.throttled.last(at, MINUTE)) / tries if tries else None,
            granted=_granted(figures.accepted.last(at, MINUTE)) if tries else None,
            silence_s=silence.look(at, heard, figures.results["accepted", None]),
            unknown_growth=self._database.unknown_growth.of(number.number_id),
            lease_lost_s=None if figures.lease_lost_at is None else at - figures.lease_lost_at,
        )

    def _campaign(self, view: CampaignView, campaign: Campaign, at: float) -> CampaignView:
        key = campaign.campaign_id
        delivered = self._database.delivered
        return replace(
            view,
            try_budget=campaign.try_budget if campaign.try_budget is not None else 3 * view.planned,
            idle_s=self._database.progress.idle(at, key) if view.state == "running" else 0.0,
            delivered_share=delivered.share(key),
            delivered_norm=delivered.norm(key),
            waits=_waits(view, campaign, self._database.held.get(key, {})),
            controls=_controls(self._database.controls.get(key, ())),
        )


def open_work(
    pipelines: Iterable[Pipeline],
    running: Callable[[int], Iterable[Campaign]],
    due: Collection[int],
    request_deadline: float,
) -> dict[str, Open]:
    """The owned numbers that should be sending: a lane that is open to them has rows due, and no pause, hold, silence
    of the provider or absence of the database is in their way."""
    found = {}
    for pipeline in pipelines:
        lanes = {lane for campaign in running(pipeline.number.number_id) for lane in campaign.lanes}
        if pipeline.closed() is None and not lanes.isdisjoint(due):
            patience = max(STALLED, 4 * interval(pipeline.rate), 2 * request_deadline)
            found[f"number {pipeline.number.id} (epoch {pipeline.permission.epoch})"] = Open(
                pipeline.moved, patience
            )
    return found


def _granted(accepted: Sequence[float]) -> float:
    """Messages/s since its first acceptance among these seconds: a number that has just begun is not slow for it."""
    first = next((i for i, count in enumerate(accepted) if count), 0)
    return sum(accepted) / (len(accepted) - first)


def _demand(view: CampaignView, campaign: Campaign) -> Demand:
    return Demand(
        view.name,
        view.state,
        campaign.priority,
        campaign.deadline,
        sum(view.counts.get(state.word, 0) for state in (State.PENDING, State.CLAIMED)),
        view.rate,
        frozenset(map(str, campaign.numbers)),
        campaign.quiet,
        campaign.zones,
    )


def _waits(view: CampaignView, campaign: Campaign, held: Mapping[str, int]) -> tuple[str, ...]:
    if view.state in ENDED:
        return ()
    unknown, assessing = (view.counts.get(s.word, 0) for s in (State.UNKNOWN, State.ASSESSING))
    found = waits(view.name, held, unknown, assessing, campaign.unknown_policy, campaign.quiet)
    return tuple(wait.text for wait in found)


def _controls(sends: Sequence[ControlSend]) -> tuple[ControlView, ...]:
    return tuple(
        ControlView(masked(one.phone), one.last_round, one.last_state or "-", one.waiting_s)
        for one in by_phone(sends)
        if one.waiting_s is not None
    )


def _holds(desired: Desired) -> tuple[HoldView, ...]:
    """Breakers that need a person, and numbers that the engine itself paused."""
    held = [
        HoldView(b.scope.value, b.key, b.code, b.reason, b.tripped_at, b.breaker_id)
        for b in desired.breakers
        if b.state == "held"
    ]
    held += [
        HoldView(Scope.NUMBER.value, n.id, None, n.pause_reason, None)
        for n in desired.numbers.values()
        if n.paused and n.paused_by == "auto"
    ]
    return tuple({(h.scope, h.key): h for h in held}.values())
