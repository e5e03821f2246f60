"""Large layout: what is pending, campaign by campaign."""

from collections.abc import Sequence

from console.format import clean, eta, number, percent
from console.frame import ENDED, Frame
from console.line import Line
from console.widgets.header import STATE_ROLES, state_glyph
from console.widgets.panel import LinePanel, title_line


class Campaigns(LinePanel):
    """One line a campaign: state, pending, share, ETA. The open ones first."""

    def lines(self, frame: Frame, width: int, height: int) -> Sequence[Line]:
        """As many as fit, and how many did not."""
        campaigns = frame.snapshot.campaigns if frame.snapshot else ()
        ordered = sorted(campaigns, key=lambda c: (c.state in ENDED, c.name))
        room = height - 1
        hidden = len(ordered) - room
        title = title_line(
            frame, "CAMPAIGNS pending, ETA", width, False, f" +{hidden} (c) " if hidden > 0 else ""
        )
        lines = [title]
        for c in ordered[:room]:
            word = c.state.upper()
            line = Line(" ").add(state_glyph(word, frame.glyphs), STATE_ROLES.get(word, "text")).add(" ")
            line.cell(clean(c.name, frame.glyphs), max(4, width - 27), cut=frame.glyphs.cut)
            line.cell(number(c.counts.get("pending", 0)), 11, ">", "strong")
            share = percent(c.accepted / c.planned) if c.planned else "-"
            lines.append(line.cell(share, 5, ">").cell(eta(c.eta_s), 8, ">"))
        return lines
