"""A refusal by webhook that reaches beyond its row stops its campaign, as the same refusal by answer does.

With a payment problem, every request is answered 200 and every message fails seconds later: only webhooks tell.
"""

from collections.abc import Sequence

import structlog

from engine.domain.errors import meaning
from engine.domain.outcome import Refused, hold_reason
from engine.postgres import campaigns, journal
from engine.postgres.pool import Executor
from engine.postgres.statuses import SentBack, mended

log = structlog.get_logger(__name__)

HELD_FROM = ("running", "finished")


async def hold(db: Executor, rows: Sequence[SentBack]) -> None:
    """Hold each campaign once, in the transaction that put its rows back, as its last act: the journal is shared.

    Not for tries that left before somebody last resumed the campaign: they tell of a fault that was mended.
    """
    latest = {row.campaign: row for row in sorted(rows, key=lambda row: row.left)}
    for name, row in sorted(latest.items()):
        reason = hold_reason(Refused(row.code, meaning(row.code, details=row.raw)))
        # A finished campaign has a pending row again: somebody must look, mended or not.
        leaves = ("finished",) if await mended(db, row) else HELD_FROM
        if await campaigns.move(db, name, leaves, "held", reason) is None:
            continue
        entry = journal.Entry("auto", "engine", "hold campaign", name, reason, "running", "held")
        await journal.write(db, entry)
        log.error("campaign held", campaign=name, reason=reason)
