"""⏎ on a number: why it is in this state, what comes next, and the capacity sum."""

from collections.abc import Hashable, Sequence

from console.format import clean, duration, number, percent, rate, spark
from console.frame import Frame
from console.line import Line
from console.screens.pick import Entry, PickScreen, text
from console.screens.rows import CodesScreen
from console.session import Session
from engine.domain.snapshot import NumberView, Percentiles

_NEXT = {
    "paused": "stays so until a person resumes it: r on the overview",
    "held": "needs a person: find the cause, then r on the overview (it asks)",
    "waiting": "goes on by itself",
    "slowed": "sends at its ceiling, which grows back by itself while the provider takes it",
    "active": "sends",
}
_BOUNDS = {
    "bucket": "its own rate: raise it with + if the provider's limit allows",
    "rows": "there are not enough ready rows",
    "slots": "requests in flight: answers are slow",
    "database": "our database is the slowest part",
    "provider": "the provider refuses more",
    "hold": "a pause or a hold",
}


class NumberScreen(PickScreen):
    """Bound to the number at the key press, whatever the cursor does."""

    def __init__(self, session: Session, number_id: str) -> None:
        super().__init__(session)
        self._number_id = number_id

    def page_title(self, frame: Frame) -> str:
        """The masked number."""
        return f"NUMBER {frame.label(self._number_id)}  ({frame.glyphs.enter} its error codes and rows)"

    def entries(self, frame: Frame, _width: int) -> Sequence[Entry]:
        """The facts, and the way down."""
        facts = [text(line) for line in self._facts(frame)]
        down = Line(" error codes and rows of this number", "key")
        return [*facts, text(Line()), Entry("codes", (down,))]

    def open(self, _key: Hashable) -> None:
        """Its error codes."""
        self.app.push_screen(CodesScreen(self.session, number=self._number_id))

    def _facts(self, frame: Frame) -> Sequence[Line]:
        """State, pace, waits, rows."""
        n = frame.number(self._number_id)
        if n is None:
            return [Line(" this number is gone", "warning")]
        until = f", {duration((n.until - frame.now).total_seconds())} more" if n.until is not None else ""
        why = f" because {frame.text(n.reason)}" if n.reason else ""
        owner = clean(n.owner or "no node", frame.glyphs)
        strip = spark(n.accepted_series[-60:], frame.glyphs.spark, n.rate)
        return [
            _pair("state", f"{n.state.upper()}{why}{until}"),
            _pair("next", _NEXT.get(n.state, "-")),
            _pair("bound by", f"{clean(n.bound_by, frame.glyphs)}: {_BOUNDS.get(n.bound_by, '-')}"),
            Line(),
            _pair("rate", f"{rate(n.rate)}/s of the provider's limit {rate(n.limit)}; ceiling now {rate(n.ceiling)}"),
            _pair("sends", f"{rate(n.sent_per_second)}/s accepted, {rate(n.tries_per_second)}/s tried; last second "
                           f"{n.accepted_last_second} of {n.tries_last_second}"),
            _pair("granted", _granted(n)),
            _pair("60 s", strip),
            _pair("capacity", _capacity(n)),
            _pair("token wait", _percentiles(n.token_wait)),
            _pair("answer", _percentiles(n.latency)),
            Line(),
            _pair("rows", f"pending {number(n.pending)}  in flight {n.in_flight}  stuck {n.stuck}"
                          f"  unknown {n.unknown}"),
            _pair("errors", f"{percent(n.error_share, 1)} of answers in 5 min, most {n.top_error or '-'}"),
            _pair("last ok", f"{duration(n.last_accepted_s)} ago" if n.last_accepted_s is not None else "-"),
            _pair("owner", f"{owner}, epoch {n.epoch}, account {clean(n.account, frame.glyphs)}"),
            _pair("campaigns", ", ".join(clean(name, frame.glyphs) for name in n.campaigns) or "none"),
        ]  # fmt: skip


def _pair(name: str, text: str) -> Line:
    return Line(f" {name:<12}", "faint").add(text)


def _percentiles(p: Percentiles | None) -> str:
    if p is None:
        return "-"
    return f"p50 {duration(p.p50)}  p95 {duration(p.p95)}  p99 {duration(p.p99)}  ({number(p.count)} in 60 s)"


def _capacity(n: NumberView) -> str:
    """The engine's own bound on requests in flight: rate x min(p95, 5 s) x 1.5 + 10."""
    if n.latency is None:
        return "-"
    slots = n.rate * min(n.latency.p95, 5.0) * 1.5 + 10
    p95 = duration(min(n.latency.p95, 5.0))
    return f"{rate(n.rate)}/s x {p95} x 1.5 + 10 = {slots:.0f} in flight, now {n.in_flight}"


def _granted(n: NumberView) -> str:
    """What the provider really gives while it throttles."""
    if not n.throttled_share:
        return "nothing throttled in 60 s"
    return f"{rate(n.granted)}/s while {percent(n.throttled_share, 1)} of tries are throttled (60 s)"
