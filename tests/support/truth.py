"""Campaigns and rows put straight into a database, and its books recounted."""

from dataclasses import dataclass

from engine.domain.message import Token
from engine.domain.recipient import State
from engine.postgres.pool import Pool

NUMBER = "106540352242922"

CAMPAIGN = """
WITH n AS (
  INSERT INTO number (id, display, account, token_ref, provider_limit, rate)
  VALUES ($2, '+15550783881', 'WABA', 'env:T', 80, 64) ON CONFLICT (id) DO UPDATE SET rate = 64 RETURNING number_id),
c AS (
  INSERT INTO campaign (name, random_id, template, language) VALUES ($1, $1, 'hello', 'en') RETURNING campaign_id),
l AS (INSERT INTO lane (campaign_id) SELECT campaign_id FROM c RETURNING lane_id)
SELECT lane_id, number_id FROM l, n
"""

ROW = """
WITH r AS (
  INSERT INTO recipient (lane_id, state, number_id, epoch, tries, next_attempt_at, in_flight, code)
  SELECT $1, $2, $3, 1, $4, CASE WHEN $2 = 'p'::"char" THEN now() END,
         CASE WHEN $2 IN ('c'::"char", 's', 'u') THEN $3::int END, $5
    FROM generate_series(1, $6)
  RETURNING id),
b AS (INSERT INTO book_delta (lane_id, f, t, n) VALUES ($1, ' ', $2, $6))
SELECT id FROM r ORDER BY id
"""

TRY = """
INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, answered_at, outcome, code, wamid)
VALUES ($1, $2, $3, 1, now(), now(), $4, $5, $6)
"""

BOOKS = """
SELECT state, sum(n) AS n FROM (
  SELECT lane_id, t AS state, n FROM book_delta UNION ALL SELECT lane_id, f, -n FROM book_delta WHERE f <> ' '
  UNION ALL SELECT lane_id, state, n FROM book) d
 WHERE lane_id = $1 GROUP BY state HAVING sum(n) <> 0
"""

RECOUNT = "SELECT state, count(*) AS n FROM recipient WHERE lane_id = $1 GROUP BY state"

TALLIES = """
SELECT what, code, sum(n) AS n FROM (
  SELECT lane_id, what, code, n FROM tally_delta UNION ALL SELECT lane_id, what, code, n FROM tally) d
 WHERE lane_id = $1 GROUP BY what, code HAVING sum(n) <> 0
"""


@dataclass(slots=True)
class Campaign:
    """A campaign with one lane and one number, by the name that is its random id too."""

    pool: Pool
    name: str
    lane: int
    number: int

    async def row(self, state: State, *, tries: int = 1, code: int | None = None) -> int:
        [made] = await self.rows(1, state, tries=tries, code=code)
        return made

    async def rows(
        self, how_many: int, state: State, *, tries: int = 1, code: int | None = None
    ) -> list[int]:
        """New rows in `state`, booked; their ids."""
        made = await self.pool.fetch(ROW, self.lane, state.value.encode(), self.number, tries, code, how_many)
        return [row["id"] for row in made]

    async def record(
        self, row: int, n: int, outcome: str, *, wamid: str | None = None, code: int | None = None
    ) -> None:
        """Evidence about a try, as the sender would have left it."""
        await self.pool.execute(TRY, row, n, self.number, outcome, code, wamid)

    def token(self, row: int, n: int = 1) -> Token:
        return Token(self.name, row, n)

    async def state(self, row: int) -> State:
        letter: bytes = await self.pool.fetchval("SELECT state FROM recipient WHERE id = $1", row)
        return State(letter.decode())

    async def evidence(self, row: int) -> list[tuple[int, str, int | None, str | None]]:
        """What is on record about a row's tries: n, outcome, code, wamid."""
        found = await self.pool.fetch(
            "SELECT n, outcome, code, wamid FROM try WHERE recipient_id = $1 ORDER BY n, outcome", row
        )
        return [(r["n"], r["outcome"], r["code"], r["wamid"]) for r in found]

    async def books(self) -> dict[State, int]:
        """Rows in each state by the books."""
        return {State(r["state"].decode()): r["n"] for r in await self.pool.fetch(BOOKS, self.lane)}

    async def recount(self) -> dict[State, int]:
        """Rows in each state, counted."""
        return {State(r["state"].decode()): r["n"] for r in await self.pool.fetch(RECOUNT, self.lane)}

    async def tallies(self) -> dict[tuple[str, int], int]:
        """The counters that are not states: by letter and code."""
        found = await self.pool.fetch(TALLIES, self.lane)
        return {(r["what"].decode(), r["code"]): r["n"] for r in found}


async def campaign(pool: Pool, name: str = "abc") -> Campaign:
    """A new campaign; the number is shared by all of them."""
    row = await pool.fetchrow(CAMPAIGN, name, NUMBER)
    assert row is not None
    return Campaign(pool, name, row["lane_id"], row["number_id"])
