"""Carries out the acts of a screen inside the engine: at once where it can, then through the database.

Each act goes sent → acknowledged → in effect (or refused); the stages stand in the snapshot.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import structlog

from engine.clock import now
from engine.commands import Commands, Refused
from engine.control.follower import Follower
from engine.domain import act as acts
from engine.domain.act import Act
from engine.domain.snapshot import ActView, EventView, ReconcilePreview
from engine.observe.alerts import Alerts
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.journal import Kept
from engine.sending.pipeline import Pipeline

KEPT_ACTS = 20
KEPT_EVENTS = 500
"""Lines of the event log, at most six hours of them: about 0.2 MB."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Hands:
    """What acts may touch in the engine."""

    commands: Commands
    follower: Follower
    alerts: Alerts
    pipelines: Callable[[], Iterable[Pipeline]]
    stop: Callable[[str], None]
    author: str
    read_only: bool


class ActDesk:
    """Takes acts in and keeps what came of the last ones."""

    def __init__(self, hands: Hands, changed: Callable[[], None]) -> None:
        self.acts: deque[ActView] = deque(maxlen=KEPT_ACTS)
        self.events: deque[EventView] = deque(maxlen=KEPT_EVENTS)
        self.reconciles: dict[str, ReconcilePreview] = {}
        self._hands = hands
        self._changed = changed
        self._running: set[asyncio.Task[None]] = set()

    def event(self, author: str, text: str) -> None:
        """A line of the event log."""
        self.events.appendleft(EventView(now(), author, text))

    def hear(self, event: EventView) -> None:
        """An act that was done elsewhere."""
        self.events.appendleft(event)
        self._changed()

    def submit(self, act_id: str, act: Act, submitted_at: float) -> None:
        """Begin to carry out an act; `submitted_at` is loop time."""
        task = asyncio.create_task(self._carry_out(act_id, act, submitted_at))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _carry_out(self, act_id: str, act: Act, submitted_at: float) -> None:
        self._show(ActView(act_id, describe(act), "sent", None, "", False))
        try:
            if self._hands.read_only and not isinstance(act, acts.AcknowledgeAlerts):
                raise Refused("This console is read-only.")
            detail = await self._do(act_id, act)
        except Refused as refusal:
            self._stage(act_id, "refused", submitted_at, str(refusal))
            return
        except DATABASE_FAULTS as error:
            self._stage(act_id, "refused", submitted_at, f"the database is away ({type(error).__name__})")
            return
        self._stage(act_id, "acknowledged", submitted_at, detail)
        if not (isinstance(act, acts.Reconcile) and act.dry_run):  # an open dialog asks again and again
            self.event(self._hands.author, f"{describe(act)} {detail}".strip())
        try:
            await self._hands.follower.refresh()
        except DATABASE_FAULTS as error:
            log.warning("act not seen in the database yet", error=type(error).__name__)
            return
        self._stage(act_id, "in effect", None, detail, undo=isinstance(act, _UNDOABLE))

    async def _do(self, act_id: str, act: Act) -> str:
        hands = self._hands
        match act:
            case acts.AcknowledgeAlerts(key=key):
                return f"{hands.alerts.acknowledge(key, hands.author)} acknowledged"
            case acts.StopEngine(reason=reason):
                hands.stop(reason)
                return reason
            case acts.Reconcile(campaign=campaign, dry_run=dry_run):
                preview = await hands.commands.reconcile(campaign, dry_run=dry_run)
                self.reconciles = {act_id: preview}
                return (
                    f"{preview.to_sent} → sent, {preview.to_pending} → pending, {preview.stay_unknown} stay"
                )
            case acts.PauseNumber() | acts.PauseAll():
                return await self._pause(act)
        done = await hands.commands.carry_out(act)
        if isinstance(act, acts.ResumeNumber | acts.ResumeAll):
            for pipeline in self._meant(act):
                pipeline.paused_here = False
        return "already" if done.already else _change(done.before, done.after) or _in_words(act, done.text)

    async def _pause(self, act: acts.PauseNumber | acts.PauseAll) -> str:
        """Stop here first: what follows may take as long as the database takes."""
        for pipeline in self._meant(act):
            pipeline.pause_here()
        try:
            done = await self._hands.commands.carry_out(act)
        except Refused:
            for pipeline in self._meant(act):
                pipeline.paused_here = False
            raise
        except DATABASE_FAULTS:
            if isinstance(act, acts.PauseNumber):
                raise
            return await self._pause_each(act.reason)
        return "already" if done.already else " ".join(done.warnings)

    async def _pause_each(self, reason: str) -> str:
        """Without a database there is no pause-all, but each number's pause can be kept beside it."""
        numbers = [pipeline.number.id for pipeline in self._hands.pipelines()]
        pauses = (self._hands.commands.carry_out(acts.PauseNumber(number, reason)) for number in numbers)
        await asyncio.gather(*pauses)
        return f"{len(numbers)} numbers are paused on this machine one by one: resume them one by one"

    def _meant(self, act: Act) -> list[Pipeline]:
        number = getattr(act, "number", None)
        return [p for p in self._hands.pipelines() if number in (None, p.number.id)]

    def _stage(
        self, act_id: str, stage: str, submitted_at: float | None, detail: str, *, undo: bool = False
    ) -> None:
        before = next((a for a in self.acts if a.id == act_id), None)
        if before is None:
            return
        ack = before.ack_ms
        if submitted_at is not None:
            ack = (asyncio.get_running_loop().time() - submitted_at) * 1000
        self._show(replace(before, stage=stage, ack_ms=ack, detail=detail, undo=undo))

    def _show(self, view: ActView) -> None:
        kept = [a for a in self.acts if a.id != view.id]
        self.acts = deque([view, *kept], maxlen=KEPT_ACTS)
        self._changed()


