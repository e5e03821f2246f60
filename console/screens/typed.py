"""L2: a name typed by hand, then a reason for the journal. Pasting the name is refused."""

from collections.abc import Sequence

from textual import events
from textual.widget import Widget
from textual.widgets import Input

from console.fault import shield
from console.questions import TypedQuestion
from console.screens.dialog import Dialog
from console.session import Session


class NameInput(Input):
    """Takes keys, no paste: the name is there to make a person think."""

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()


class TypedScreen(Dialog):
    """Submits the act with the reason, or nothing."""

    AUTO_FOCUS = "#name"
    DANGER = True

    def __init__(self, question: TypedQuestion, session: Session) -> None:
        super().__init__(question.title, session)
        self._question = question
        self._named = False

    def body(self) -> Sequence[Widget]:
        """The two inputs; the second comes after the first."""
        name, reason = NameInput(id="name"), Input(id="reason", max_length=200)
        for field in (name, reason):
            field.cursor_blink = False
        reason.display = False
        return (name, reason)

    def opened(self) -> None:
        """What to type."""
        self.say(f"Type {self._names()} and press Enter. Esc = no.")

    def facts(self) -> list[str]:
        """The facts of the question, from the newest snapshot."""
        live = self.session.live()
        return self._question.facts(live) if live is not None else ["the engine shows nothing now"]

    def _names(self) -> str:
        return " or ".join(f'"{name}"' for name in self._question.names)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in either input."""
        event.stop()
        with shield(self._report):
            if event.input.id == "name":
                self._take_name(event.value.strip())
            else:
                self._take_reason(event.value.strip())

    def _take_name(self, typed: str) -> None:
        if typed not in self._question.names:
            self.say(f"That is not {self._names()}: nothing was done. Type it again, or Esc.")
            return
        self._named = True
        self.query_one("#name", Input).display = False
        reason = self.query_one("#reason", Input)
        reason.display = True
        reason.focus()
        self.say("Now the reason, for the journal, and Enter. Esc = no.")

    def _take_reason(self, reason: str) -> None:
        if not self._named or not reason:
            self.say("A reason is needed: it is what the next person on call will read. Type it, or Esc.")
            return
        self.session.submit(self._question.act(reason))
        self.dismiss()
