"""⏎ on a number: why it is in this state, what comes next, and the capacity sum."""

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.screen import Screen

from console.acting import Acting
from console.format import clean, duration, number, percent, rate, spark
from console.frame import Frame, elsewhere, unattended
from console.history import chosen
from console.keys import bindings
from console.line import Line
from console.screens.page import MOVES
from console.screens.pick import Entry, PickScreen, text
from console.screens.rows import CodesScreen, RowsScreen
from console.session import Session
from engine.domain.errors import describe
from engine.domain.inspection import RowsOf
from engine.domain.snapshot import NumberView, Percentiles

NEXT = {
    "paused": "stays so until a person resumes it: r",
    "held": "needs a person: find the cause, then r (it asks)",
    "waiting": "goes on by itself",
    "slowed": "sends at its ceiling, which grows back by itself while the provider takes it",
    "active": "sends",
}
BOUNDS = {
    "bucket": "its own rate: raise it with + if the provider's limit allows",
    "rows": "there are not enough ready rows",
    "slots": "requests in flight: answers are slow",
    "database": "our database is the slowest part",
    "provider": "it grants less than the configured rate (- or = takes that down to it), or asked for a pause",
    "hold": "a pause or a hold",
    "lease": "that of a silent node: when it has run out, a living node takes the number",
    "no node": "no engine has it: start `tidegate run`, or wait for one that runs to take it",
}


ROOMY = 30
"""Lines of the terminal below which no line is left blank: all facts and both ways down fit into 24, unless one of them
is so long that it takes two."""


class NumberScreen(PickScreen):
    """Bound to the number at the key press, whatever the cursor does."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(
        (*MOVES, "enter", "pause", "resume", "rate_up", "rate_down", "rate_exact", "undo")
    )

    def __init__(self, session: Session, number_id: str) -> None:
        super().__init__(session)
        self._number_id = number_id
        self._acting = acting = Acting(session, self._push, number_id)
        self._acts: dict[str, Callable[[], object]] = {
            "pause": acting.pause, "resume": acting.resume, "rate_up": lambda: acting.stage(1),
            "rate_down": lambda: acting.stage(-1), "rate_exact": acting.rate_exact, "undo": session.undo,
        }  # fmt: skip

    def _push(self, screen: Screen[None]) -> None:
        self.app.push_screen(screen)

    def does(self, name: str) -> bool:
        """The overview's acts, on this number; Esc drops its staged rate before it leaves."""
        if name == "back" and self.session.staged(self._number_id) is not None:
            return self.session.drop_staged()
        act = self._acts.get(name)
        if act is not None:
            act()
        return act is not None

    def page_title(self, frame: Frame) -> str:
        """The masked number, and the keys that act here."""
        keys = f"p pause r resume + - = rate {frame.glyphs.enter} apply or open u undo"
        return f"NUMBER {frame.label(self._number_id)}  {keys}"

    def entries(self, frame: Frame, width: int) -> Sequence[Entry]:
        """The facts, and the way down."""
        facts = [text(line) for fact in self._facts(frame) for line in fact.folded(width, 13)]
        codes = Line(" error codes and rows of this number", "key")
        open_ = Line(" its rows that are unknown, or sending for more than 2 min", "key")
        if self.size.height < ROOMY:
            facts = [fact for fact in facts if any(line.parts for line in fact.lines)]
        return [*facts, Entry("codes", (codes,)), Entry("unsettled", (open_,))]

    def open(self, key: Hashable) -> None:
        """A staged rate is applied first; else its error codes, or its rows without an answer."""
        if self._acting.apply_staged():
            return
        if key == "codes":
            self.app.push_screen(CodesScreen(self.session, number=self._number_id))
        else:
            self.app.push_screen(RowsScreen(self.session, RowsOf(number=self._number_id, unsettled=True)))

    def _of_another_node(self, n: NumberView, frame: Frame) -> Sequence[Line]:
        """What the database says; the rest only its owner knows."""
        return [
            _state_line(n, frame),
            _pair(
                "owner", f"{clean(n.owner or '', frame.glyphs)}, epoch {n.epoch}: it sends there, not here"
            ),
            _pair(
                "next", "`tidegate attach` shows its pace and its waits; p r + - = act on it from here, too"
            ),
            *_of_the_database(n, frame),
        ]

    def _of_nobody(self, n: NumberView, frame: Frame) -> Sequence[Line]:
        """What the database says: nobody knows more."""
        return [
            _state_line(n, frame),
            _pair(
                "owner",
                f"{clean(n.owner or 'no node', frame.glyphs)}, account {clean(n.account, frame.glyphs)}",
            ),
            _pair("bound by", f"{n.bound_by}: {BOUNDS[n.bound_by]}"),
            *_of_the_database(n, frame),
        ]

    def _facts(self, frame: Frame) -> Sequence[Line]:
        """State, pace, waits, rows."""
        n = frame.number(self._number_id)
        if n is None:
            return [Line(" this number is gone", "warning")]
        owner = clean(n.owner or "no node", frame.glyphs)
        if frame.snapshot is not None and elsewhere(n, frame.snapshot):
            return self._of_another_node(n, frame)
        if unattended(n):
            return self._of_nobody(n, frame)
        window = frame.window
        return [
            _state_line(n, frame),
            _pair("next", _next(n)),
            _pair("bound by", f"{clean(n.bound_by, frame.glyphs)}: {_bound(n)}"),
            Line(),
            _pair("rate", f"{_rate(n, frame)} of the provider's limit {rate(n.limit)}; ceiling now {rate(n.ceiling)}; "
                          f"used {percent(n.use)}"),
            _pair("sends", f"{rate(n.sent_per_second)}/s accepted, {rate(n.tries_per_second)}/s tried; last second "
                           f"{n.tries_last_second} left, {n.accepted_last_second} answers ok"),
            _pair("granted", _granted(n)),
            _pair("capacity", _capacity(n)),
            Line(),
            *_trends(n, frame),
            _pair("token wait", _percentiles(chosen(n.past.waits, window, n.token_wait), frame.span)),
            _pair("answer", _percentiles(chosen(n.past.answers, window, n.latency), frame.span)),
            Line(),
            _pair("rows", f"pending {number(n.pending)}  in flight {n.in_flight}  stuck {n.stuck}"
                          f"  unknown {n.unknown}"),
            _pair("errors", _errors(n, frame)),
            _pair("last ok", f"{duration(n.last_accepted_s)} ago" if n.last_accepted_s is not None else "-"),
            _pair("owner", f"{owner}, epoch {n.epoch}, account {clean(n.account, frame.glyphs)}"),
            _pair("campaigns", ", ".join(clean(name, frame.glyphs) for name in n.campaigns) or "none"),
            Line(),
        ]  # fmt: skip


