"""Rows that left and were never answered: sending for too long, and unknown."""

from collections.abc import Sequence

from rich.cells import cell_len

from console.format import clean, duration, number
from console.frame import Frame
from console.line import Line
from console.widgets.panel import ListPanel


class Stuck(ListPanel):
    """One line an age band, then the unknown ones and the last reconcile."""

    NUMBER = 3

    def title(self, frame: Frame) -> str:
        """What counts as stuck is in the title; and how to see the rows, while it has the focus."""
        return "3 SENDING >120s and UNKNOWN" + (f" {frame.glyphs.enter} rows" if self.has_focus else "")

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """Bands with their numbers, then unknown."""
        snapshot = frame.snapshot
        if snapshot is None:
            return []
        lines = []
        for band in snapshot.stuck:
            line = Line(f" {clean(band.label, frame.glyphs):<6}", "text")
            line.cell(number(band.count), 6, ">", "warning" if band.count else "faint")
            if band.count:
                line.add(f" max {duration(band.oldest_s)}", "strong")
            for key, count in band.by_number:
                part = f"  {frame.label(key)} {number(count)}"
                if line.width + cell_len(part) > width:
                    break
                line.add(part)
            lines.append(line)
        unknown = Line(" unknown ").add(number(snapshot.unknown), "warning" if snapshot.unknown else "strong")
        last = clean(snapshot.last_reconcile or "never", frame.glyphs)
        return (
            [unknown.add(f"  last reconcile {last}", "faint"), *lines]
            if lines
            else [unknown, Line(" none stuck", "faint")]
        )
