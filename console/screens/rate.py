"""= : an exact rate for one number. What it would do decides whether it then asks."""

from collections.abc import Callable, Sequence

from textual.widget import Widget
from textual.widgets import Input

from console.fault import shield
from console.format import rate
from console.questions import find
from console.rates import parse
from console.screens.dialog import Dialog
from console.session import Session
from engine.domain.act import SetRate
from engine.domain.snapshot import NumberView


class RateScreen(Dialog):
    """Calls `then` with the act once the figure is good."""

    AUTO_FOCUS = "#rate"

    def __init__(self, target: NumberView, session: Session, then: Callable[[SetRate], None]) -> None:
        super().__init__(f"RATE of {session.label(target.id)}, messages per second", session)
        self._number, self._then = target.id, then

    def body(self) -> Sequence[Widget]:
        """The input."""
        field = Input(id="rate", max_length=12)
        field.cursor_blink = False
        return (field,)

    def opened(self) -> None:
        """What to press."""
        self.say("Enter applies, Esc = no. Up by more than 20 % or to the limit asks again.")

    def facts(self) -> list[str]:
        """The rate in force and what bounds it."""
        live = self.session.live()
        n = find(live, self._number) if live is not None else None
        if n is None:
            return ["this number is gone"]
        sends = f"sends {rate(n.sent_per_second)}/s"
        return [f"now {rate(n.rate)}/s, ceiling {rate(n.ceiling)}, provider's limit {rate(n.limit)}, {sends}"]

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        with shield(self._report):
            live = self.session.live()
            n = find(live, self._number) if live is not None else None
            value = parse(event.value, n) if n is not None else "This number is gone: nothing was done."
            if isinstance(value, str):
                self.say(value)
                return
            self.dismiss()
            self._then(SetRate(self._number, value))
