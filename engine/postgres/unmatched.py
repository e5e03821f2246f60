"""Statuses that name our token or a wamid and match nothing yet: tried again for an hour, then foreign."""

from collections.abc import Sequence
from typing import Any

from engine.domain.evidence import Evidence, furthest
from engine.domain.message import Token
from engine.domain.recipient import State, rank
from engine.postgres.pool import Executor as Session
from engine.postgres.statuses import Applied, apply, words

KEEP = """
INSERT INTO status_unmatched (wamid, recipient_id, n, status, code, number)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::int[], $6::text[])
"""

# The newest, whose match is most likely on its way, and a page of the others after a moving mark.
DUE = """
WITH k AS MATERIALIZED (
  (SELECT id FROM status_unmatched ORDER BY id DESC LIMIT $2)
  UNION (SELECT id FROM status_unmatched WHERE id > $1 ORDER BY id LIMIT $2)),
taken AS MATERIALIZED (
  SELECT u.* FROM status_unmatched u WHERE u.id = ANY(ARRAY(SELECT id FROM k)) ORDER BY id FOR UPDATE SKIP LOCKED)
SELECT t.id, t.wamid, t.recipient_id, t.n, t.status, t.code, t.number, extract(epoch FROM t.first_seen)::float8 AS at,
       t.first_seen < clock_timestamp() - interval '1 hour' AS old,
       (SELECT c.random_id FROM recipient r JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
         WHERE r.id = t.recipient_id) AS campaign
  FROM taken t
"""

FORGET = "DELETE FROM status_unmatched WHERE id = ANY($1)"

PAGE = 500


async def keep(db: Session, statements: Sequence[Evidence]) -> int:
    """Put statements aside; how many statuses they stand for."""
    kept = [(e, word) for e in statements for word in words(e)]
    if kept:
        await db.execute(
            KEEP,
            [e.wamid for e, _ in kept],
            [e.token.row if e.token else None for e, _ in kept],
            [e.token.n if e.token else None for e, _ in kept],
            [word for _, word in kept],
            [e.code if word == State.FAILED.word else None for e, word in kept],
            [e.number for e, _ in kept],
        )
    return len(kept)


async def retry(db: Session, after: int) -> tuple[Applied, int, int]:
    """Try a page again inside the caller's transaction: what came of it, how many still wait, the next `after`.

    `after` is 0 to begin. An hour after they were first seen they are dropped, and counted as foreign.
    """
    rows = await db.fetch(DUE, after, PAGE)
    if not rows:
        return Applied(), 0, 0
    statements = {row["id"]: _statement(row) for row in rows}
    applied, rest = await apply(db, furthest(statements.values()))
    waiting = {None} | {e.key for e in rest} | {e.wamid for e in rest if e.wamid}
    left = {row["id"] for row in rows if statements[row["id"]].key in waiting}
    old = {row["id"] for row in rows if row["old"]}
    await db.execute(FORGET, [row["id"] for row in rows if row["id"] not in left or row["id"] in old])
    applied.foreign += len(left & old)
    # The newest are in every page; the mark follows the older ones, and starts again behind the last.
    page = sorted(row["id"] for row in rows if row["id"] > after)[:PAGE]
    return applied, len(left - old), page[-1] if len(page) == PAGE else 0


def _statement(row: Any) -> Evidence:
    """A kept status as the statement that it was. Its texts are gone; its time is when we first saw it."""
    state = State[row["status"].upper()]
    known = row["campaign"] is not None and row["n"] is not None
    failed = state is State.FAILED
    return Evidence(
        token=Token(row["campaign"], row["recipient_id"], row["n"]) if known else None,
        wamid=row["wamid"],
        number=row["number"],
        rank=0 if failed else rank(state),
        failed=failed,
        code=row["code"],
        raw=None,
        at=row["at"],
    )
