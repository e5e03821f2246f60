"""What one viewer has chosen and done: the state behind the screens, without a widget in it.

It reads snapshots from the link, makes frames of them, and submits acts; nothing else leaves it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from console.format import UTF8, Glyphs, masked, rate, short_labels
from console.frame import WINDOWS, Frame, Freshness, freshness, ranked_alerts
from console.link import EngineLink
from console.rates import stepped
from console.rows import ORDERS, Rows, choose
from console.undo import UndoStack
from engine.domain import act as acts
from engine.domain.act import Act
from engine.domain.snapshot import ActView, NumberView, Snapshot

NOTICE_S = 8.0
SETTLES_S = 3.0
"""After that an act that is not in effect is one that the nodes do not hear of: what changes then is others' doing."""
READ_ONLY = "read-only: this screen may not act, nothing was submitted"


@dataclass(frozen=True, slots=True)
class _Sent:
    id: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class _Notice:
    text: str = ""
    until: float = float("-inf")
    stays: bool = False
    """Also through further keys: what was refused may have been many of them."""


class Session:
    """`now` is the time of day, `monotonic` measures ages; both are passed in, so tests own time."""

    def __init__(
        self,
        link: EngineLink,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        glyphs: Glyphs = UTF8,
    ) -> None:
        self.link, self.glyphs = link, glyphs
        self._now, self._monotonic = now, monotonic
        self._seen: Snapshot | None = None
        self._seen_at = self._started = monotonic()
        self._frozen: Snapshot | None = None
        self._order = 0
        self._window = 1
        self._staged: dict[str, float] = {}
        self._undo = UndoStack()
        self._sent: _Sent | None = None
        self._notice = _Notice()
        self._labels: dict[str, str] = {}
        self._labelled: tuple[tuple[str, str], ...] = ()
        self._alert: str | None = None
        self.filter = ""
        self.cursor: str | None = None
        self.fault = ""
        self.stopping = False

    def monotonic(self) -> float:
        """The clock that ages are measured by, in seconds."""
        return self._monotonic()

    # -- reading ----------------------------------------------------------------------------------

    def live(self) -> Snapshot | None:
        """The newest snapshot, also while the picture is frozen."""
        snapshot = self.link.snapshot()
        if snapshot is not self._seen:
            self._seen, self._seen_at = snapshot, self._monotonic()
        return snapshot

    @property
    def frozen(self) -> bool:
        """Whether the picture stands still."""
        return self._frozen is not None

    def freshness(self) -> Freshness:
        """Of the picture that is shown."""
        live = self.live()
        shown = self._frozen or live
        if shown is None:
            return Freshness("NONE", self._monotonic() - self._started)
        unchanged = 0.0 if self.frozen else self._monotonic() - self._seen_at
        return freshness(shown.at, self._now(), unchanged, self.frozen)

    def frame(self) -> Frame:
        """What to paint now; moves the cursor only when its row is gone."""
        live = self.live()
        shown = self._frozen or live
        rows = self._rows(shown)
        self._keep_cursor(rows)
        return Frame(
            snapshot=shown,
            now=self._now(),
            freshness=self.freshness(),
            ended=self.link.ended(),
            glyphs=self.glyphs,
            rows=rows,
            labels=self._labels,
            cursor=self.cursor,
            order=ORDERS[self._order],
            filter=self.filter,
            window=self._window,
            staged=dict(self._staged),
            alert=self._current_alert(shown),
            act=self._newest_act(live),
            notice=self._notice.text if self._monotonic() < self._notice.until else "",
            fault=self.fault,
            waiting_s=self._monotonic() - self._started,
        )

    def _rows(self, snapshot: Snapshot | None) -> Rows:
        if snapshot is None:
            return Rows((), 0, 0)
        displays = tuple((n.id, n.display) for n in snapshot.numbers)
        if displays != self._labelled:
            self._labelled, self._labels = displays, short_labels(dict(displays), self.glyphs)
        self._staged = {k: v for k, v in self._staged.items() if k in self._labels}
        return choose(snapshot.numbers, ORDERS[self._order], self.filter, self._labels)

    def _keep_cursor(self, rows: Rows) -> None:
        ids = [n.id for n in rows.shown]
        if self.cursor not in ids:
            self.cursor = ids[0] if ids else None

    def _current_alert(self, snapshot: Snapshot | None) -> str | None:
        keys = [a.key for a in ranked_alerts(snapshot)] if snapshot else []
        if self._alert not in keys:
            self._alert = None
        return self._alert or (keys[0] if keys else None)

    def _newest_act(self, live: Snapshot | None) -> ActView | None:
        known = live.acts if live else ()
        if self._sent is not None and all(a.id != self._sent.id for a in known):
            return ActView(self._sent.id, self._sent.text, "sent", None, "", False)
        mine = next((a for a in known if self._sent is not None and a.id == self._sent.id), None)
        return mine or (known[0] if known else None)

    # -- choosing ---------------------------------------------------------------------------------

    def notify(self, text: str, *, stays: bool = False) -> None:
        """Show a line for NOTICE_S, or (unless it stays) until the next key; it is seen elsewhere, or only a hint."""
        self._notice = _Notice(text, self._monotonic() + NOTICE_S, stays)

    def hush(self) -> None:
        """A key was pressed after what was said: faults and notices have been read."""
        self.fault = ""
        if not self._notice.stays:
            self._notice = _Notice()

    def freeze(self) -> None:
        """Hold the picture still, or let it go."""
        self._frozen = None if self.frozen else self.live()

    def sort(self, step: int) -> None:
        """The next or the previous order."""
        self._order = (self._order + step) % len(ORDERS)

    def next_window(self) -> None:
        """1m 5m 15m 1h 6h and round again."""
        self._window = (self._window + 1) % len(WINDOWS)

    def move(self, step: int) -> None:
        """Move the cursor by rows; it stops at the ends."""
        ids = [n.id for n in self._rows(self._frozen or self.live()).shown]
        if ids:
            at = ids.index(self.cursor) if self.cursor in ids else 0
            self.cursor = ids[min(max(0, at + step), len(ids) - 1)]

    def move_alert(self, step: int) -> None:
        """Choose which alert is shown and acknowledged."""
        shown = self._frozen or self.live()
        keys = [a.key for a in ranked_alerts(shown)] if shown else []
        if keys:
            current = self._current_alert(shown)
            at = keys.index(current) if current in keys else 0
            self._alert = keys[min(max(0, at + step), len(keys) - 1)]

    def number(self, number_id: str | None) -> NumberView | None:
        """The live view of a number; None without one."""
        live = self.live()
        return next((n for n in live.numbers if n.id == number_id), None) if live else None

    def label(self, number_id: str) -> str:
        """The masked name of a number."""
        return self._labels.get(number_id, number_id[-4:])

    def text(self, outside: str) -> str:
        """Text from outside for one line: harmless and masked."""
        return masked(outside, self._labels, self.glyphs)

    def stage(self, number_id: str | None, direction: int) -> None:
        """One step of a number's rate up or down; nothing is submitted."""
        target = self.number(number_id)
        if target is None:
            return
        wanted = stepped(target, self._staged.get(target.id), direction)
        if wanted == target.rate:
            self._staged.pop(target.id, None)
            at_end = (
                "the provider's limit"
                if direction > 0 and target.rate >= target.limit
                else "the rate in force"
            )
            self.notify(f"{self.label(target.id)}: {rate(target.rate)}/s is {at_end}")
        else:
            self._staged[target.id] = wanted

    def staged(self, number_id: str | None) -> acts.SetRate | None:
        """The staged rate of a number, as an act."""
        value = self._staged.get(number_id or "")
        return None if value is None or number_id is None else acts.SetRate(number_id, value)

    def drop_staged(self) -> bool:
        """Forget all staged rates; whether there were any."""
        had = bool(self._staged)
        self._staged.clear()
        return had

    def on_its_way(self, live: Snapshot) -> bool:
        """Whether the last act of this screen is not in effect yet, nor refused; for a few seconds at most."""
        if self._sent is None or self._monotonic() - self._sent.at >= SETTLES_S:
            return False
        stage = next((a.stage for a in live.acts if a.id == self._sent.id), "sent")
        return stage in ("sent", "acknowledged")

    # -- acting -----------------------------------------------------------------------------------

    def submit(self, act: Act, *, undoable: bool = True) -> str | None:
        """Hand an act over; its id, or None when this screen may not act (and then says so)."""
        live = self.live()
        if self.link.ended() is not None:
            self.notify("the engine has ended: nothing was submitted")
            return None
        if live is not None and live.read_only:
            self.notify(READ_ONLY)
            return None
        before = live if live is not None else self._seen
        act_id = self.link.submit(act)
        self._sent = _Sent(act_id, self.describe(act, before), self._monotonic())
        if undoable:
            self._undo.remember(act_id, act, before, self._monotonic())
        self.stopping = self.stopping or isinstance(act, acts.StopEngine)
        if isinstance(act, acts.SetRate):
            self._staged.pop(act.number, None)
        return act_id

    def undo(self) -> None:
        """Submit the inverse of the last rate or pause act of this screen, unless its target has moved on."""
        found = self._undo.take(self.live(), self._monotonic())
        if isinstance(found, str):
            self.notify(found)
        else:
            self.submit(found, undoable=False)

    def describe(self, act: Act, before: Snapshot | None) -> str:
        """PAUSE …0017, RATE …0017 100→80"""
        match act:
            case acts.PauseNumber(number=key):
                return f"PAUSE {self.label(key)}"
            case acts.ResumeNumber(number=key):
                return f"RESUME {self.label(key)}"
            case acts.SetRate(number=key, rate=value):
                old = next((n.rate for n in before.numbers if n.id == key), None) if before else None
                return f"RATE {self.label(key)} {rate(old)}{self.glyphs.arrow}{rate(value)}"
            case acts.Reconcile(dry_run=True):
                return "RECONCILE, dry run"
            case acts.AcknowledgeAlerts(key=None):
                return "ACK ALL"
            case acts.LiftHold(target=target):
                return f"LIFT {self.text(target)}"
        words = "".join(f" {c}" if c.isupper() else c for c in type(act).__name__)
        return words.upper().strip()
