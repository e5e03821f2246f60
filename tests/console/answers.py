"""What the database would answer to a screen's questions."""

from dataclasses import replace
from datetime import timedelta

from engine.domain.inspection import CodeCount, Codes, Journal, JournalLine, Rows, RowView, Story, TryView
from engine.domain.snapshot import HoldView, NodeView
from tests.console.support import HELD, NIGHT, normal

CODES = Codes(
    (
        CodeCount(131048, "spam rate limit", "natl-07", "failed", 81),
        CodeCount(131026, "undeliverable", "natl-07", "failed", 377),
    )
)
ROW = RowView(4711, "natl-07", "+551…01", "failed", HELD.id, 2, 1, 131048, "spam rate limit", None, NIGHT)
ROWS = Rows((ROW, replace(ROW, id=4712, phone="+551…02")), more=False)
RAW = '{"error":{"code":131048,"message":"(#131048) Spam rate limit hit"}}'
STORY = Story(
    ROW,
    (
        TryView(1, "not_sent", NIGHT - timedelta(seconds=8), None, NIGHT, HELD.id, 3, None, None, None),
        TryView(
            2, "refused", NIGHT - timedelta(seconds=4), NIGHT - timedelta(seconds=3.8), NIGHT, HELD.id, 3, 131048,
            None, RAW,
        ),
    ),
)  # fmt: skip
HOLDS = (
    HoldView("account", "102290129340398", 131042, "payment issue", NIGHT - timedelta(minutes=3), 7),
    HoldView("number", HELD.id, None, "131048 spam rate limit", None),
)
JOURNAL = Journal(
    (
        JournalLine(NIGHT, "bob@10.0.0.7", "cli", "rate", HELD.id, "80", "40", "night", "done"),
        JournalLine(NIGHT, "ana", "console", "start campaign", "x", None, None, None, "refused: no"),
    )
)
NODES = (
    NodeView("eng1", "h1", 11, 0.4, True, False, (normal().numbers[0].id,), 79.6, 140.0),
    NodeView("eng2", "h2", 12, 40.0, False, False, (HELD.id,), 0.0, 0.0),
)