_UNDOABLE = (acts.PauseNumber, acts.ResumeNumber, acts.SetRate)


def describe(act: Act) -> str:
    """The act in a few words: RATE 106540352242922 40."""
    match act:
        case acts.PauseNumber(number=number):
            return f"PAUSE {number}"
        case acts.ResumeNumber(number=number):
            return f"RESUME {number}"
        case acts.SetRate(number=number, rate=rate):
            return f"RATE {number} {rate:g}"
        case acts.PauseAll():
            return "PAUSE ALL"
        case acts.ResumeAll():
            return "RESUME ALL"
        case acts.StartCampaign(campaign=name):
            return f"START {name}"
        case acts.PauseCampaign(campaign=name):
            return f"PAUSE {name}"
        case acts.ResumeCampaign(campaign=name):
            return f"RESUME {name}"
        case acts.CancelCampaign(campaign=name):
            return f"CANCEL {name}"
        case acts.RetryFailed(campaign=name):
            return f"RETRY FAILED {name}"
        case acts.LiftHold(target=target):
            return f"LIFT {target}"
        case acts.Reconcile(campaign=name, dry_run=dry_run):
            return f"RECONCILE {name or 'all'}{' (dry run)' if dry_run else ''}"
        case acts.AcknowledgeAlerts():
            return "ACK"
        case acts.StopEngine():
            return "STOP"


def event_of(kept: Kept) -> EventView:
    """An act as the journal has it: rate 106540352242922 80→40 (cli)."""
    change = f" {kept.before}→{kept.after}" if kept.before and kept.after else f" {kept.after or ''}".rstrip()
    result = "" if kept.result == "done" else f": {kept.result}"
    return EventView(kept.at, kept.author, f"{kept.act} {kept.target}{change} ({kept.origin}){result}")


def _in_words(act: Act, text: str) -> str:
    return text if isinstance(act, acts.RetryFailed) else ""


def _change(before: str | None, after: str | None) -> str:
    if before is None or after is None:
        return ""
    return f"{before}→{after}"
