"""L1: live facts, focus on Cancel, only y accepts, Enter does nothing; refused if the target has changed.

An act that undoes what the engine held for cause asks for a reason after the y: the next person on call reads it.
"""

from collections.abc import Sequence

from textual.widget import Widget
from textual.widgets import Input

from console.fault import shield
from console.questions import Question
from console.screens.dialog import Dialog
from console.session import Session
from engine.domain.act import Act
from engine.domain.snapshot import Snapshot


class ConfirmScreen(Dialog):
    """Submits the act of its question, once, or nothing."""

    def __init__(self, question: Question, session: Session) -> None:
        super().__init__(question.title, session)
        self._question = question
        live = session.live()
        self._mark = question.mark(live) if live is not None else None
        self._settled = live is None or not session.on_its_way(live)
        self._refused = False

    def body(self) -> Sequence[Widget]:
        """An input for the reason, where one is asked for; it comes after the y."""
        if self._question.with_reason is None:
            return ()
        reason = Input(id="reason", max_length=200)
        reason.cursor_blink, reason.display = False, False
        return (reason,)

    def opened(self) -> None:
        """What to press."""
        then = ", then the reason" if self._question.with_reason is not None else ""
        self.say(f"y = do it{then}    Esc or n = no    (Enter does nothing)")

    def facts(self) -> list[str]:
        """The facts of the question, from the newest snapshot."""
        live = self.session.live()
        if live is None:
            return ["the engine shows nothing now"]
        if self._changed(live):
            self._refuse()
        return self._question.facts(live)

    def accept(self) -> None:
        """y: the act, or first the reason."""
        if self._question.with_reason is None:
            self._submit(self._question.act)
        elif self._stands():
            reason = self.query_one("#reason", Input)
            reason.display = True
            reason.focus()
            self.say("Now the reason, for the journal, and Enter. Esc = no.")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter after the reason."""
        event.stop()
        with shield(self._report):
            reason = event.value.strip()
            if not reason:
                self.say("A reason is needed: it is what the next person on call will read. Type it, or Esc.")
            elif self._question.with_reason is not None:
                self._submit(self._question.with_reason(reason))

    def _submit(self, act: Act) -> None:
        """Only if the target is still what the question was about."""
        if self._stands():
            self.session.submit(act)
            self.dismiss()

    def _stands(self) -> bool:
        live = self.session.live()
        if live is None or self._changed(live):
            self._refuse()
        return not self._refused

    def _changed(self, live: Snapshot) -> bool:
        """What an act of this screen that was still on its way has done to the target is no surprise."""
        mark = self._question.mark(live)
        if not self._settled:
            self._mark, self._settled = mark, not self.session.on_its_way(live)
        return mark != self._mark

    def _refuse(self) -> None:
        self._refused = True
        self.say("The target changed meanwhile: nothing was done. Esc, look, and press the key again.")
