"""Rows 3 and 4: how much is sent, how fast against what is configured, when it ends, and what is stuck."""

from collections.abc import Sequence

from console.format import bar, clean, duration, eta, number, percent, rate
from console.frame import Frame, differs, nobody_lives, totals
from console.history import chosen
from console.line import Line
from console.widgets.header import fitted
from console.widgets.panel import LinePanel

WIDE = 80
"""Columns from which the delivered are told beside the rest."""


class Progress(LinePanel):
    """Row 3."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """SENT … of …, pace, ETA, token wait; the database only when something is wrong with it."""
        snapshot = frame.snapshot
        if snapshot is None:
            return []
        t = totals(snapshot)
        share = t.sent / t.planned if t.planned else 0.0
        pace = Line(f"{rate(t.sent_per_s)}/s", "strong").add(f" of {rate(t.rate)} ({percent(t.use)})")
        if nobody_lives(snapshot):
            pace = Line("-/s", "faint").add(f" of {rate(t.rate)}")
        elif differs(t.sent_per_s, t.tries_per_s):
            pace.add(f" tries {rate(t.tries_per_s)}/s", "warning")
        wait = chosen(snapshot.past.token_wait, frame.window, snapshot.token_wait)
        sent = f"{number(t.sent)}/{number(t.planned)} {percent(share)}"
        parts = [
            (0, Line("SENT ", "faint").add(sent, "strong")),
            (1, pace),
            (2, Line("ETA ", "faint").add(eta(t.eta_s), "strong")),
            (
                4,
                Line("token wait p95 " if width >= 120 else "tokwait p95 ", "faint").add(
                    duration(wait.p95 if wait else None)
                ),
            ),
        ]
        if snapshot.database != "ok":
            parts.insert(
                3, (3, Line(f"DATABASE {clean(snapshot.database, frame.glyphs).upper()}", "critical"))
            )
        return [fitted(parts, width)]


class ProgressBar(LinePanel):
    """Row 4, left: by itself, so that it is not sent again with every figure beside it."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """The share that is sent."""
        if frame.snapshot is None:
            return []
        t = totals(frame.snapshot)
        return [Line(bar(t.sent / t.planned if t.planned else 0.0, width, frame.glyphs), "bar")]


class Figures(LinePanel):
    """Row 4, right: what is left, what is under way, what is lost from sight."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """delivered, failed, pend, inflight, STUCK, unknown; at the right edge, and the first left out for room."""
        if frame.snapshot is None:
            return []
        t = totals(frame.snapshot)
        line = Line()
        if width >= WIDE:
            line.add("delivered ", "faint").add(number(t.delivered)).add("  ")
        line.add(f"failed {number(t.failed)}", "warning" if t.failed else "faint").add("  ")
        line.add("pending " if width >= WIDE else "pend ", "faint").add(number(t.pending))
        line.add("  in flight " if width >= WIDE else "  inflight ", "faint").add(
            "-" if nobody_lives(frame.snapshot) else number(frame.snapshot.in_flight)
        ).add("  ")
        line.add(f"STUCK {number(t.stuck)}", "warning" if t.stuck else "faint").add("  ")
        line.add(f"unknown {number(t.unknown)}", "warning" if t.unknown else "faint")
        return [Line().end(line, width) if line.width <= width else line]
