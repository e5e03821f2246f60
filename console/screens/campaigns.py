"""c: every campaign with its books."""

from collections.abc import Sequence
from datetime import datetime

from console.format import clean, duration, number, percent, rate
from console.frame import ENDED, Frame
from console.line import Line
from console.screens.page import PageScreen
from console.widgets.header import STATE_ROLES, state_glyph
from engine.domain.snapshot import CampaignView


class CampaignsScreen(PageScreen):
    """Open ones first."""

    def page_title(self, frame: Frame) -> str:
        """How many."""
        return f"CAMPAIGNS {len(frame.snapshot.campaigns) if frame.snapshot else 0}"

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """A head line, then the books in as few lines as fit."""
        campaigns = frame.snapshot.campaigns if frame.snapshot else ()
        lines: list[Line] = []
        for campaign in sorted(campaigns, key=lambda c: (c.state in ENDED, c.name)):
            lines += [*_campaign(campaign, frame, width), Line()]
        return lines or [Line(" no campaigns yet: tidegate campaign create", "faint")]


def _campaign(c: CampaignView, frame: Frame, width: int) -> list[Line]:
    word = c.state.upper()
    head = Line(f"{clean(c.name, frame.glyphs)} ", "strong")
    head.add(state_glyph(word, frame.glyphs) + word, STATE_ROLES.get(word, "text"))
    head.add(f" {frame.text(c.reason)}" if c.reason else "", "warning")
    share = percent(c.accepted / c.planned) if c.planned else "-"
    pace = f"  accepted {number(c.accepted)} of {number(c.planned)} ({share})"
    pace += f"  rate {rate(c.rate)}/s  ETA {duration(c.eta_s)}"
    tries = f"  tries {number(c.tries)}  attempts {number(c.attempts)}"
    tries += f"  possible duplicates {number(c.possible_duplicates)}"
    times = "  ".join(f"{word} {at:%m-%d %H:%M}Z" for word, at in _times(c) if at is not None)
    lines = [head, Line(pace), Line(tries, "warning" if c.possible_duplicates else "text")]
    books = Line(" ")
    for state, count in c.counts.items():
        part = f" {state} {number(count)}"
        if books.width + len(part) > width:
            lines.append(books)
            books = Line(" ")
        books.add(part, "strong" if count else "faint")
    balanced = sum(c.counts.values()) == c.planned
    lines.append(books)
    if not balanced:
        lines.append(
            Line(f"  the books do not balance: states sum to {number(sum(c.counts.values()))}", "critical")
        )
    return [*lines, Line(f"  {times}", "faint")] if times else lines


def _times(c: CampaignView) -> tuple[tuple[str, datetime | None], ...]:
    return (("started", c.started_at), ("finished", c.finished_at), ("deadline", c.deadline))
