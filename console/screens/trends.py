"""t: every figure that is remembered, over the chosen window: now, lowest, highest, and its strip."""

from collections.abc import Sequence

from console.format import clean, duration, number, rate, spark
from console.frame import WINDOWS, Frame
from console.history import chosen
from console.line import Line
from console.screens.page import PageScreen
from engine.domain.recall import FIGURES, OF_A_CAMPAIGN, Unit
from engine.domain.snapshot import CampaignView

_TITLE = 36
_FIGURE = 9


class TrendsScreen(PageScreen):
    """w changes the window."""

    def page_title(self, frame: Frame) -> str:
        """The window, and how to change it."""
        return f"TRENDS of {frame.span}  (w: {' '.join(label for label, _ in WINDOWS)})"

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """One line a figure, of the node, then of each campaign that is remembered."""
        past = frame.snapshot.past.figures if frame.snapshot else {}
        lines = [_head("FIGURE")]
        for figure in FIGURES:
            steps = chosen(past.get(figure.name, ()), frame.window, ())
            lines.append(_strip(figure.title, figure.unit, steps, frame, width))
        for campaign in frame.snapshot.campaigns if frame.snapshot else ():
            if campaign.past:
                name = clean(campaign.name, frame.glyphs)
                lines += [Line(), _head(f"CAMPAIGN {name}", frame), *campaign_trends(campaign, frame, width)]
        return lines


def campaign_trends(campaign: CampaignView, frame: Frame, width: int) -> list[Line]:
    """A line a figure; none where nothing is kept."""
    if not campaign.past:
        return []
    kept = {name: chosen(points, frame.window, ()) for name, points in campaign.past.items()}
    return [_strip(title, unit, kept.get(name, ()), frame, width) for name, title, unit in OF_A_CAMPAIGN]


def _head(title: str, frame: Frame | None = None) -> Line:
    head = Line(" ").cell(title, _TITLE, role="title", cut=frame.glyphs.cut if frame else "")
    for word in ("NOW", "LOWEST", "HIGHEST"):
        head.cell(word, _FIGURE, ">", "title")
    return head.add("  oldest first", "title")


def _strip(title: str, unit: Unit, steps: Sequence[float], frame: Frame, width: int) -> Line:
    """Newest, lowest, highest; and the strip, which runs from 0 to its own highest."""
    line = Line(" ").cell(title, _TITLE)
    if not steps:
        return line.cell("-", _FIGURE, ">", "faint")
    for value in (steps[-1], min(steps), max(steps)):
        line.cell(_shown(unit, value), _FIGURE, ">", "strong" if value else "faint")
    room = width - line.width - 3
    return line.add("  ").add(spark(steps[-room:] if room > 0 else (), frame.glyphs.spark), "bar")


def _shown(unit: Unit, value: float) -> str:
    if unit == "seconds":
        return duration(value)
    return number(round(value)) if unit != "per second" else rate(round(value, 1))
