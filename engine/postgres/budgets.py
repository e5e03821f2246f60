"""The try budget of a campaign whose budget is spent, raised when a person lets it go on."""

from engine.postgres.pool import Executor

# `left` is the old budget less the tries made: zero or less, when more were under way.
RAISE = """
UPDATE campaign SET try_budget = coalesce(try_budget, 3 * planned) - $2 + $3 WHERE campaign_id = $1 RETURNING try_budget
"""

TRIES_FOR_A_ROW = 3


async def renew(db: Executor, campaign_id: int, left: int, open_rows: int) -> int:
    """The tries made so far, and three for each row that is still open; the budget as it is now."""
    return int(await db.fetchval(RAISE, campaign_id, left, max(1, TRIES_FOR_A_ROW * open_rows)))
