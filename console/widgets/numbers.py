"""The grid of numbers: fixed columns, strips of text, bad rows on top, and a cursor that follows its row.

Not a DataTable: that repaints every cell on any update (47 to 154 ms a refresh, against about 5).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console.format import Glyphs, age, clean, duration, number, percent, rate, short_number, spark
from console.frame import Frame, differs, elsewhere, unattended
from console.history import chosen
from console.line import Line
from console.rows import Severity, severity
from console.why import URGENT, why
from console.widgets.panel import LinePanel, title_line
from engine.domain.snapshot import NumberView, Percentiles

HEAD_LINES = 2
WIDE = 120

_ROLES = {
    Severity.CRITICAL: "critical-text", Severity.WARNING: "warning",
    Severity.PAUSED: "paused", Severity.NORMAL: "text",
}  # fmt: skip
Cell = Callable[[NumberView, Frame], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Column:
    """Of fixed width; `cell` gives the text and its role."""

    head: str
    widths: tuple[int, int]
    """In cells: below WIDE, and from there on. 0: not there."""
    cell: Cell
    meaning: str
    """For the help: one line."""
    align: str = ">"
    live: bool = False
    """Only the node that owns the number knows it."""


Laid = Sequence[tuple[Column, int]]
"""Columns with their widths in one layout."""


def laid_out(width: int) -> Laid:
    """The columns of a grid so wide."""
    return [(c, c.widths[width >= WIDE]) for c in COLUMNS if c.widths[width >= WIDE]]


class NumbersGrid(LinePanel, can_focus=True):
    """Title, column heads, and the rows that fit; only these are ever made."""

    NUMBER = 1

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  Textual's name
        super().__init__(id=id)
        self._top = 0
        self._cursor_at = -1

    @property
    def rows_visible(self) -> int:
        """Rows that fit below the heads."""
        return max(1, self.size.height - HEAD_LINES)

    def cursor_line(self) -> int:
        """The line with the cursor."""
        return self._cursor_at

    def lines(self, frame: Frame, width: int, height: int) -> Sequence[Line]:
        """Only the visible part; it moves so that the cursor's row stays in it."""
        rows, room = frame.rows.shown, max(0, height - HEAD_LINES)
        at = next((i for i, n in enumerate(rows) if n.id == frame.cursor), -1)
        if at >= 0:
            self._top = min(self._top, at) if at < self._top + room else at - room + 1
        self._top = max(0, min(self._top, len(rows) - room))
        self._cursor_at = HEAD_LINES + at - self._top if at >= 0 else -1
        columns = laid_out(width)
        body = [_row(n, frame, columns, n.id == frame.cursor) for n in rows[self._top : self._top + room]]
        if not rows:
            body = [Line(_nothing(frame), "faint")]
        return [self._title(frame, width, len(rows) - self._top - room), _heads(frame, columns), *body]

    def _title(self, frame: Frame, width: int, below: int) -> Line:
        numbers = frame.snapshot.numbers if frame.snapshot else ()
        able = sum(1 for n in numbers if n.state not in ("paused", "held"))
        chosen = clean(frame.filter, frame.glyphs) if frame.filter else "none"
        hidden = f" ({frame.rows.hidden} hidden" if frame.filter else ""
        if hidden:
            hidden += f", {frame.rows.hidden_bad} of them bad)" if frame.rows.hidden_bad else ")"
        away = [n for n in numbers if frame.snapshot is not None and elsewhere(n, frame.snapshot)]
        way = frame.glyphs.down if frame.order.descending else frame.glyphs.up
        text = f"1 NUMBERS {able}/{len(numbers)} {frame.glyphs.rule}sort:{frame.order.name}{way} "
        text += f"{frame.glyphs.rule}filter:{chosen}{hidden}"
        waiting = [n for n in numbers if n.bound_by == "lease" and n.until is not None]
        if waiting:
            left = max((_left_s(n, frame) for n in waiting), default=0.0)
            text += f" {frame.glyphs.rule}{len(waiting)} wait {age(left)} for a silent node's lease"
        if away:
            text += f" {frame.glyphs.rule}{len(away)} on {_owners(away, frame)}: tidegate attach shows all"
        return title_line(
            frame, text, width, self.has_focus, f" {frame.glyphs.down}{below} more " if below > 0 else ""
        )


