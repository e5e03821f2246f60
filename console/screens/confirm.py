"""L1: live facts, focus on Cancel, only y accepts, Enter does nothing; refused if the target has changed."""

from console.questions import Question
from console.screens.dialog import Dialog
from console.session import Session


class ConfirmScreen(Dialog):
    """Submits the act of its question, once, or nothing."""

    def __init__(self, question: Question, session: Session) -> None:
        super().__init__(question.title, session)
        self._question = question
        live = session.live()
        self._mark = question.mark(live) if live is not None else None
        self._refused = False

    def opened(self) -> None:
        """What to press."""
        self.say("y = do it    Esc or n = no    (Enter does nothing)")

    def facts(self) -> list[str]:
        """The facts of the question, from the newest snapshot."""
        live = self.session.live()
        if live is None:
            return ["the engine shows nothing now"]
        if self._question.mark(live) != self._mark:
            self._refuse()
        return self._question.facts(live)

    def accept(self) -> None:
        """Only if the target is still what the question was about."""
        live = self.session.live()
        if live is None or self._question.mark(live) != self._mark:
            self._refuse()
        if not self._refused:
            self.session.submit(self._question.act)
            self.dismiss()

    def _refuse(self) -> None:
        self._refused = True
        self.say("The target changed meanwhile: nothing was done. Esc, look, and press the key again.")
