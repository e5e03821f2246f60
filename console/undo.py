"""Taking back a rate or a pause: the inverse act, for five minutes, unless the target has moved on."""

from collections import deque
from dataclasses import dataclass

from engine.domain.act import (
    Act,
    PauseAll,
    PauseCampaign,
    PauseNumber,
    ResumeAll,
    ResumeCampaign,
    ResumeNumber,
    SetRate,
)
from engine.domain.snapshot import Snapshot

UNDO_S = 300.0


@dataclass(frozen=True, slots=True)
class _Done:
    id: str
    act: Act
    inverse: Act
    at: float


class UndoStack:
    """The acts of this screen that can be taken back, the last first."""

    def __init__(self) -> None:
        self._done: deque[_Done] = deque(maxlen=20)

    def remember(self, act_id: str, act: Act, before: Snapshot | None, at: float) -> None:
        """Keep an act that has just been submitted; `before` is what was known then."""
        inverse = inverse_of(act, before)
        if inverse is not None:
            self._done.append(_Done(act_id, act, inverse, at))

    def take(self, live: Snapshot | None, at: float) -> Act | str:
        """The inverse to submit, or a sentence that says why there is none."""
        stages = {a.id: a.stage for a in live.acts} if live else {}
        while self._done:
            last = self._done.pop()
            if stages.get(last.id) == "refused":
                continue
            if at - last.at > UNDO_S:
                self._done.clear()
                break
            return _moved_on(last, live) or last.inverse
        return "nothing to undo: no rate or pause from this screen in the last 5 minutes"


def inverse_of(act: Act, before: Snapshot | None) -> Act | None:
    """The act that takes `act` back, or None when it is no rate and no pause (or its target is not known)."""
    match act:
        case PauseNumber(number=key):
            known = before is not None and any(n.id == key and n.state == "paused" for n in before.numbers)
            return None if known else ResumeNumber(key)
        case PauseCampaign(campaign=name):
            return ResumeCampaign(name)
        case PauseAll():
            return ResumeAll()
        case SetRate(number=key):
            old = next((n.rate for n in before.numbers if n.id == key), None) if before else None
            return None if old is None else SetRate(key, old)
    return None


def _moved_on(done: _Done, live: Snapshot | None) -> str | None:
    """Someone else's change since then is not ours to take back. The old rate may still be seen for a moment."""
    if not isinstance(done.act, SetRate) or not isinstance(done.inverse, SetRate) or live is None:
        return None
    target = next((n for n in live.numbers if n.id == done.act.number), None)
    if target is None:
        return "not undone: this number is gone"
    if target.rate not in (done.act.rate, done.inverse.rate):
        return f"not undone: its rate is {target.rate:g} now, no longer {done.act.rate:g}"
    return None
