"""Rows 3 and 4: how much is sent, how fast against what is configured, when it ends, and what is stuck."""

from collections.abc import Sequence

from console.format import bar, clean, duration, number, percent, rate
from console.frame import Frame, totals
from console.line import Line
from console.widgets.header import fitted
from console.widgets.panel import LinePanel


class Progress(LinePanel):
    """Two lines."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """SENT … and the bar."""
        snapshot = frame.snapshot
        if snapshot is None:
            return []
        t = totals(snapshot)
        share = t.sent / t.planned if t.planned else 0.0
        use = percent(t.sent_per_s / t.rate) if t.rate else "-"
        pace = Line(f"{rate(t.sent_per_s)}/s", "strong").add(f" of {rate(t.rate)} ({use})")
        if round(t.tries_per_s, 1) != round(t.sent_per_s, 1):
            pace.add(f" tries {rate(t.tries_per_s)}/s", "warning")
        wait = snapshot.token_wait
        sent = f"{number(t.sent)}/{number(t.planned)} {percent(share)}"
        first = [
            (0, Line("SENT ", "faint").add(sent, "strong")),
            (1, pace),
            (2, Line("ETA ", "faint").add(duration(t.eta_s), "strong")),
            (4, Line("tokwait p95 ", "faint").add(duration(wait.p95 if wait else None))),
        ]
        if snapshot.database != "ok":
            first.insert(
                3, (3, Line(f"DATABASE {clean(snapshot.database, frame.glyphs).upper()}", "critical"))
            )
        figures = _figures(t.pending, t.stuck, t.unknown, snapshot.in_flight)
        second = Line(bar(share, max(10, width - figures.width - 1), frame.glyphs), "bar").add(" ")
        second.parts.extend(figures.parts)
        return [fitted(first, width), second]


def _figures(pending: int, stuck: int, unknown: int, in_flight: int) -> Line:
    line = Line("pend ", "faint").add(number(pending)).add("  inflight ", "faint").add(number(in_flight))
    line.add("  ").add(f"STUCK {number(stuck)}", "warning" if stuck else "faint")
    return line.add("  ").add(f"unknown {number(unknown)}", "warning" if unknown else "faint")
