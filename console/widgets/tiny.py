"""Below 80x24: the campaign's state, the pace, and the one key that still acts."""

from collections.abc import Sequence

from console.format import fit, rate
from console.frame import Frame, headline, totals
from console.line import Line
from console.widgets.header import STATE_ROLES, fresh_line, state_glyph
from console.widgets.panel import LinePanel


class TinyLine(LinePanel):
    """One line, most important word first, so that it may be cut anywhere."""

    def lines(self, frame: Frame, _width: int, _height: int) -> Sequence[Line]:
        """▶RUNNING p:pause all LIVE 0.4s 318/s natl-07"""
        if frame.snapshot is None:
            return [Line("waiting", "warning")]
        head = headline(frame.snapshot, frame.ended, frame.glyphs)
        line = Line(state_glyph(head.word, frame.glyphs) + head.word, STATE_ROLES.get(head.word, "text"))
        if frame.fault or frame.notice:
            return [line.add(" " + frame.text(frame.fault or frame.notice), "warning")]
        line.add(" ").add("p", "key").add(":pause all ")
        fresh = fresh_line(frame)
        line.parts.extend(fresh.parts)
        line.add(f" {rate(totals(frame.snapshot).sent_per_s)}/s", "strong")
        return [
            line.add(
                " " + fit(head.name, min(20, len(head.name)), cut=frame.glyphs.cut) + " (80x24 shows all)",
                "faint",
            )
        ]
