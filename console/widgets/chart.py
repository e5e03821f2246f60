"""Charts on plotext 6, and the only module that imports it.

plotext has one figure for the whole process: charts are drawn one after another, in the screen's thread, at most
once a second. It is drawn without colours and painted in one style, which costs 0.3 ms instead of 13.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from console.format import ascii_box, sampled
from console.frame import WINDOWS, Frame
from console.history import Name, history
from console.line import Line
from console.widgets.panel import LinePanel, title_line
from engine.domain.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart: values from oldest to newest, and the sign it is drawn with."""

    values: Sequence[float]
    marker: str


def draw(series: Sequence[Series], width: int, height: int, span: str, unit: str) -> list[str]:
    """The chart as `height` lines of `width` cells. The y axis starts at 0. Raises ImportError without plotext."""
    import plotext

    plotext.terminal.limit(False, False)  # else it clamps to what it believes the terminal to be
    figure = plotext.figure
    figure.clear()
    figure.theme("colorless")
    figure.plot_size(width, height)
    points = max((len(s.values) for s in series), default=0)
    top = max((max(s.values, default=0.0) for s in series), default=0.0) * 1.1 or 1.0
    for one in series:
        if one.values:
            start = points - len(one.values)
            figure.draw(
                figure.signal(list(range(start, points)), list(one.values), marker=one.marker).lines()
            )
    figure.ruler("x").lim(0, max(1, points - 1)).ticks([0, max(1, points - 1)], [f"-{span}", "now"])
    figure.ruler("y").lim(0, top).ticks(
        [0, top / 2, top / 1.1], [_tick(v, unit) for v in (0, top / 2, top / 1.1)]
    )
    return str(figure.build().string(colorless=True)).splitlines()[:height]


def _tick(value: float, unit: str) -> str:
    if unit == "s" and 0 < value < 1:
        return f"{value * 1000:.0f}ms"
    text = f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"
    return text + ("s" if unit == "s" and value else "")


class Chart(LinePanel):
    """A title and a chart; drawn again only when its data or its size has changed."""

    TITLE, UNIT = "", ""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  Textual's names
        super().__init__(id=id, classes=classes)
        self._drawn: tuple[tuple[object, ...], list[str]] | None = None

    def data(self, frame: Frame, window: int, width: int) -> list[Series]:
        """What to draw."""
        raise NotImplementedError

    def lines(self, frame: Frame, width: int, height: int) -> Sequence[Line]:
        """The chart, or why there is none."""
        span, window = WINDOWS[frame.window]
        title = title_line(frame, f"{self.TITLE} {span}", width, False)
        if frame.snapshot is None or height < 5 or width < 20:
            return [title]
        second = int(frame.snapshot.at.timestamp())
        key = (second // max(1, window // width), frame.snapshot.node, span, width, height)
        if self._drawn is None or self._drawn[0] != key:
            kept = history(frame.snapshot, "accepted", window).seconds
            shown = span if kept >= window else f"{kept}s" if kept < 120 else f"{kept // 60}m"
            self._drawn = (
                key,
                self._draw(self.data(frame, window, width - 8), frame, width, height - 1, shown),
            )
        return [title, *(Line(text, "chart") for text in self._drawn[1])]

    def _draw(self, series: list[Series], frame: Frame, width: int, height: int, span: str) -> list[str]:
        try:
            drawn = draw(series, width, height, span, self.UNIT)
        except ImportError:
            return [" charts need plotext, which this system cannot load"]
        return [ascii_box(text) for text in drawn] if frame.glyphs.ascii else drawn


class AcceptedChart(Chart):
    """Accepted per second, with the configured rate drawn as a line."""

    TITLE = "ACCEPTED/s, - configured,"

    def data(self, frame: Frame, window: int, width: int) -> list[Series]:
        """The configured rate first, so that the measured line lies on top."""
        if frame.snapshot is None:
            return []
        sign = "*" if frame.glyphs.ascii else "hd"
        return [
            _series(frame.snapshot, "rate", window, width, "-"),
            _series(frame.snapshot, "accepted", window, width, sign),
        ]


class TokenWaitChart(Chart):
    """How long a ready row waits for its permit: the worst number, and the median number."""

    TITLE, UNIT = "TOKEN WAIT p95 worst, . median,", "s"

    def data(self, frame: Frame, window: int, width: int) -> list[Series]:
        """The median first, the worst on top."""
        if frame.snapshot is None:
            return []
        sign = "*" if frame.glyphs.ascii else "hd"
        return [
            _series(frame.snapshot, "token_wait_median", window, width, "."),
            _series(frame.snapshot, "token_wait", window, width, sign),
        ]


def _series(snapshot: Snapshot, name: Name, window: int, width: int, marker: str) -> Series:
    past = history(snapshot, name, window)
    return Series(sampled(past.values, window // past.step, width, past.second), marker)
