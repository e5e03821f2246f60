"""Large layout: how the parts behind the numbers keep up."""

from collections.abc import Sequence

from console.format import clean, duration, number
from console.frame import Frame
from console.history import chosen
from console.line import Line
from console.widgets.panel import LinePanel, title_line
from engine.domain.snapshot import Percentiles


class Flow(LinePanel):
    """Durations as p50 / p95 / p99 of the chosen window."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """Claim, commit, answer, delivery, webhook lag, the process."""
        s = frame.snapshot
        title = title_line(frame, f"FLOW {frame.span}  p50 / p95 / p99", width, False)
        if s is None:
            return [title]
        lag_role = "warning" if (s.webhook_lag_s or 0) > 10 else "strong"
        past = s.past
        database = clean(s.database, frame.glyphs)
        return [
            title,
            _durations("claim", chosen(past.claim_time, frame.window, s.claim_time)),
            _durations("commit", chosen(past.commit_time, frame.window, s.commit_time)),
            _durations("answer", chosen(past.latency, frame.window, s.latency)),
            _durations("sent" + frame.glyphs.arrow + "delivered",
                       chosen(past.sent_to_delivered, frame.window, s.sent_to_delivered)),
            Line(f" {'webhook lag':<15}", "faint").add(duration(s.webhook_lag_s), lag_role)
            .add(f"  inbox {number(s.inbox_backlog)}"),
            Line(f" {'database':<15}", "faint").add(database, "strong" if database == "ok" else "critical")
            .add(f"  loop {duration(s.loop_lag_s)}  {s.memory_mb:.0f} MB", "faint"),
        ]  # fmt: skip


def _durations(name: str, p: Percentiles | None) -> Line:
    line = Line(f" {name:<15}", "faint")
    return (
        line.add("-")
        if p is None
        else line.add(" / ".join(duration(v) for v in (p.p50, p.p95, p.p99)), "text")
    )
