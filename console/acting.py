"""What each acting key does: which act it makes, and whether it asks first. The number is the one at the key press."""

from collections.abc import Callable

from textual.screen import Screen

from console.frame import ranked_alerts
from console.questions import (
    TypedQuestion,
    cancel_question,
    pause_all_question,
    question,
    retry_question,
    stop_question,
)
from console.screens.confirm import ConfirmScreen
from console.screens.rate import RateScreen
from console.screens.reconcile import ReconcileScreen
from console.screens.typed import TypedScreen
from console.session import READ_ONLY, Session
from engine.domain.act import (
    AcknowledgeAlerts,
    Act,
    LiftHold,
    PauseNumber,
    ResumeAll,
    ResumeNumber,
    SetRate,
)
from engine.domain.snapshot import HoldView, NumberView, Snapshot


class Acting:
    """Keys to acts. `push` opens a dialog; `number` is the one of a page, None for the one under the cursor."""

    def __init__(
        self, session: Session, push: Callable[[Screen[None]], object], number: str | None = None
    ) -> None:
        self.session, self._push, self._bound = session, push, number

    @property
    def _number(self) -> str | None:
        return self._bound or self.session.cursor

    def ask(self, act: Act) -> None:
        """Submit an act at once, or ask first, by what it would do now."""
        live = self.session.live()
        asked = question(act, live, self.session.label, self.session.glyphs) if live else None
        if asked is None:
            self.session.submit(act)
        elif self._may_act():
            self._push(ConfirmScreen(asked, self.session))

    def pause(self) -> None:
        """p"""
        if self._number is not None:
            self.session.submit(PauseNumber(self._number))

    def resume(self) -> None:
        """r"""
        target = self._target()
        if target is None:
            return
        if target.rate <= 0:
            self.session.notify(
                f"{self.session.label(target.id)}: its rate is 0, which stops it: = gives it a rate"
            )
        elif target.state in ("paused", "held"):
            self.ask(ResumeNumber(target.id))
        else:
            self.session.notify(f"{self.session.label(target.id)} is {target.state}, not paused and not held")

    def apply_staged(self) -> bool:
        """⏎ with a staged rate of the number; whether there was one."""
        staged = self.session.staged(self._number)
        if staged is not None:
            self.ask(staged)
        return staged is not None

    def stage(self, direction: int) -> None:
        """+ and -"""
        self.session.stage(self._number, direction)

    def rate_exact(self) -> None:
        """="""
        target = self._target()
        if target is not None and self._may_act():
            self._push(RateScreen(target, self.session, self._set_rate))

    def _set_rate(self, act: SetRate) -> None:
        self.ask(act)

    def reconcile(self) -> None:
        """R"""
        if self._may_act():
            self._push(ReconcileScreen(self.session))

    def acknowledge(self) -> None:
        """a"""
        live = self.session.live()
        fresh = [a for a in ranked_alerts(live) if not a.acknowledged] if live else []
        shown = self.session.frame().alert
        key = next((a.key for a in fresh if a.key == shown), fresh[0].key if fresh else None)
        if key is None:
            self.session.notify("no alert to acknowledge")
        else:
            self.session.submit(AcknowledgeAlerts(key))

    def acknowledge_all(self) -> None:
        """A"""
        self.session.submit(AcknowledgeAlerts(None))

    def pause_all(self) -> None:
        """P"""
        live = self._live_or_say()
        if live is not None and self._may_act():
            self._push(TypedScreen(pause_all_question(live, self.session.glyphs), self.session))

    def cancel_campaign(self, name: str) -> None:
        """x on a campaign"""
        self._typed(cancel_question(name, self.session.glyphs))

    def retry_failed(self, name: str) -> None:
        """F on a campaign"""
        self._typed(retry_question(name, self.session.glyphs))

    def lift(self, hold: HoldView) -> None:
        """⏎ on a hold: a breaker is closed, a number that the engine paused is resumed."""
        if hold.id is not None:
            self.ask(LiftHold(hold.id, f"{hold.scope} {hold.key}"))
        else:
            self.ask(ResumeNumber(hold.key))

    def _typed(self, asked: TypedQuestion) -> None:
        if self._live_or_say() is not None and self._may_act():
            self._push(TypedScreen(asked, self.session))

    def resume_all(self) -> None:
        """C"""
        self.ask(ResumeAll())

    def stop(self) -> None:
        """Q"""
        live = self._live_or_say()
        if live is not None and self._may_act():
            self._push(TypedScreen(stop_question(live, self.session.glyphs), self.session))

    def _target(self) -> NumberView | None:
        target = self.session.number(self._number)
        if target is None:
            self.session.notify(
                "no number under the cursor" if self._bound is None else "this number is gone"
            )
        return target

    def _live_or_say(self) -> Snapshot | None:
        live = self.session.live()
        if live is None:
            self.session.notify("no snapshot from the engine yet")
        return live

    def _may_act(self) -> bool:
        live = self.session.live()
        if live is not None and live.read_only:
            self.session.notify(READ_ONLY)
            return False
        return True
