"""Down to one row: error codes, the rows behind a code, and one row's timeline with the provider's raw answers."""

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import ClassVar

from textual.binding import BindingType

from console.format import clean, duration, number
from console.frame import Frame
from console.keys import bindings
from console.line import Line
from console.screens.page import MOVES
from console.screens.pick import Asked, Entry, PickScreen, text
from console.session import READ_ONLY, Session
from engine.domain.errors import describe
from engine.domain.inspection import CodeCount, Codes, CodesOf, RowOf, Rows, RowsOf, RowView, Story, TryView

_CODE = 49
"""Cells before a code's meaning."""


class CodesScreen(PickScreen):
    """Rows with an error code, counted; of one number, of one campaign, or of all."""

    def __init__(self, session: Session, *, campaign: str | None = None, number: str | None = None) -> None:
        super().__init__(session)
        self._campaign, self._number = campaign, number
        self._asked = Asked(session, CodesOf(campaign, number), Codes)

    def page_title(self, frame: Frame) -> str:
        """Of what."""
        what = frame.label(self._number) if self._number else clean(self._campaign or "all", frame.glyphs)
        return f"ERROR CODES of {what}, rows by code ({frame.glyphs.enter} opens the rows)"

    def entries(self, frame: Frame, width: int) -> Sequence[Entry]:
        """One line a code, campaign and state, or more where its meaning is long."""
        found = self._asked.answer()
        if isinstance(found, str):
            return [text(Line(f" {found}", "faint"))]
        if not found.counts:
            return [text(Line(" no row carries an error code", "faint"))]
        head = Line(f" {'CODE':>7} {'ROWS':>10}  {'STATE':<10} {'CAMPAIGN':<16} MEANING", "title")
        return [
            text(head),
            *(Entry(count, tuple(_code_line(count, frame).folded(width, _CODE))) for count in found.counts),
        ]

    def open(self, key: Hashable) -> None:
        """The rows behind it."""
        if isinstance(key, CodeCount):
            query = RowsOf(key.campaign, self._number, key.code, key.state)
            self.app.push_screen(RowsScreen(self.session, query))


def _code_line(c: CodeCount, frame: Frame) -> Line:
    line = Line(f" {c.code:>7} ", "strong").add(f"{number(c.rows):>10}  ")
    line.cell(clean(c.state, frame.glyphs), 11).cell(
        clean(c.campaign, frame.glyphs), 17, cut=frame.glyphs.cut
    )
    return line.add(clean(c.title, frame.glyphs))


class RowsScreen(PickScreen):
    """The first rows that a question finds."""

    def __init__(self, session: Session, query: RowsOf) -> None:
        super().__init__(session)
        self._query = query
        self._asked = Asked(session, query, Rows)

    def page_title(self, frame: Frame) -> str:
        """The question."""
        q = self._query
        parts = [
            clean(q.state or "", frame.glyphs),
            f"code {q.code}" if q.code is not None else None,
            clean(q.campaign or "", frame.glyphs),
        ]
        if q.number:
            parts.append(frame.label(q.number))
        if q.unsettled:
            parts.insert(0, "unknown, or sending for more than 2 min")
        return f"ROWS {', '.join(p for p in parts if p)} ({frame.glyphs.enter} opens the timeline)"

    def entries(self, frame: Frame, _width: int) -> Sequence[Entry]:
        """One line a row."""
        found = self._asked.answer()
        if isinstance(found, str):
            return [text(Line(f" {found}", "faint"))]
        if not found.rows:
            return [text(Line(" no such row (any more)", "faint"))]
        head = Line(f" {'ROW':>10} {'PHONE':<10} {'STATE':<10} {'NUMBER':<8} TRIES MOVED      NEXT", "title")
        lines = [text(head), *(Entry(r.id, (_row_line(r, frame),)) for r in found.rows)]
        if found.more:
            lines.append(
                text(Line(f" the first {len(found.rows)}; all of them: tidegate rows list", "faint"))
            )
        return lines

    def open(self, key: Hashable) -> None:
        """Its timeline."""
        if isinstance(key, int):
            self.app.push_screen(RowScreen(self.session, key))


