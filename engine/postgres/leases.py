"""Leases of numbers: read, take, renew, release. The rules of when are in `engine.domain.lease`."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.postgres.pool import Executor

READ = "SELECT number_id, owner, node, token, epoch, renew_seq, released_at, recent_us, advertise FROM lease"

# Taken only from the very state that was watched: no row, a released one, or one that stood still.
# The epoch grows at every take-over, also when the table was restored from a backup: it follows the clock.
# A row that somebody else has locked is left for the next round: waiting here, a node would not renew its other leases.
TAKE = """
WITH mine AS MATERIALIZED (SELECT FROM lease WHERE number_id = $1 FOR NO KEY UPDATE SKIP LOCKED)
INSERT INTO lease AS l (number_id, owner, node, token, epoch, expires_at, advertise)
SELECT $1, $2, $3, $4, (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
       clock_timestamp() + make_interval(secs => $5), $6
 WHERE EXISTS (SELECT FROM mine) OR NOT EXISTS (SELECT FROM lease WHERE number_id = $1)
ON CONFLICT (number_id) DO UPDATE SET
  owner = excluded.owner, node = excluded.node, token = excluded.token, expires_at = excluded.expires_at,
  epoch = greatest(l.epoch + 1, excluded.epoch), renew_seq = 0, released_at = NULL, recent_us = '{}',
  advertise = excluded.advertise
WHERE l.token = $7 AND l.renew_seq = $8
RETURNING epoch
"""

# How long ago the predecessor sent, on the database's clock: its ages at the release plus the time since.
PREDECESSOR = """
SELECT recent_us, (extract(epoch FROM clock_timestamp() - released_at) * 1e6)::bigint AS since_us
  FROM lease WHERE number_id = $1 AND token = $2 AND released_at IS NOT NULL
"""

# Locked in the order of the mark, which locks these rows too: else the two of them can deadlock.
RENEW = """
UPDATE lease SET renew_seq = renew_seq + 1, expires_at = clock_timestamp() + make_interval(secs => $2)
 WHERE number_id = ANY(ARRAY(
         SELECT number_id FROM lease
          WHERE token = ANY($1) AND released_at IS NULL AND expires_at > clock_timestamp()
          ORDER BY number_id FOR NO KEY UPDATE))
RETURNING number_id
"""

RELEASE = """
UPDATE lease SET released_at = clock_timestamp(), expires_at = clock_timestamp(), recent_us = $3
 WHERE number_id = $1 AND token = $2 AND released_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease as it stands in the database."""

    number_id: int
    owner: UUID
    node: str
    token: UUID
    epoch: int
    renew_seq: int
    released: bool
    recent_us: tuple[int, ...]
    advertise: str | None = None
    """How other nodes reach its owner."""


async def read(db: Executor) -> dict[int, LeaseRow]:
    """All leases, by number_id."""
    rows = await db.fetch(READ)
    return {
        r["number_id"]: LeaseRow(
            r["number_id"], r["owner"], r["node"], r["token"], r["epoch"], r["renew_seq"],
            r["released_at"] is not None, tuple(r["recent_us"]), r["advertise"],
        )
        for r in rows
    }  # fmt: skip


async def take(
    db: Executor,
    number_id: int,
    *,
    owner: UUID,
    node: str,
    token: UUID,
    seconds: float,
    advertise: str | None,
    instead_of: LeaseRow | None,
) -> int | None:
    """The new epoch, or None when the row has moved since it was read (somebody else was quicker)."""
    old_token, old_seq = (instead_of.token, instead_of.renew_seq) if instead_of else (token, 0)
    epoch: int | None = await db.fetchval(
        TAKE, number_id, owner, node, token, seconds, advertise, old_token, old_seq
    )
    return epoch


async def predecessor_sends(db: Executor, number_id: int, token: UUID) -> list[float] | None:
    """Ages in seconds, now, of a clean predecessor's last sends (oldest first); None when it did not release."""
    row = await db.fetchrow(PREDECESSOR, number_id, token)
    if row is None:
        return None
    return sorted(((us + row["since_us"]) / 1e6 for us in row["recent_us"]), reverse=True)


async def renew(db: Executor, tokens: Sequence[UUID], seconds: float) -> set[int]:
    """Prolong the leases of these tokens; the number_ids that are still ours."""
    return {row["number_id"] for row in await db.fetch(RENEW, list(tokens), seconds)}


async def release(db: Executor, number_id: int, token: UUID, recent_us: Sequence[int]) -> None:
    """Hand the number over with the ages (microseconds) of the last window's sends."""
    await db.execute(RELEASE, number_id, token, list(recent_us))