def _owners(numbers: Sequence[NumberView], frame: Frame) -> str:
    names = sorted({clean(n.owner or "", frame.glyphs) for n in numbers})
    return names[0] if len(names) == 1 else f"{len(names)} other nodes"


def _nothing(frame: Frame) -> str:
    if frame.snapshot is None:
        return ""
    if frame.rows.hidden:
        return f" no number contains this text; Esc shows all {frame.rows.hidden}"
    return " no numbers yet: tidegate number add"


def _heads(frame: Frame, columns: Laid) -> Line:
    line = Line(" ")
    for c, width in columns:
        line.cell(c.head, width, c.align, "key" if c.head == frame.order.column else "title")
    return line


def _row(n: NumberView, frame: Frame, columns: Laid, under_cursor: bool) -> Line:
    line = Line(">", "key") if under_cursor else Line(" ")
    staged = frame.staged.get(n.id)
    away = unattended(n) or (frame.snapshot is not None and elsewhere(n, frame.snapshot))
    for c, width in columns:
        if staged is not None and c.head == "CEIL":
            continue
        if staged is not None and c.head == "CFG":
            text = f"{rate(n.rate)}{frame.glyphs.arrow}{rate(staged)}"
            line.cell(" ", 1).cell(text, width + _CEIL_WIDTH - 1, ">", "staged", frame.glyphs.cut)
            continue
        text, role = ("-", "faint") if c.live and away else c.cell(n, frame)
        line.cell(text, width, c.align, role, frame.glyphs.cut)
    return line


def _state(n: NumberView, frame: Frame) -> tuple[str, str]:
    g, level = frame.glyphs, severity(n)
    worst = {Severity.CRITICAL: g.critical, Severity.WARNING: g.warning}.get(level, g.normal)
    if level is Severity.PAUSED:
        worst = g.paused
    return (worst if n.state == "paused" and level is Severity.PAUSED else worst + _sign(n.state, g)), _ROLES[
        level
    ]


def _sign(state: str, g: Glyphs) -> str:
    signs = {"paused": g.paused, "held": g.paused, "waiting": g.waiting, "slowed": g.slowed}
    return signs.get(state, g.running)


def _name(n: NumberView, frame: Frame) -> tuple[str, str]:
    """The account beside it only where it is a name: Meta's account ids are all alike in four cells."""
    account = "" if n.account.isdecimal() else f" {clean(n.account, frame.glyphs)}"
    return frame.label(n.id) + account, "strong" if n.id == frame.cursor else "text"


def _sent(n: NumberView, _frame: Frame) -> tuple[str, str]:
    """Accepted per second; tries per second beside it wherever they differ."""
    sent, tries = f"{n.sent_per_second:.1f}", f"{n.tries_per_second:.0f}"
    if not differs(n.sent_per_second, n.tries_per_second):
        return sent, "text"
    return (f"{n.sent_per_second:.0f}" if n.sent_per_second >= 100 else sent) + f"/{tries}", "warning"


def _bound(n: NumberView, frame: Frame) -> tuple[str, str]:
    if frame.snapshot is not None and elsewhere(n, frame.snapshot):
        return f"on {clean(n.owner or '', frame.glyphs)}", "key"
    text = clean(n.bound_by, frame.glyphs)
    return text, "warning" if text in URGENT else "text"


def _top_error(n: NumberView, frame: Frame) -> tuple[str, str]:
    code = chosen(n.past.top_error, frame.window, n.top_error)
    return str(code) if code is not None else "-", "text"


def _left_s(n: NumberView, frame: Frame) -> float:
    return max(0.0, (n.until - frame.now).total_seconds()) if n.until is not None else 0.0


def _state_word(n: NumberView, frame: Frame) -> tuple[str, str]:
    text = n.state if n.state != "active" else ""
    if n.state == "waiting" and n.until is not None:
        text += f" {age(_left_s(n, frame))}"
    if not text and frame.snapshot is not None and frame.snapshot.attached and n.owner is not None:
        return f" on {clean(n.owner, frame.glyphs)}", "faint"
    return " " + clean(text, frame.glyphs), _ROLES[severity(n)]


