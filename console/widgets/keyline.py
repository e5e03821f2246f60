"""The last row: the keys that matter, made from the one table of keys."""

from collections.abc import Sequence

from console.frame import Frame
from console.keys import KEY_LINE, by_name
from console.line import Line
from console.widgets.panel import LinePanel


class KeyLine(LinePanel):
    """As many keys as fit."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """?help /filter p pause …"""
        line = Line()
        for name in KEY_LINE:
            action = by_name(name)
            shown = "+/-" if name == "rate_down" else action.shown
            shown = frame.glyphs.enter if name == "enter" else shown
            space = " " if line.parts else ""
            between = ":" if shown[-1].isalnum() else ""
            if line.width + len(space + shown + between + action.short) <= width:
                line.add(space + shown, "key").add(between + action.short, "faint")
        return [line]
