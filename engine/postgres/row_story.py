"""What else is known about one row: the statuses in stored webhook bodies, and what people did around it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from engine.domain.breaker import country_key, over_number, template_key
from engine.domain.receipts import UnparsableError, parse
from engine.postgres.journal import Kept
from engine.postgres.pool import Executor

EARLY = timedelta(seconds=5)
FIRST_LOOK = timedelta(minutes=10)
"""Nearly all statuses come within this of the try; the last one that moved the row is looked for at its own time."""

LAST_LOOK = timedelta(minutes=2)
MOST_BODIES = 50
MOST_ACTS = 50
DAY = timedelta(days=1)
SLOTS = 9

# In a slot ids grow with the time of receipt, so that the first body of a moment is found by halves.
BOUNDS = "SELECT min(id), max(id) FROM inbox WHERE slot = $1"
AT = "SELECT id, received_at FROM inbox WHERE slot = $1 AND id >= $2 ORDER BY id LIMIT 1"

BODIES = """
SELECT received_at, body FROM inbox
 WHERE slot = $1 AND id >= $2 AND received_at BETWEEN $3 AND $4 AND id <= $5 AND position($6 IN body) > 0
 ORDER BY id LIMIT $7
"""

FIND = """
SELECT c.random_id, c.name, c.template, c.language, l.country, r.moved_at, n.id AS number, n.account, n.token_ref,
       (SELECT min(sent_at) FROM try t WHERE t.recipient_id = r.id) AS first_sent
  FROM recipient r JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
  LEFT JOIN number n ON n.number_id = r.number_id
 WHERE r.id = $1
"""

ACTS = """
SELECT at, author, origin, act, target, before, after, reason, result FROM journal
 WHERE target = ANY($1) ORDER BY id DESC LIMIT $2
"""


@dataclass(frozen=True, slots=True)
class Heard:
    """A status of the row's message. `said_at` by the provider's clock, `received_at` by ours."""

    n: int
    word: str
    said_at: datetime | None
    received_at: datetime
    code: int | None


async def heard(db: Executor, row: int) -> list[Heard]:
    """The row's statuses as the stored bodies tell them, each once, in the order of their receipt.

    Bodies are kept for eight days, and looked for in the ten minutes after the first try and in the two before the
    row last moved: an inbox of a hundred gigabytes must not be read for one row.
    """
    found = await db.fetchrow(FIND, row)
    if found is None or found["first_sent"] is None:
        return []
    token = f"{found['random_id']}:{row}:".encode()
    first, moved = found["first_sent"] - EARLY, found["moved_at"]
    spans = [(first, first + FIRST_LOOK)]
    if moved > first + FIRST_LOOK:
        spans.append((max(moved - LAST_LOOK, first + FIRST_LOOK), moved + EARLY))
    bodies = [body for span in spans for body in await _bodies(db, token, *span)]
    told: dict[tuple[int, str], Heard] = {}
    for received_at, body in bodies:
        for one in _statuses(body, found["random_id"], row, received_at):
            told.setdefault((one.n, one.word), one)
    return sorted(told.values(), key=lambda one: one.received_at)


async def acts(db: Executor, row: int) -> list[Kept]:
    """What people and the engine did to the row's campaign, number and breakers; oldest first, the newest 50."""
    found = await db.fetchrow(FIND, row)
    if found is None:
        return []
    targets = [found["name"]]
    if found["number"] is not None:
        over = over_number(found["number"], found["account"], found["token_ref"])
        template = template_key(found["account"], found["template"], found["language"])
        targets += [*over.values(), template, country_key(found["account"], found["country"])]
    return [Kept(*line) for line in reversed(await db.fetch(ACTS, targets, MOST_ACTS))]


async def _bodies(
    db: Executor, token: bytes, since: datetime, until: datetime
) -> list[tuple[datetime, bytes]]:
    found: list[tuple[datetime, bytes]] = []
    days = {(since + DAY * n).date() for n in range((until - since).days + 2)}
    for day in sorted(days):
        slot = (day - datetime(1970, 1, 1, tzinfo=UTC).date()).days % SLOTS
        low, high = await _id_at(db, slot, since), await _id_at(db, slot, until)
        if low is not None and high is not None:
            rows = await db.fetch(BODIES, slot, low, since, until, high, token, MOST_BODIES)
            found += [(line["received_at"], line["body"]) for line in rows]
    return found


async def _id_at(db: Executor, slot: int, at: datetime) -> int | None:
    """The first id of the slot that was received at that time or later, else its last; None: the slot is empty."""
    bounds = await db.fetchrow(BOUNDS, slot)
    if bounds is None or bounds[0] is None:
        return None
    low, high = bounds
    while low < high:
        middle = await db.fetchrow(AT, slot, (low + high) // 2)
        if middle is None or middle["received_at"] >= at:
            high = (low + high) // 2
        else:
            low = middle["id"] + 1
    return int(low)


def _statuses(body: bytes, campaign: str, row: int, received_at: datetime) -> Sequence[Heard]:
    try:
        receipts = parse(body).statuses
    except UnparsableError:
        return []
    return [
        Heard(
            one.token.n,
            one.state.word,
            datetime.fromtimestamp(one.at, UTC) if one.at is not None else None,
            received_at,
            one.code,
        )
        for one in receipts
        if one.token is not None and (one.token.campaign, one.token.row) == (campaign, row)
    ]
