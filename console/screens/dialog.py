"""What all dialogs share: a box of literal text, live facts, and a way out that is always Esc."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from console.fault import shield
from console.frame import Frame
from console.session import Session
from console.widgets.header import fresh_line


class Cancel(Static, can_focus=True):
    """Holds the focus, so that Enter does nothing: Esc or n is the way out."""

    def __init__(self) -> None:
        super().__init__(Text(" Cancel (Esc) "), id="cancel")


class Dialog(ModalScreen[None]):
    """Subclasses give `facts`, and `body` for an input; `say` answers what was typed."""

    AUTO_FOCUS = "#cancel"
    DANGER = False
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "key('cancel')", "cancel"),
        ("y", "key('yes')", "yes"),
        ("n", "key('no')", "no"),
    ]

    def __init__(self, title: str, session: Session) -> None:
        super().__init__()
        self.session, self._title = session, title
        self._shown: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        """Title, input if any, facts, how fresh they are, answer, Cancel."""
        classes = (
            "dialog" + (" -danger" if self.DANGER else "") + (" -ascii" if self.session.glyphs.ascii else "")
        )
        with Vertical(classes=classes):
            yield Static(Text(self._title), classes="title")
            inputs = self.body()
            answer = Static(id="answer", classes="answer", markup=False)
            if inputs:  # first, so that a terminal of five lines still shows what to type and where
                yield answer
                yield from inputs
            yield Static(id="facts", markup=False)
            yield Static(id="fresh", markup=False)
            if not inputs:
                yield answer
            yield Cancel()

    def body(self) -> Sequence[Widget]:
        """Widgets between the title and the facts."""
        return ()

    def on_mount(self) -> None:
        """Facts are there with the first paint."""
        with shield(self._report):
            self.opened()
            self.show(self.session.frame())

    def opened(self) -> None:
        """Work at the opening."""

    def facts(self) -> list[str]:
        """Lines about the target as it is now."""
        raise NotImplementedError

    def show(self, frame: Frame) -> None:
        """A tick: the facts are live, also while the picture behind is frozen."""
        self._put("facts", "\n".join(self.facts()))
        live = self.session.live()
        note = "" if live is not None and frame.freshness.word != "STALE" else "  these facts may be old"
        self._put("fresh", fresh_line(frame).plain + note)

    def say(self, sentence: str) -> None:
        """Answer in the dialog."""
        self._put("answer", sentence)

    def _put(self, where: str, text: str) -> None:
        if self._shown.get(where) != text:
            self._shown[where] = text
            self.query_one(f"#{where}", Static).update(Text(text))

    def action_key(self, name: str) -> None:
        """y, n or Esc."""
        with shield(self._report):
            if name == "cancel" or (name == "no" and self.focused_is_cancel()):
                self.dismiss()
            elif name == "yes" and self.focused_is_cancel():
                self.accept()

    def focused_is_cancel(self) -> bool:
        """Letters are answers only outside an input."""
        return isinstance(self.focused, Cancel) or self.focused is None

    def accept(self) -> None:
        """y"""

    def _report(self, text: str) -> None:
        self.session.fault = text
