"""What would go out: one row as it would be requested, and an audience lane by lane. Reads only."""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from engine.domain.message import Template
from engine.domain.recipient import State
from engine.postgres.contents import stored_content
from engine.postgres.pool import Executor

CAMPAIGN = """
SELECT c.campaign_id, c.random_id, c.template, c.language, c.body, c.content, c.category, c.deadline,
       (SELECT n.id FROM campaign_number u JOIN number n USING (number_id)
         WHERE u.campaign_id = c.campaign_id ORDER BY n.number_id LIMIT 1) AS number
  FROM campaign c WHERE c.name = $1
"""

SAMPLE = """
SELECT d.id, d.line, d.phone, d.params, r.state, r.tries, l.aside
  FROM recipient_data d JOIN recipient r USING (id) JOIN lane l USING (lane_id)
 WHERE d.campaign_id = $1 AND ($2::bigint IS NULL OR d.id = $2) AND ($3::int IS NULL OR d.line = $3)
 ORDER BY d.id LIMIT 1
"""

# By the books, but for the suppressed, who are nowhere before their rows are claimed.
LANES = """
SELECT l.country, l.aside, l.hold, CASE c.zone WHEN 'recipient' THEN l.zone ELSE coalesce(c.zone, '') END AS zones,
       nullif(least(l.deadline, c.deadline), 'infinity') AS deadline,
       coalesce(w.n, 0)::bigint AS waiting, coalesce(z.n, 0)::bigint AS suppressed
  FROM lane l JOIN campaign c USING (campaign_id)
  LEFT JOIN (SELECT lane_id, sum(n) AS n
               FROM (SELECT lane_id, state, n FROM book
                     UNION ALL SELECT lane_id, t, n FROM book_delta
                     UNION ALL SELECT lane_id, f, -n FROM book_delta) b
              WHERE state IN ('p', 'c') GROUP BY 1) w USING (lane_id)
  LEFT JOIN (SELECT r.lane_id, count(*) AS n
               FROM lane i JOIN recipient r USING (lane_id) JOIN recipient_data d USING (id)
              WHERE i.campaign_id = $1 AND r.next_attempt_at IS NOT NULL
                AND EXISTS (SELECT FROM suppression s WHERE s.phone = d.phone AND (s.scope = 'all' OR $2))
              GROUP BY 1) z USING (lane_id)
 WHERE l.campaign_id = $1 ORDER BY l.lane_id
"""

# Meta delivers no marketing template to numbers with an area code of the United States (since April 2025).
MARKETING_TO_US = """
SELECT count(*) FROM campaign c JOIN lane l USING (campaign_id) JOIN recipient r USING (lane_id)
 WHERE c.campaign_id = $1 AND c.category = 'marketing' AND l.country = 'US' AND l.aside = ''
   AND r.next_attempt_at IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """The campaign as its requests need it. `number`: Meta's id of the first that sends, None without any."""

    campaign_id: int
    random_id: str
    template: Template
    category: str
    deadline: datetime | None
    number: str | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One row with what it would say."""

    id: int
    line: int
    phone: str
    params: dict[str, str]
    state: State
    tries: int
    aside: str


@dataclass(frozen=True, slots=True)
class Lane:
    """Rows that have not left: `waiting`, of them `suppressed`. `deadline`: its own or the campaign's. `zones`: whose
    clocks tell quiet hours; '' is UTC."""

    country: str
    aside: str
    hold: str | None
    zones: str
    deadline: datetime | None
    waiting: int
    suppressed: int


async def subject(db: Executor, name: str) -> Subject | None:
    """None when there is no such campaign."""
    row = await db.fetchrow(CAMPAIGN, name)
    if row is None:
        return None
    template = Template(row["template"], row["language"], tuple(row["body"]), stored_content(row["content"]))
    return Subject(
        row["campaign_id"], row["random_id"], template, row["category"], row["deadline"], row["number"]
    )


async def sample(db: Executor, campaign_id: int, row: int | None, line: int | None) -> Sample | None:
    """The row of this id, or of this line (of the oldest import that has it), or the first; None when there is none."""
    found = await db.fetchrow(SAMPLE, campaign_id, row, line)
    if found is None:
        return None
    params: dict[str, str] = msgspec.json.decode(found["params"])
    state = State(found["state"].decode())
    return Sample(found["id"], found["line"], found["phone"], params, state, found["tries"], found["aside"])


async def marketing_to_us(db: Executor, campaign_id: int) -> int:
    """Rows that would be marketing to US numbers."""
    return int(await db.fetchval(MARKETING_TO_US, campaign_id))


async def lanes(db: Executor, campaign_id: int, *, marketing: bool) -> list[Lane]:
    """All lanes. `marketing`: who wants no marketing is suppressed, too."""
    return [Lane(*row) for row in await db.fetch(LANES, campaign_id, marketing)]
