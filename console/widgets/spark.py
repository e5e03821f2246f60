"""Row 5 of the small layout: accepted per second over the chosen window, as one strip."""

from collections.abc import Sequence

from console.format import duration, rate, sampled, spark
from console.frame import WINDOWS, Frame
from console.history import history
from console.line import Line
from console.widgets.panel import LinePanel


class SparkStrip(LinePanel):
    """One line: window, strip, and the figures that the strip cannot say."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """5m now 318 max 402 cfg 400 ▅▅▆▆▇: the strip last, for it changes least."""
        if frame.snapshot is None:
            return []
        label, window = WINDOWS[frame.window]
        series, configured = frame.snapshot.accepted_series, frame.snapshot.rate_series
        past = history(frame.snapshot, "accepted", window)
        recent = past.values
        kept = f" ({duration(past.seconds)} kept)" if past.seconds < window else ""
        now = rate(series[-1] if series else None)
        top = max(recent, default=0.0)
        cfg = configured[-1] if configured else None
        figures = f"now {now:<4} max {rate(top):<4} cfg {rate(cfg):<4}{kept} "
        room = width - len(label) - 1 - len(figures)
        points = sampled(recent, window // past.step, room, past.second)
        strip = spark(points, frame.glyphs.spark, max(top, cfg or 0.0))
        return [Line(label + " ", "key").add(figures).add(strip, "bar")]
