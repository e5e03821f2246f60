"""⏎ on a campaign: its books, its funnel, the reasons for what failed, and what can be done with it."""

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import ClassVar

from textual.binding import BindingType

from console.acting import Acting
from console.format import bar, clean, duration, eta, number, percent, rate
from console.frame import Frame
from console.keys import bindings
from console.line import Line
from console.screens.page import MOVES
from console.screens.pick import Asked, Entry, PickScreen, text
from console.screens.rows import RowsScreen
from console.screens.trends import campaign_trends
from console.session import Session
from console.widgets.header import STATE_ROLES, state_glyph
from engine.domain.act import PauseCampaign, ResumeCampaign, StartCampaign
from engine.domain.count import proven_later
from engine.domain.inspection import CodeCount, Codes, CodesOf, RowsOf
from engine.domain.snapshot import CampaignView

_BAR = 24
_REASON = 30
"""Cells before a reason's words."""


class CampaignScreen(PickScreen):
    """Bound to the campaign's name."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(
        (*MOVES, "enter", "pause", "resume", "start", "cancel", "retry_failed")
    )

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session)
        self._campaign = name
        self._asked = Asked(session, CodesOf(campaign=name), Codes)

    def page_title(self, frame: Frame) -> str:
        """The keys that act here."""
        return f"CAMPAIGN {clean(self._campaign, frame.glyphs)}  p pause r resume s start x cancel F retry failed"

    def does(self, _name: str) -> bool:
        """Acts on this campaign, whatever the cursor of the overview does."""
        acting = Acting(self.session, self.app.push_screen)
        match _name:
            case "pause":
                acting.ask(PauseCampaign(self._campaign))
            case "resume":
                acting.ask(ResumeCampaign(self._campaign))
            case "start":
                acting.ask(StartCampaign(self._campaign))
            case "cancel":
                acting.cancel_campaign(self._campaign)
            case "retry_failed":
                acting.retry_failed(self._campaign)
            case _:
                return False
        return True

    def entries(self, frame: Frame, width: int) -> Sequence[Entry]:
        """Books and funnel are live; the reasons are as they were when the page was opened."""
        campaigns = frame.snapshot.campaigns if frame.snapshot else ()
        campaign = next((c for c in campaigns if c.name == self._campaign), None)
        if campaign is None:
            return [text(Line(" this campaign is gone", "warning"))]
        lines = [*campaign_lines(campaign, frame, width), Line(), *_funnel(campaign, frame), Line()]
        if trends := campaign_trends(campaign, frame, width):
            lines += [
                Line(f" TRENDS of {frame.span}: now, lowest, highest (w: window)", "title"),
                *trends,
                Line(),
            ]
        lines.append(Line(f" REASONS, rows by code ({frame.glyphs.enter} opens the rows)", "title"))
        return [text(*lines), *self._reasons(frame, width)]

    def _reasons(self, frame: Frame, width: int) -> list[Entry]:
        found = self._asked.answer()
        if isinstance(found, str):
            return [text(Line(f" {found}", "faint"))]
        if not found.counts:
            return [text(Line(" no row carries an error code", "faint"))]
        return [Entry(count, tuple(_reason(count, frame).folded(width, _REASON))) for count in found.counts]

    def open(self, key: Hashable) -> None:
        """The rows behind a reason."""
        if isinstance(key, CodeCount):
            self.app.push_screen(RowsScreen(self.session, RowsOf(self._campaign, None, key.code, key.state)))


def _reason(c: CodeCount, frame: Frame) -> Line:
    return (
        Line(f" {c.code:>7} {number(c.rows):>9}  ", "strong")
        .cell(clean(c.state, frame.glyphs), 10)
        .add(clean(c.title, frame.glyphs))
    )


def _funnel(c: CampaignView, frame: Frame) -> list[Line]:
    """Each step holds what the next ones hold: a read message was delivered."""
    read = c.counts.get("read", 0)
    delivered = read + c.counts.get("delivered", 0)
    steps = (("planned", c.planned), ("accepted", c.accepted), ("delivered", delivered), ("read", read))
    lines = []
    for name, count in steps:
        share = min(1.0, count / c.planned) if c.planned else 0.0
        lines.append(
            Line(f" {name:<10}")
            .add(bar(share, _BAR, frame.glyphs), "bar")
            .add(f" {number(count):>11} {percent(share)}")
        )
    notes = []
    if c.deadline is not None:
        notes.append(f"deadline in {duration((c.deadline - frame.now).total_seconds())}")
    if c.late:
        notes.append(f"{number(c.late)} rows will miss it")
    if c.delivered_share is not None:
        notes.append(f"delivered share {percent(c.delivered_share)} of sends older than 15 min")
    if c.try_budget:
        notes.append(f"tries {number(c.tries)} of a budget of {number(c.try_budget)}")
    return [*lines, Line(" " + "  ".join(notes), "faint")] if notes else lines


def campaign_lines(c: CampaignView, frame: Frame, width: int) -> list[Line]:
    """Head, pace, tries, books and times."""
    word = c.state.upper()
    head = Line(f"{clean(c.name, frame.glyphs)} ", "strong")
    head.add(state_glyph(word, frame.glyphs) + word, STATE_ROLES.get(word, "text"))
    head.add(f" {frame.text(c.reason)}" if c.reason else "", "warning")
    share = percent(c.accepted / c.planned) if c.planned else "-"
    pace = f"  accepted {number(c.accepted)} of {number(c.planned)} ({share})"
    pace += f"  rate {rate(c.rate)}/s  ETA {eta(c.eta_s)}"
    tries = f"  tries {number(c.tries)}  attempts {number(c.attempts)}"
    if proven := proven_later(c.accepted, c.attempts):
        tries += f" ({proven})"
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
    lines += [Line(f"  waits for {frame.text(wait)}", "warning") for wait in c.waits]
    lines += [Line(f"  {times}", "faint")] if times else []
    return [part for line in lines for part in line.folded(width)]


def _times(c: CampaignView) -> tuple[tuple[str, datetime | None], ...]:
    return (("started", c.started_at), ("finished", c.finished_at), ("deadline", c.deadline))
