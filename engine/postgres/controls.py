"""Rounds of control phones: small campaigns beside the one that they control, with its template and numbers."""

import secrets
from collections.abc import Mapping, Sequence

import msgspec

from engine.author import ENGINE
from engine.domain.control import ControlSend, ControlStanding, by_phone
from engine.domain.phone import read_phone
from engine.domain.recipient import State
from engine.postgres import journal
from engine.postgres.journal import Entry
from engine.postgres.pool import Executor, Pool

PREPARE = """
UPDATE campaign SET control = 'first' WHERE campaign_id = $1 AND control IS NULL AND control_phones <> '{}'
RETURNING cardinality(control_phones)
"""

# While the audience sleeps, is held or has been served, nobody of the house is written to, either.
DUE = """
SELECT c.campaign_id FROM campaign c
  LEFT JOIN LATERAL (SELECT max(created_at) AS at FROM campaign WHERE control_of = c.campaign_id) r ON true
 WHERE c.state = 'running' AND c.control_phones <> '{}'
   AND (r.at IS NULL OR r.at + c.control_every <= clock_timestamp())
   AND 0 < (SELECT coalesce(sum(s.n), 0)
              FROM (SELECT lane_id, state, n FROM book
                    UNION ALL SELECT lane_id, t, n FROM book_delta
                    UNION ALL SELECT lane_id, f, -n FROM book_delta) s
              JOIN lane l USING (lane_id)
             WHERE l.campaign_id = c.campaign_id AND l.hold IS NULL AND l.closes_at > clock_timestamp()
               AND s.state IN ('p', 'c', 's'))
 ORDER BY c.campaign_id
"""

LOCKED = """
SELECT name, control_phones, control_values,
       (SELECT coalesce(max(control_round), 0) + 1 FROM campaign o WHERE o.control_of = c.campaign_id) AS round
  FROM campaign c WHERE campaign_id = $1 AND state = 'running' AND NOT EXISTS (
       SELECT FROM campaign o WHERE o.control_of = c.campaign_id
          AND (c.control_every IS NULL OR o.created_at + c.control_every > clock_timestamp()))
   FOR NO KEY UPDATE
"""

# A round that has not left when the next is due would only come twice.
SUPERSEDE = """
UPDATE campaign SET state = 'cancelled', reason = 'the next round of control phones followed'
 WHERE control_of = $1 AND state IN ('running', 'paused', 'held')
"""

# Above its campaign, that it leaves at once; no rows of it may wait for a person's word.
ROUND = """
INSERT INTO campaign (name, random_id, state, started_at, template, language, category, body, content, priority,
                      deadline, unknown_policy, unknown_after, max_attempts, try_budget, planned, control_of,
                      control_round)
SELECT name || ':control-' || $3::int, $2, 'running', clock_timestamp(), template, language, category, body, content,
       least(priority + 1, 32767), deadline, 'assume_sent', unknown_after, max_attempts,
       20 * cardinality(control_phones), cardinality(control_phones), campaign_id, $3::int
  FROM campaign WHERE campaign_id = $1
RETURNING campaign_id
"""

NUMBERS = """
INSERT INTO campaign_number (campaign_id, number_id)
SELECT $2, number_id FROM campaign_number WHERE campaign_id = $1 ORDER BY number_id
"""

LANES = "INSERT INTO lane (campaign_id, country) SELECT $1, country FROM unnest($2::text[]) AS c(country)"

ROWS = """
WITH new AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('recipient', 'id')) AS id, p.*
    FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS p(phone, country, line)),
data AS (
  INSERT INTO recipient_data (id, campaign_id, phone, params, line)
  SELECT id, $1, phone, $4::text::jsonb, line FROM new ORDER BY id),
kept AS (
  INSERT INTO recipient (id, lane_id)
  SELECT n.id, l.lane_id FROM new n JOIN lane l ON l.campaign_id = $1 AND l.country = n.country ORDER BY n.id
  RETURNING lane_id)
INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, ' ', 'p', count(*) FROM kept GROUP BY lane_id
"""

# Its audience follows when all of the first round have had their turn, or after `$1` seconds in any case.
PASS = """
UPDATE campaign c SET control = 'passed'
 WHERE c.control = 'first' AND EXISTS (
       SELECT FROM campaign o WHERE o.control_of = c.campaign_id
          AND (o.created_at < clock_timestamp() - make_interval(secs => $1) OR NOT EXISTS (
               SELECT FROM recipient r
                WHERE r.id = ANY(ARRAY(SELECT id FROM recipient_data WHERE campaign_id = o.campaign_id))
                  AND (r.state IN ('c', 's') OR r.state = 'p' AND r.tries = 0))))
RETURNING c.name
"""