def _row_line(r: RowView, frame: Frame) -> Line:
    line = (
        Line(f" {r.id:>10} ", "strong")
        .cell(clean(r.phone, frame.glyphs), 11)
        .cell(clean(r.state, frame.glyphs), 11)
    )
    line.cell(frame.label(r.number) if r.number else "-", 9, cut=frame.glyphs.cut).add(f"{r.tries:>5} ")
    due = f"in {duration((r.next_attempt_at - frame.now).total_seconds())}" if r.next_attempt_at else "-"
    return line.add(f"{_clock(r.moved_at)}  {due}")


class RowScreen(PickScreen):
    """One row: how it stands, and each try with what the provider answered, word for word."""

    BINDINGS: ClassVar[list[BindingType]] = bindings((*MOVES, "enter", "reveal"))

    def __init__(self, session: Session, row_id: int) -> None:
        super().__init__(session)
        self._row_id = row_id
        self._asked = Asked(session, RowOf(row_id), Story)

    def page_title(self, _frame: Frame) -> str:
        """Which row."""
        return f"ROW {self._row_id}, its timeline (v shows the phone number; that is journalled)"

    def does(self, _name: str) -> bool:
        """v"""
        if _name != "reveal":
            return False
        live = self.session.live()
        if live is not None and live.read_only:
            self.session.notify(READ_ONLY)
        else:
            self._asked = Asked(self.session, RowOf(self._row_id, reveal=True), Story)
        return True

    def entries(self, frame: Frame, width: int) -> Sequence[Entry]:
        """The row, then its tries; all text, so that j k scroll."""
        found = self._asked.answer()
        if isinstance(found, str):
            return [text(Line(f" {found}", "faint"))]
        if found.row is None:
            return [text(Line(" there is no such row", "warning"))]
        lines = [part for line in _row_lines(found.row, frame) for part in line.folded(width, 13)]
        lines += [Line(), Line(f" {'TRY':>4} {'SENT':<14}{'OUTCOME':<13}{'ANSWER AFTER':<13}NUMBER", "title")]
        for one in found.tries:
            lines += _try_lines(one, frame, width)
        if not found.tries:
            lines.append(Line(" not tried yet", "faint"))
        return [text(*lines)]


def _due(at: datetime, now: datetime) -> str:
    wait = (at - now).total_seconds()
    return f"due in {duration(wait)}" if wait > 0 else "due, and waits for its turn"


def _row_lines(r: RowView, frame: Frame) -> list[Line]:
    why = f" {r.code} {clean(r.reason or '', frame.glyphs)}" if r.code is not None else ""
    due = f", {_due(r.next_attempt_at, frame.now)}" if r.next_attempt_at else ""
    do = [_pair("do", describe(r.code).advice)] if r.code is not None else []
    return [
        _pair("phone", clean(r.phone, frame.glyphs)),
        _pair("campaign", clean(r.campaign, frame.glyphs)),
        Line(f" {'state':<12}", "faint")
        .add(clean(r.state.upper(), frame.glyphs), "strong")
        .add(f"{due}{why}"),
        *do,
        _pair("since", _clock(r.moved_at)),
        _pair("tries", f"{r.tries}, of which {r.attempts} count as attempts"),
    ]


def _try_lines(t: TryView, frame: Frame, width: int) -> list[Line]:
    role = {"accepted": "text", "proven": "text", "refused": "warning", "unknown": "warning"}.get(
        t.outcome, "text"
    )
    after = duration((t.answered_at - t.sent_at).total_seconds()) if t.answered_at is not None else "none"
    head = (
        Line(f" {t.n:>4} ", "strong")
        .cell(_clock(t.sent_at, millis=True), 14)
        .cell(clean(t.outcome, frame.glyphs), 13, role=role)
    )
    head.cell(after, 13).add(f"{frame.label(t.number) if t.number else '-'} epoch {t.epoch}", "faint")
    lines = [head]
    if t.code is not None or t.wamid:
        lines.append(Line(f"      {t.code or ''} ", role).add(clean(t.wamid or "", frame.glyphs), "faint"))
    raw = clean(t.raw or "", frame.glyphs)
    room = max(20, width - 8)
    lines += [Line(f"      {raw[at : at + room]}", "faint") for at in range(0, min(len(raw), 8 * room), room)]
    return lines


def _pair(name: str, value: str) -> Line:
    return Line(f" {name:<12}", "faint").add(value)


def _clock(at: datetime, *, millis: bool = False) -> str:
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}Z" if millis else f"{at:%H:%M:%S}Z"
