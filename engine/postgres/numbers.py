"""Business numbers as people keep them: added, paused, given a rate; and how they stand now."""

from dataclasses import dataclass
from datetime import datetime

from engine.author import ENGINE
from engine.postgres.pool import Executor

ADD = """
INSERT INTO number (id, display, account, token_ref, provider_limit, rate) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO NOTHING RETURNING number_id
"""

LOCK = """
SELECT number_id, id, rate, provider_limit, paused_by, pause_reason, pause_all FROM number WHERE id = $1
   FOR NO KEY UPDATE
"""

# A pause by pause-all that a person then asks for by name stays when resume-all comes.
PAUSE = """
UPDATE number SET paused_at = coalesce(paused_at, clock_timestamp()), paused_by = $2, pause_reason = $3,
       pause_all = false
 WHERE number_id = $1
"""

RESUME = """
UPDATE number SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, pause_all = false,
       waiting_until = NULL, waiting_reason = NULL
 WHERE number_id = $1
"""

# The ceiling stays below the rate; one that was not lowered follows the rate.
SET_RATE = """
UPDATE number SET rate = $2, provider_limit = $3,
       ceiling = CASE WHEN ceiling < least(rate, $2) THEN ceiling END
 WHERE number_id = $1
"""

IDS = "SELECT id FROM number ORDER BY id"

PAUSE_ALL = """
UPDATE number SET paused_at = clock_timestamp(), paused_by = $1, pause_reason = $2, pause_all = true
 WHERE number_id = ANY(ARRAY(SELECT number_id FROM number WHERE paused_at IS NULL ORDER BY number_id
                                FOR NO KEY UPDATE))
RETURNING id
"""

RESUME_ALL = """
UPDATE number SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, pause_all = false
 WHERE number_id = ANY(ARRAY(SELECT number_id FROM number WHERE pause_all ORDER BY number_id FOR NO KEY UPDATE))
RETURNING id
"""

USERS = """
SELECT c.name FROM campaign_number u JOIN campaign c USING (campaign_id)
 WHERE u.number_id = $1 AND (c.state NOT IN ('finished', 'cancelled') OR c.finished_at IS NULL)
 ORDER BY c.name
"""

REMOVE = """
WITH unlinked AS (DELETE FROM campaign_number WHERE number_id = $1)
DELETE FROM number WHERE number_id = $1
"""

VIEW = """
SELECT n.id, n.display, n.account, n.token_ref, n.rate, n.provider_limit, n.ceiling, n.paused_by, n.pause_reason,
       CASE WHEN h.state = 'waiting' THEN h.until WHEN n.waiting_until > now() THEN n.waiting_until
            END AS waiting_until,
       CASE WHEN h.state = 'waiting' THEN h.reason ELSE n.waiting_reason END AS waiting_reason,
       CASE WHEN l.released_at IS NULL AND l.expires_at > now() THEN l.node END AS owner, coalesce(l.epoch, 0) AS epoch,
       coalesce(a.n, 0) AS accepted_last_second,
       (SELECT count(*) FROM (SELECT base_db, us FROM send_log
                               WHERE number_id = n.number_id ORDER BY id DESC LIMIT 100) s
         CROSS JOIN LATERAL unnest(s.us) AS u(us)
         WHERE s.base_db + u.us * interval '1 microsecond' > now() - interval '1 second') AS tries_last_second,
       CASE WHEN h.state = 'held' THEN coalesce(h.reason, 'held') END AS held_reason,
       extract(epoch FROM clock_timestamp() - d.seen_at)::float8 AS owner_silent_s
  FROM number n
  LEFT JOIN LATERAL (  -- what stands over the number, its account or its credential; what is held first
    SELECT state, reason, until FROM breaker b
     WHERE (b.state = 'held' OR b.state = 'waiting' AND b.until > now())
       AND b.key = CASE b.scope WHEN 'number' THEN n.id WHEN 'account' THEN n.account
                                WHEN 'credential' THEN n.token_ref END
     ORDER BY b.state, b.breaker_id LIMIT 1) h ON true
  LEFT JOIN lease l USING (number_id)
  LEFT JOIN node d ON d.id = l.owner
  LEFT JOIN (SELECT number_id, count(*) AS n FROM try  -- recorded_at: the newest end of the newest partition
              WHERE recorded_at > now() - interval '3 seconds' AND outcome = 'accepted'
                AND answered_at > now() - interval '1 second' GROUP BY 1) a USING (number_id)
 WHERE $1::text IS NULL OR n.id = $1
 ORDER BY n.number_id
"""


