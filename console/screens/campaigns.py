"""c: every campaign with its books; Enter opens one."""

from collections.abc import Hashable, Sequence

from console.frame import ENDED, Frame
from console.line import Line
from console.screens.campaign import CampaignScreen, campaign_lines
from console.screens.pick import Entry, PickScreen, text


class CampaignsScreen(PickScreen):
    """Open ones first."""

    def page_title(self, frame: Frame) -> str:
        """How many."""
        count = len(frame.snapshot.campaigns) if frame.snapshot else 0
        return f"CAMPAIGNS {count}  ({frame.glyphs.enter} opens)"

    def entries(self, frame: Frame, width: int) -> Sequence[Entry]:
        """A head line, then the books in as few lines as fit."""
        campaigns = frame.snapshot.campaigns if frame.snapshot else ()
        ordered = sorted(campaigns, key=lambda c: (c.state in ENDED, c.name))
        entries = [Entry(c.name, (*campaign_lines(c, frame, width), Line())) for c in ordered]
        return entries or [text(Line(" no campaigns yet: tidegate campaign create", "faint"))]

    def open(self, key: Hashable) -> None:
        """Its books, funnel and reasons."""
        self.app.push_screen(CampaignScreen(self.session, str(key)))