def _of_the_database(n: NumberView, frame: Frame) -> Sequence[Line]:
    """What is known of it whoever sends from it."""
    return [
        Line(),
        _pair("rate", f"{_rate(n, frame)} of the provider's limit {rate(n.limit)}"),
        _pair("rows", f"pending {number(n.pending)}  stuck {n.stuck}  unknown {n.unknown}"),
        _pair("campaigns", ", ".join(clean(name, frame.glyphs) for name in n.campaigns) or "none"),
    ]


def _bound(n: NumberView) -> str:
    """What the word means; while it is throttled, by how much."""
    if n.bound_by == "provider" and n.ceiling < n.rate:
        return f"it grants about {rate(n.ceiling)} of {rate(n.rate)}/s: - or = takes the rate down to it"
    return BOUNDS.get(n.bound_by, "-")


def _rate(n: NumberView, frame: Frame) -> str:
    """In force, and what is staged."""
    staged = frame.staged.get(n.id)
    return (
        f"{rate(n.rate)}{frame.glyphs.arrow}{rate(staged)}/s" if staged is not None else f"{rate(n.rate)}/s"
    )


def _state_line(n: NumberView, frame: Frame) -> Line:
    until = f", {duration((n.until - frame.now).total_seconds())} more" if n.until is not None else ""
    why = f"{',' if until else ''} because {frame.text(n.reason)}" if n.reason else ""
    return _pair("state", f"{n.state.upper()}{until}{why}")


def _pair(name: str, text: str) -> Line:
    return Line(f" {name:<12}", "faint").add(text)


def _next(n: NumberView) -> str:
    if n.rate <= 0:
        return "stays so until it has a rate again: ="
    return NEXT.get(n.state, "-")


def _trends(n: NumberView, frame: Frame) -> list[Line]:
    """What it did over the chosen window (w), each strip from 0 to its highest."""
    kept = n.past
    tracks = (("accepted/s", kept.accepted), ("refused/s", kept.refused), ("ceiling", kept.ceiling),
              ("wait p95", kept.token_wait))  # fmt: skip
    lines = []
    for name, points in tracks:
        steps = chosen(points, frame.window, ())
        line = Line(f" {name:<12}", "faint")
        if steps:
            top = duration(max(steps)) if name == "wait p95" else rate(round(max(steps), 1))
            line.add(spark(steps, frame.glyphs.spark), "bar").add(f" max {top} in {frame.span}", "faint")
        lines.append(line if steps else line.add("nothing kept yet", "faint"))
    return lines


def _errors(n: NumberView, frame: Frame) -> str:
    share = chosen(n.past.error_share, frame.window, n.error_share)
    top = chosen(n.past.top_error, frame.window, n.top_error)
    what = f", most {top} {describe(top).title}" if top is not None else ""
    return f"{percent(share, 1)} of answers in {frame.span}{what}"


def _percentiles(p: Percentiles | None, span: str) -> str:
    if p is None:
        return "-"
    return (
        f"p50 {duration(p.p50)}  p95 {duration(p.p95)}  p99 {duration(p.p99)}  ({number(p.count)} in {span})"
    )


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
