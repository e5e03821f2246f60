"""R: first a dry run by the engine, then y does exactly that.

Where rows become unknown all the time, a dry run is out of date at once: it is made again while the dialog is open,
and y counts only under one that is fresh.
"""

from console.format import number
from console.screens.dialog import Dialog
from console.session import Session
from engine.domain.act import Reconcile
from engine.domain.settling import coming
from engine.domain.snapshot import ReconcilePreview, Snapshot

AGAIN_S = 2.0
"""Seconds after which a dry run is made again, if the unknown rows are not those that it counted."""

SHOWN = 3
"""Conditions that the dialog names, one for each number: it must fit 24 lines."""

FRESH_S = 6.0
"""Age up to which a dry run may be acted on when rows have changed since."""


class ReconcileScreen(Dialog):
    """Over all campaigns."""

    def __init__(self, session: Session) -> None:
        super().__init__("RECONCILE unknown rows, all campaigns", session)
        self._asked: str | None = None
        self._asked_at = 0.0
        self._asked_unknown = 0
        self._preview: ReconcilePreview | None = None
        self._preview_at = 0.0
        self._preview_unknown = 0

    def opened(self) -> None:
        """Ask the engine what it would do."""
        self._ask()

    def _ask(self) -> None:
        live = self.session.live()
        self._asked_unknown = live.unknown if live is not None else 0
        self._asked_at = self.session.monotonic()
        self._asked = self.session.submit(Reconcile(None, dry_run=True))

    def facts(self) -> list[str]:
        """Nothing yet, the preview, or why there is none."""
        live = self.session.live()
        if live is None or self._asked is None:
            return ["No dry run was made."]
        refusal = next((a.detail for a in live.acts if a.id == self._asked and a.stage == "refused"), None)
        if refusal is not None:
            return [f"The engine refused the dry run: {self.session.text(refusal)}"]
        self._take(live)
        if self._preview is None:
            self.say("Waiting for the dry run. Esc = no.")
            return [f"unknown now {number(live.unknown)}; asking the engine what it would do"]
        return _lines(self._preview, live, self.session)

    def _take(self, live: Snapshot) -> None:
        """The answer, when it is there; a new question, when rows have changed since."""
        found = live.reconcile.get(self._asked or "")
        if found is not None and self._preview_at != self._asked_at:
            self._preview, self._preview_at = found, self._asked_at
            self._preview_unknown = self._asked_unknown
            self.say("y = do it    Esc or n = no    (Enter does nothing)")
        due = self.session.monotonic() - self._asked_at >= AGAIN_S
        if found is not None and due and live.unknown != self._preview_unknown:
            self._ask()

    def accept(self) -> None:
        """Only under a dry run that still says what would happen."""
        live = self.session.live()
        if self._preview is None or live is None:
            return
        same = live.unknown == self._preview_unknown
        if not same and self.session.monotonic() - self._preview_at > FRESH_S:
            self.say(
                "The unknown rows changed meanwhile: nothing was done. Wait for the new dry run, then y."
            )
            return
        self.session.submit(Reconcile(None, dry_run=False))
        self.dismiss()


def _lines(p: ReconcilePreview, live: Snapshot, session: Session) -> list[str]:
    arrow = session.glyphs.arrow
    since = "" if p.unknown == live.unknown else f"; unknown now {number(live.unknown)}: it is made again"
    lines = [
        f"dry run over {number(p.unknown)} unknown{since}",
        f"{number(p.to_sent):>8} {arrow} sent",
        f"{number(p.to_pending):>8} {arrow} pending, sent again: possible duplicates {number(p.to_pending)}",
        f"{number(p.stay_unknown):>8} stay unknown",
        f"{number(p.waiting):>8} wait, for what is said below",
        f"{number(p.stuck_to_unknown):>8} stuck {arrow} unknown",
    ]
    if not (p.to_sent or p.to_pending or p.stuck_to_unknown):
        lines.append("y would change nothing now.")
    said = [*coming(p, live.at), *(session.text(line) for line in p.conditions[:SHOWN])]
    if len(p.conditions) > SHOWN:
        said.append(f"and {len(p.conditions) - SHOWN} more: `tidegate reconcile --dry-run`")
    if not said and p.note:
        said.append(session.text(p.note))
    return [*lines, *said]