@dataclass(frozen=True, slots=True)
class Locked:
    """A number's row, locked by the transaction that read it."""

    number_id: int
    id: str
    rate: float
    limit: float
    paused_by: str | None
    pause_reason: str | None
    pause_all: bool


@dataclass(frozen=True, slots=True)
class NumberRow:
    """One number as `number list` shows it. Rates in messages per second."""

    id: str
    display: str
    account: str
    token_ref: str
    rate: float
    limit: float
    ceiling: float | None
    paused_by: str | None
    pause_reason: str | None
    waiting_until: datetime | None
    waiting_reason: str | None
    owner: str | None
    epoch: int
    accepted_last_second: int
    tries_last_second: int
    held_reason: str | None = None
    """Of the breaker over it that a person must lift."""
    owner_silent_s: float | None = None
    """Seconds since its owner said that it is alive; its lease may still run."""

    @property
    def state(self) -> str:
        """The first that applies: paused (a person), held (the engine), waiting, slowed, active."""
        if self.paused_by is not None and self.paused_by != ENGINE:
            return "paused"
        if self.rate == 0 and self.paused_by is None:
            return "paused"
        if self.paused_by is not None or self.held_reason is not None:
            return "held"
        if self.waiting_until is not None:
            return "waiting"
        return "slowed" if self.ceiling is not None and self.ceiling < self.rate else "active"

    @property
    def reason(self) -> str | None:
        """Why it is in that state, where a reason is known."""
        match self.state:
            case "paused" | "held":
                if self.paused_by is None:
                    return self.held_reason or "rate 0"
                return self.pause_reason
            case "waiting":
                until = self.waiting_until.isoformat(timespec="seconds") if self.waiting_until else "?"
                return f"until {until}" + (f": {self.waiting_reason}" if self.waiting_reason else "")
            case "slowed":
                return f"the provider grants about {self.ceiling:g}/s"
        return None

    def as_json(self) -> dict[str, object]:
        """The public shape of `number list --json`."""
        stopped = self.state in ("paused", "held")
        return {
            "id": self.id,
            "display": self.display,
            "account": self.account,
            "owner": self.owner,
            "epoch": self.epoch,
            "state": self.state,
            "reason": self.reason,
            "rate": self.rate,
            "limit": self.limit,
            "ceiling": self.rate if self.ceiling is None else min(self.ceiling, self.rate),
            "accepted_last_second": self.accepted_last_second,
            "tries_last_second": self.tries_last_second,
            "bound_by": "hold" if stopped else None,  # only the owner knows more
            "owner_silent_s": None
            if self.owner is None or self.owner_silent_s is None
            else round(self.owner_silent_s),
        }


async def add(
    db: Executor, id_: str, display: str, account: str, token_ref: str, limit: float, rate: float
) -> bool:
    """False when a number with this id is there already."""
    return await db.fetchval(ADD, id_, display, account, token_ref, limit, rate) is not None


async def lock(db: Executor, id_: str) -> Locked | None:
    """The number's row, locked until the transaction ends."""
    row = await db.fetchrow(LOCK, id_)
    return Locked(*row) if row else None


async def pause(db: Executor, number_id: int, by: str, reason: str | None) -> None:
    """From now on no mark passes for this number."""
    await db.execute(PAUSE, number_id, by, reason)


async def resume(db: Executor, number_id: int) -> None:
    """Also ends a wait: who resumes wants to see it go."""
    await db.execute(RESUME, number_id)


async def set_rate(db: Executor, number_id: int, rate: float, limit: float) -> None:
    """Both at once, so that the rate never stands above the limit."""
    await db.execute(SET_RATE, number_id, rate, limit)


async def pause_all(db: Executor, by: str, reason: str | None) -> list[str]:
    """Ids of the numbers that were going until now."""
    return [row["id"] for row in await db.fetch(PAUSE_ALL, by, reason)]


async def resume_all(db: Executor) -> list[str]:
    """Ids of the numbers that pause_all had stopped."""
    return [row["id"] for row in await db.fetch(RESUME_ALL)]


async def users(db: Executor, number_id: int) -> list[str]:
    """Names of the campaigns that may still send, or still have rows under way, through this number."""
    return [row["name"] for row in await db.fetch(USERS, number_id)]


async def remove(db: Executor, number_id: int) -> None:
    """Take it out, with its links to ended campaigns. Its tries and sends stay as evidence."""
    await db.execute(REMOVE, number_id)


async def view(db: Executor, id_: str | None = None) -> list[NumberRow]:
    """All numbers, or one, as they stand now."""
    return [NumberRow(*row) for row in await db.fetch(VIEW, id_)]


async def ids(db: Executor) -> list[str]:
    """The ids of all numbers."""
    return [row["id"] for row in await db.fetch(IDS)]