END = """
UPDATE campaign o SET state = 'cancelled', reason = 'its campaign has ended'
  FROM campaign c WHERE c.campaign_id = o.control_of AND c.state IN ('finished', 'cancelled')
   AND o.state IN ('running', 'paused', 'held')
RETURNING o.name
"""

# One look at each row and its tries by key, whatever the size of the audiences beside them.
SENDS = """
SELECT o.control_of AS campaign_id, d.phone, o.control_round, r.state,
       extract(epoch FROM clock_timestamp() - t.sent_at)::float8 AS age
  FROM campaign o JOIN campaign c ON c.campaign_id = o.control_of
 CROSS JOIN LATERAL (SELECT id, phone FROM recipient_data WHERE campaign_id = o.campaign_id OFFSET 0) d
 CROSS JOIN LATERAL (SELECT state FROM recipient WHERE id = d.id OFFSET 0) r
 CROSS JOIN LATERAL (SELECT min(sent_at) AS sent_at FROM try
                      WHERE recipient_id = d.id AND outcome NOT IN ('withdrawn', 'not_sent')) t
 WHERE CASE WHEN $1::int IS NOT NULL THEN o.control_of = $1
            ELSE (c.state IN ('running', 'paused', 'held') OR c.finished_at > clock_timestamp() - interval '1 hour')
             AND o.created_at > clock_timestamp() - greatest(interval '1 hour', 3 * c.control_every) END
 ORDER BY o.control_of, d.phone, o.control_round
"""

SETTINGS = """
SELECT control_phones, extract(epoch FROM control_every)::float8 AS every,
       (SELECT count(*)::int FROM campaign o WHERE o.control_of = c.campaign_id) AS rounds
  FROM campaign c WHERE campaign_id = $1 AND control_phones <> '{}'
"""


async def prepare(db: Executor, campaign_id: int) -> int:
    """Before a start, inside its transaction: the audience waits for the control phones; how many there are."""
    return int(await db.fetchval(PREPARE, campaign_id) or 0)


async def due(db: Executor) -> list[int]:
    """campaign_ids of running campaigns whose next round should leave."""
    return [row["campaign_id"] for row in await db.fetch(DUE)]


async def add_round(db: Executor, campaign_id: int) -> tuple[str, int] | None:
    """One more round, in the caller's transaction: (the campaign's name, which round); None when it has moved on."""
    row = await db.fetchrow(LOCKED, campaign_id)
    if row is None:
        return None
    name, phones, number = str(row["name"]), list(row["control_phones"]), int(row["round"])
    await db.execute(SUPERSEDE, campaign_id)
    made = int(await db.fetchval(ROUND, campaign_id, secrets.token_hex(6), number))
    await db.execute(NUMBERS, campaign_id, made)
    countries = [read_phone(phone).country for phone in phones]
    await db.execute(LANES, made, sorted(set(countries)))
    await db.execute(ROWS, made, phones, countries, row["control_values"])
    # As any audience: the audit compares what was planned with the imports in the journal.
    target, why = f"{name}:control-{number}", f"control phones of {name}"
    entry = Entry(ENGINE, "engine", "import", target, why, "planned 0", f"planned {len(phones)}")
    await journal.write(db, entry)
    return name, number


async def follow(pool: Pool, most_s: float) -> list[str]:
    """Let audiences follow their first round, and end the rounds of campaigns that have ended; names of the former."""
    async with pool.acquire() as db, db.transaction():
        passed = [str(row["name"]) for row in await db.fetch(PASS, most_s)]
        ended = await db.fetch(END)
        if passed or ended:
            await journal.tell(db)
    return passed


async def sends(db: Executor, campaign_id: int | None = None) -> Mapping[int, Sequence[ControlSend]]:
    """By campaign_id: of one campaign all, else the latest of those that are under way or have just ended."""
    found: dict[int, list[ControlSend]] = {}
    for campaign, phone, number, state, age in await db.fetch(SENDS, campaign_id):
        send = ControlSend(phone, number, State(state.decode()).word, age)
        found.setdefault(campaign, []).append(send)
    return found


async def standing(db: Executor, campaign_id: int) -> ControlStanding | None:
    """How they have fared; None for a campaign without control phones."""
    row = await db.fetchrow(SETTINGS, campaign_id)
    if row is None:
        return None
    sent = (await sends(db, campaign_id)).get(campaign_id, ())
    return ControlStanding(row["rounds"], row["every"], tuple(by_phone(sent, row["control_phones"])))


def values_text(values: Mapping[str, str]) -> str:
    """As the table keeps them."""
    return msgspec.json.encode(dict(values)).decode()