def _why(n: NumberView, frame: Frame) -> tuple[str, str]:
    word = why(n, away=frame.snapshot is not None and elsewhere(n, frame.snapshot))
    role = _ROLES[severity(n)] if n.state != "active" else "warning" if word in URGENT else "faint"
    return " " + clean(word, frame.glyphs), role


def _use(n: NumberView, _frame: Frame) -> tuple[str, str]:
    return percent(n.use), "text"


def _wait(n: NumberView, frame: Frame) -> Percentiles | None:
    return n.token_wait if frame.window == 0 else chosen(n.past.waits, frame.window, n.token_wait)


def _error_share(n: NumberView, frame: Frame) -> tuple[str, str]:
    share = chosen(n.past.error_share, frame.window, n.error_share)
    return "-" if share is None else f"{share * 100:.1f}" if share < 0.9995 else "100", "text"


def _strip(n: NumberView, frame: Frame) -> tuple[str, str]:
    minute = n.accepted_series[-60:]
    steps = minute if frame.window == 0 else chosen(n.past.accepted, frame.window, minute)
    size = max(1, len(steps) // 9)
    means = [sum(steps[i : i + size]) / size for i in range(len(steps) % size, len(steps), size)]
    return spark(means[-9:], frame.glyphs.spark, n.rate), "bar"


_CEIL_WIDTH = 5
COLUMNS: tuple[Column, ...] = (
    Column("ST", (5, 5), _state, "how bad it is, then what it does: see Signs", "<"),
    Column("NUMBER", (10, 10), _name, "the last digits of the phone number, and its account where that is a name", "<"),
    Column(" WHY", (8, 0), _why, "why it sends no faster, in a word: see Why", "<"),
    Column("STATE", (0, 12), _state_word, "why it is not at full rate; empty when it is (attached: its node)", "<"),
    Column("SENT/S", (9, 9), _sent, "accepted messages per second, mean of 5 s; 58/60: 58 accepted of 60 tried",
           live=True),
    Column("CFG", (5, 5), lambda n, _: (rate(n.rate), "text"),
           "the configured rate: what campaigns may send per second"),
    Column("CEIL", (_CEIL_WIDTH, _CEIL_WIDTH),
           lambda n, _: (rate(n.ceiling), "warning" if n.ceiling < n.rate else "text"),
           "the ceiling: what the provider seems to grant now; below CFG it was throttled", live=True),
    Column("USE%", (0, 5), _use, "SENT/S as a share of what CFG allowed in the same 5 s", live=True),
    Column("TOKW95", (7, 7), lambda n, f: (duration(p.p95 if (p := _wait(n, f)) else None), "text"),
           "token wait: how long a ready row waits for its turn; 95 of 100 wait less", live=True),
    Column("TOKW99", (0, 7), lambda n, f: (duration(p.p99 if (p := _wait(n, f)) else None), "text"),
           "the same for 99 of 100", live=True),
    Column("ERR%", (5, 6), _error_share, "refused answers of 100 tries", live=True),
    Column("TOP", (7, 7), _top_error, "the error code that refused most", live=True),
    Column("PENDING", (8, 10), lambda n, _: (short_number(n.pending), "text"),
           "rows that wait, of the running campaigns that it serves (so the same for numbers of one campaign)"),
    Column("STUCK", (6, 6), lambda n, _: (number(n.stuck), "warning" if n.stuck else "text"),
           "rows whose request left more than 2 min ago without an answer"),
    Column("OK", (4, 4), lambda n, _: (age(n.last_accepted_s), "text"), "time since its last accepted message",
           live=True),
    Column("  BOUND BY", (0, 11), lambda n, f: ("  " + _bound(n, f)[0], _bound(n, f)[1]),
           "what keeps it from sending faster: see Bound by", "<"),
    Column("TREND", (0, 10), _strip, "SENT/S over the chosen window; full height is CFG", "<", live=True),
)  # fmt: skip
