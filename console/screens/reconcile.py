"""R: first a dry run by the engine, then y does exactly that."""

from console.format import number
from console.screens.dialog import Dialog
from console.session import Session
from engine.domain.act import Reconcile
from engine.domain.snapshot import ReconcilePreview, Snapshot


class ReconcileScreen(Dialog):
    """Over all campaigns."""

    def __init__(self, session: Session) -> None:
        super().__init__("RECONCILE unknown rows, all campaigns", session)
        self._dry_run: str | None = None
        self._mark: tuple[ReconcilePreview, int] | None = None
        self._refused = False

    def opened(self) -> None:
        """Ask the engine what it would do."""
        self._dry_run = self.session.submit(Reconcile(None, dry_run=True))

    def facts(self) -> list[str]:
        """Nothing yet, the preview, or why there is none."""
        live = self.session.live()
        if live is None or self._dry_run is None:
            return ["No dry run was made."]
        preview = live.reconcile.get(self._dry_run)
        refusal = next((a.detail for a in live.acts if a.id == self._dry_run and a.stage == "refused"), None)
        if refusal is not None:
            return [f"The engine refused the dry run: {self.session.text(refusal)}"]
        if preview is None:
            self.say("Waiting for the dry run. Esc = no.")
            return [f"unknown now {number(live.unknown)}; asking the engine what it would do"]
        if self._mark is None:
            self._mark = (preview, live.unknown)
            self.say("y = do it    Esc or n = no    (Enter does nothing)")
        self._check(live)
        return _lines(preview, live.unknown, self.session)

    def accept(self) -> None:
        """Only after a dry run, and only if what it counted is still so."""
        live = self.session.live()
        if live is not None:
            self._check(live)
        if self._mark is None or self._refused or live is None:
            return
        self.session.submit(Reconcile(None, dry_run=False))
        self.dismiss()

    def _check(self, live: Snapshot) -> None:
        if self._mark is not None and live.unknown != self._mark[1]:
            self._refused = True
            self.say("The unknown rows changed meanwhile: nothing was done. Esc, then R for a new dry run.")


def _lines(p: ReconcilePreview, unknown: int, session: Session) -> list[str]:
    arrow = session.glyphs.arrow
    lines = [
        f"unknown now {number(unknown)}",
        f"{number(p.to_sent):>8} {arrow} sent",
        f"{number(p.to_pending):>8} {arrow} pending, sent again: possible duplicates {number(p.to_pending)}",
        f"{number(p.stay_unknown):>8} stay unknown",
        f"{number(p.waiting):>8} wait: their window has not passed",
        f"{number(p.stuck_to_unknown):>8} stuck {arrow} unknown",
    ]
    return [*lines, session.text(p.note)] if p.note else lines
