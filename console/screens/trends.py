"""t: every figure that is remembered, over the chosen window: now, lowest, highest, and its strip."""

from collections.abc import Sequence

from console.format import duration, number, rate, spark
from console.frame import WINDOWS, Frame
from console.history import chosen
from console.line import Line
from console.screens.page import PageScreen
from engine.domain.recall import FIGURES, Figure

_TITLE = 36
_FIGURE = 9


class TrendsScreen(PageScreen):
    """w changes the window."""

    def page_title(self, frame: Frame) -> str:
        """The window, and how to change it."""
        return f"TRENDS of {frame.span}  (w: {' '.join(label for label, _ in WINDOWS)})"

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """One line a figure; each strip runs from 0 to its own highest."""
        past = frame.snapshot.past.figures if frame.snapshot else {}
        head = Line(" ").cell("FIGURE", _TITLE, role="title")
        for word in ("NOW", "LOWEST", "HIGHEST"):
            head.cell(word, _FIGURE, ">", "title")
        lines = [head.add("  oldest first", "title")]
        for figure in FIGURES:
            steps = chosen(past.get(figure.name, ()), frame.window, ())
            line = Line(" ").cell(figure.title, _TITLE)
            if not steps:
                lines.append(line.cell("-", _FIGURE, ">", "faint"))
                continue
            for value in (steps[-1], min(steps), max(steps)):
                line.cell(_shown(figure, value), _FIGURE, ">", "strong" if value else "faint")
            room = width - line.width - 3
            lines.append(
                line.add("  ").add(spark(steps[-room:] if room > 0 else (), frame.glyphs.spark), "bar")
            )
        return lines


def _shown(figure: Figure, value: float) -> str:
    if figure.unit == "seconds":
        return duration(value)
    return number(round(value)) if figure.unit != "per second" else rate(round(value, 1))
