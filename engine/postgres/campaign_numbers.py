"""The numbers that a campaign is sent from, changed while it runs."""

from dataclasses import dataclass

from engine.postgres.pool import Executor

OF = """
SELECT n.id, n.account FROM campaign_number u JOIN number n USING (number_id)
 WHERE u.campaign_id = $1 ORDER BY n.number_id
"""

UNLINK = """
DELETE FROM campaign_number u USING number n WHERE u.number_id = n.number_id AND u.campaign_id = $1 AND n.id = $2
"""


@dataclass(frozen=True, slots=True)
class Linked:
    """A number of a campaign, by Meta's id."""

    id: str
    account: str


async def of(db: Executor, campaign_id: int) -> list[Linked]:
    """In the order in which the numbers were added to Tidegate."""
    return [Linked(*row) for row in await db.fetch(OF, campaign_id)]


async def exists(db: Executor, number: str) -> bool:
    """Whether there is such a number at all."""
    return bool(await db.fetchval("SELECT EXISTS (SELECT FROM number WHERE id = $1)", number))


async def unlink(db: Executor, campaign_id: int, number: str) -> None:
    """No new row is claimed for it from this number."""
    await db.execute(UNLINK, campaign_id, number)
