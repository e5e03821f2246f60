"""What a number's owner found out about its grant, kept for the next owner."""

from engine.postgres.claims import Permission
from engine.postgres.pool import Executor

KEEP = """
UPDATE number SET ceiling = $4
 WHERE number_id = $1 AND ceiling IS DISTINCT FROM $4
   AND EXISTS (SELECT FROM lease WHERE number_id = $1 AND token = $2 AND epoch = $3 AND released_at IS NULL)
"""


async def keep(db: Executor, permission: Permission, level: float | None) -> None:
    """messages/s, or None while the rate alone counts. Only the owner's word is kept."""
    await db.execute(KEEP, permission.number_id, permission.token, permission.epoch, level)
