"""The grid of numbers: fixed columns, strips of text, bad rows on top, and a cursor that follows its row.

Not a DataTable: that repaints every cell on any update (47 to 154 ms a refresh, against about 5).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console.format import Glyphs, age, clean, duration, number, percent, rate, spark
from console.frame import Frame
from console.line import Line
from console.rows import Severity, severity
from console.widgets.panel import LinePanel, title_line
from engine.domain.snapshot import NumberView

HEAD_LINES = 2
WIDE = 120

_ROLES = {
    Severity.CRITICAL: "critical-text", Severity.WARNING: "warning",
    Severity.PAUSED: "paused", Severity.NORMAL: "text",
}  # fmt: skip
Cell = Callable[[NumberView, Frame], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Column:
    """A fixed width in cells; `cell` gives the text and its role."""

    head: str
    width: int
    cell: Cell
    align: str = ">"
    wide_only: bool = False


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
        columns = [c for c in COLUMNS if width >= WIDE or not c.wide_only]
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
        way = frame.glyphs.down if frame.order.descending else frame.glyphs.up
        text = f"1 NUMBERS {able}/{len(numbers)} {frame.glyphs.rule}sort:{frame.order.name}{way} "
        text += f"{frame.glyphs.rule}filter:{chosen}{hidden}"
        return title_line(
            frame, text, width, self.has_focus, f" {frame.glyphs.down}{below} more " if below > 0 else ""
        )


def _nothing(frame: Frame) -> str:
    if frame.snapshot is None:
        return ""
    if frame.rows.hidden:
        return f" no number contains this text; Esc shows all {frame.rows.hidden}"
    return " no numbers yet: tidegate number add"


def _heads(frame: Frame, columns: Sequence[Column]) -> Line:
    line = Line(" ")
    for c in columns:
        line.cell(c.head, c.width, c.align, "key" if c.head == frame.order.column else "title")
    return line


def _row(n: NumberView, frame: Frame, columns: Sequence[Column], under_cursor: bool) -> Line:
    line = Line(">", "key") if under_cursor else Line(" ")
    staged = frame.staged.get(n.id)
    for c in columns:
        if staged is not None and c.head == "CEIL":
            continue
        if staged is not None and c.head == "CFG":
            text = f"{rate(n.rate)}{frame.glyphs.arrow}{rate(staged)}"
            line.cell(" ", 1).cell(text, c.width + _CEIL_WIDTH - 1, ">", "staged", frame.glyphs.cut)
            continue
        text, role = c.cell(n, frame)
        line.cell(text, c.width, c.align, role, frame.glyphs.cut)
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
    if abs(n.tries_per_second - n.sent_per_second) < max(0.5, n.sent_per_second * 0.01):
        return sent, "text"
    return (f"{n.sent_per_second:.0f}" if n.sent_per_second >= 100 else sent) + f"/{tries}", "warning"


def _bound(n: NumberView, frame: Frame) -> tuple[str, str]:
    text = clean(n.bound_by, frame.glyphs)
    return text, "warning" if text in ("database", "provider", "hold") else "text"


def _top_error(n: NumberView, _frame: Frame) -> tuple[str, str]:
    return str(n.top_error) if n.top_error is not None else "-", "text"


def _why(n: NumberView, frame: Frame) -> tuple[str, str]:
    text = n.state if n.state != "active" else ""
    if n.state == "waiting" and n.until is not None:
        text += f" {age((n.until - frame.now).total_seconds())}"
    return " " + clean(text, frame.glyphs), _ROLES[severity(n)]


_CEIL_WIDTH = 5
COLUMNS: tuple[Column, ...] = (
    Column("ST", 5, _state, "<"),
    Column("NUMBER", 10, _name, "<"),
    Column("STATE", 12, _why, "<", wide_only=True),
    Column("SENT/S", 9, _sent),
    Column("CFG", 5, lambda n, _: (rate(n.rate), "text")),
    Column("CEIL", _CEIL_WIDTH, lambda n, _: (rate(n.ceiling), "warning" if n.ceiling < n.rate else "text")),
    Column("USE%", 5, lambda n, _: (percent(n.sent_per_second / n.rate) if n.rate else "-", "text")),
    Column("TOKW95", 7, lambda n, _: (duration(n.token_wait.p95 if n.token_wait else None), "text")),
    Column(
        "TOKW99",
        7,
        lambda n, _: (duration(n.token_wait.p99 if n.token_wait else None), "text"),
        wide_only=True,
    ),
    Column("ERR%", 6, lambda n, _: ("-" if n.error_share is None else f"{n.error_share * 100:.1f}", "text")),
    Column("TOP", 7, _top_error),
    Column("PENDING", 10, lambda n, _: (number(n.pending), "text")),
    Column("STUCK", 6, lambda n, _: (number(n.stuck), "warning" if n.stuck else "text")),
    Column("OK", 4, lambda n, _: (age(n.last_accepted_s), "text")),
    Column("  BOUND BY", 11, lambda n, f: ("  " + _bound(n, f)[0], _bound(n, f)[1]), "<", wide_only=True),
    Column("60s", 10, lambda n, f: (_strip(n, f), "bar"), "<", wide_only=True),
)


def _strip(n: NumberView, frame: Frame) -> str:
    series = n.accepted_series[-60:]
    step = max(1, len(series) // 9)
    means = [sum(series[i : i + step]) / step for i in range(len(series) % step, len(series), step)]
    return spark(means[-9:], frame.glyphs.spark, n.rate)
