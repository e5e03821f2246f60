"""How many different people an account has reached within 24 hours, against what somebody said that Meta allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.postgres.pool import Executor

LIMITED = """
SELECT a.account, a.messaging_limit,
       coalesce((SELECT sum(n.rate) FROM number n WHERE n.account = a.account AND n.paused_at IS NULL), 0)::float8
  FROM account a ORDER BY a.account
"""

REACHED = "SELECT count(*) FROM contact WHERE account = $1 AND at > clock_timestamp() - interval '24 hours'"

# The moment at which so many of the people of the last 24 hours are left out of them.
FREE_AT = """
SELECT at + interval '24 hours' FROM contact
 WHERE account = $1 AND at > clock_timestamp() - interval '24 hours' ORDER BY at OFFSET $2 LIMIT 1
"""

SET = """
INSERT INTO account (account, messaging_limit) VALUES ($1, $2)
ON CONFLICT (account) DO UPDATE SET messaging_limit = excluded.messaging_limit
"""

# Nobody was counted before there was a limit: the tries of the last day tell who was reached.
COUNT_BACK = """
INSERT INTO contact (account, phone, at)
SELECT $1, d.phone, max(t.sent_at)
  FROM try t JOIN number n USING (number_id) JOIN recipient_data d ON d.id = t.recipient_id
 WHERE n.account = $1 AND t.outcome = 'accepted' AND t.recorded_at > now() - interval '24 hours'
 GROUP BY 2 ORDER BY 2
ON CONFLICT (account, phone) DO UPDATE SET at = greatest(contact.at, excluded.at)
"""

FORGET = """
DELETE FROM contact WHERE (account, phone) IN (
  SELECT account, phone FROM contact WHERE at < clock_timestamp() - interval '24 hours' OR account NOT IN (
         SELECT account FROM account) LIMIT 20000 FOR UPDATE SKIP LOCKED)
"""

ACCOUNTS = """
SELECT n.account, count(*)::int AS numbers, sum(n.rate)::float8 AS rate, a.messaging_limit,
       CASE WHEN a.account IS NOT NULL THEN (
         SELECT count(*) FROM contact c WHERE c.account = a.account AND c.at > clock_timestamp() - interval '24 hours')
       END AS reached
  FROM number n LEFT JOIN account a USING (account)
 WHERE $1::text IS NULL OR n.account = $1
 GROUP BY n.account, a.account, a.messaging_limit ORDER BY n.account
"""

OF_CAMPAIGN = """
SELECT DISTINCT n.account FROM campaign_number u JOIN number n USING (number_id) WHERE u.campaign_id = $1 ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Limited:
    """An account with a limit. `rate`: messages/s of its numbers that are not paused."""

    account: str
    limit: int
    rate: float


@dataclass(frozen=True, slots=True)
class Account:
    """An account with its numbers. `limit` None: nobody has said one; then nobody is counted."""

    account: str
    numbers: int
    rate: float
    limit: int | None
    reached: int | None

    def as_json(self) -> dict[str, object]:
        """The public shape of `account list --json`."""
        return {
            "account": self.account,
            "numbers": self.numbers,
            "rate": self.rate,
            "messaging_limit": self.limit,
            "reached_24h": self.reached,
        }


async def limited(db: Executor) -> list[Limited]:
    """All accounts with a limit."""
    return [Limited(*row) for row in await db.fetch(LIMITED)]


async def reached(db: Executor, account: str) -> int:
    """Different people within the last 24 hours."""
    return int(await db.fetchval(REACHED, account))


async def free_at(db: Executor, account: str, too_many: int) -> datetime | None:
    """When the oldest `too_many` of them (1 or more) do not count any more."""
    at: datetime | None = await db.fetchval(FREE_AT, account, too_many - 1)
    return at


async def accounts(db: Executor, account: str | None = None) -> list[Account]:
    """All accounts that have a number, or one."""
    return [Account(*row) for row in await db.fetch(ACCOUNTS, account)]


async def of_campaign(db: Executor, campaign_id: int) -> Sequence[str]:
    """The accounts of a campaign's numbers."""
    return [row["account"] for row in await db.fetch(OF_CAMPAIGN, campaign_id)]


async def set_limit(db: Executor, account: str, limit: int | None) -> None:
    """Say how many people the account may reach within 24 hours; None: it is not counted any more."""
    if limit is None:
        await db.execute("DELETE FROM account WHERE account = $1", account)
        return
    known = await db.fetchval("SELECT EXISTS (SELECT FROM account WHERE account = $1)", account)
    await db.execute(SET, account, limit)
    if not known:
        await db.execute(COUNT_BACK, account, timeout=600.0)


async def forget(db: Executor) -> int:
    """Drop people who count no more; a page at a time."""
    total = 0
    while dropped := int((await db.execute(FORGET)).split()[-1]):
        total += dropped
    return total
