"""What the hot statements of the sending path touch at 200,000 rows: their own batch, whatever the planner knows.

Three moments: rows just imported and nothing known about them, the same with statistics, and half of them drained
from the head of the index. Each under the plan for its arguments and under the one for any arguments.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from engine.postgres import claims, figures, results
from engine.postgres.pool import connect
from tests.support import builders
from tests.support.database import TestServer, apart
from tests.support.explain import Plan, explain
from tests.support.owned import HEAD, THEN

ROWS = 200_000
DRAINED = 100_000
BATCH = 200
TOKEN = UUID(int=7)
LEASE = """
INSERT INTO lease (number_id, owner, node, token, epoch, expires_at)
VALUES ($1, $2, 'n', $2, 2, now() + interval '1 day')
"""
DRAIN = """
WITH r AS (
  UPDATE recipient SET tries = 1, number_id = 1, epoch = 2, next_attempt_at = NULL,
         moved_at = now() - interval '1 hour',
         state = (CASE WHEN id <= 99000 THEN 't'
                       WHEN id % 3 = 0 THEN 'c' WHEN id % 3 = 1 THEN 's' ELSE 'u' END)::"char",
         in_flight = CASE WHEN id > 99000 THEN 1 END
   WHERE id <= 100000 RETURNING id)
INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome, wamid)
SELECT id, 1, 1, 2, now(), 'accepted', 'w' || id FROM r
"""
TABLES = ("recipient", "recipient_data", "try")


@dataclass(frozen=True)
class Moment:
    """One database in one state, with some rows that are in that moment claimed and sending."""

    url: str
    claimed: list[int]
    sending: list[int]
    low_water: int


@pytest.fixture(scope="module")
def imported(postgres: TestServer) -> Iterator[str]:
    with postgres.database() as url:
        apart(lambda: fill(url))
        yield url


async def fill(url: str) -> None:
    async with connect(url) as db:
        number = await builders.number(db)
        await db.execute(LEASE, number, TOKEN)
        made = await builders.campaign(db, numbers=["106540352242922"], state="running")
        await builders.recipients(db, made, ROWS)


@pytest.fixture(scope="module", params=["imported", "analyzed", "drained", "drained and analyzed"])
def moment(request: pytest.FixtureRequest, imported: str) -> Moment:
    """In this order on one database: each moment is the next one's past."""
    name: str = request.param
    return apart(lambda: reach(imported, name))


async def reach(url: str, name: str) -> Moment:
    async with connect(url) as db:
        if name == "drained":
            await db.execute(DRAIN)
        if "analyzed" in name:
            await db.execute("ANALYZE")
        by_state = {
            state: [
                r["id"]
                for r in await db.fetch(
                    "SELECT id FROM recipient WHERE state = $1 ORDER BY id LIMIT $2", state.encode(), BATCH
                )
            ]
            for state in "cs"
        }
    drained = "drained" in name
    any_rows = list(range(1000, 1000 + BATCH))
    return Moment(
        url,
        by_state["c"] if drained else any_rows,
        by_state["s"] if drained else any_rows,
        DRAINED if drained else 0,
    )


def assert_touches(plan: Plan, rows: int, buffers: int) -> None:
    scanned = {t for t in plan.scanned_whole if t in TABLES or t.startswith("try_")}
    assert not scanned
    assert plan.rows("recipient") <= rows
    assert plan.rows("recipient_data") <= rows
    assert plan.buffers <= buffers


generic_or_not = pytest.mark.parametrize("generic", [False, True], ids=["custom plan", "generic plan"])


@generic_or_not
async def test_a_claim_touches_what_it_takes(moment: Moment, generic: bool) -> None:
    # Where a drain has been, dead entries lie at the index's head: the low-water mark skips them.
    arguments = (1, TOKEN, 2, [1], [HEAD], [0], BATCH, False)
    async with connect(moment.url) as db:
        if moment.low_water:
            last = await db.fetchval("SELECT min(next_attempt_at) FROM recipient WHERE id > $1", DRAINED)
            arguments = (1, TOKEN, 2, [1], [last], [DRAINED], BATCH, False)
        plan = await explain(db, claims.CLAIM, *arguments, generic=generic)
    assert "recipient_ready" in plan.indexes
    assert_touches(plan, 3 * BATCH, 25 * BATCH)


@generic_or_not
async def test_a_mark_touches_its_rows(moment: Moment, generic: bool) -> None:
    ids, count = moment.claimed, len(moment.claimed)
    async with connect(moment.url) as db:
        plan = await explain(
            db, claims.MARK, ids, [1] * count, [TOKEN] * count, [2] * count, [2] * count,
            [f"+55119{n:08d}" for n in range(count)], ["WABA1/t/en"] * count, [False] * count, generic=generic,
        )  # fmt: skip
    assert "recipient_pkey" in plan.indexes
    assert_touches(plan, 2 * BATCH, 8 * BATCH)


@generic_or_not
@pytest.mark.parametrize("repeated", [False, True], ids=["first", "repeated"])
async def test_results_touch_their_rows(moment: Moment, generic: bool, repeated: bool) -> None:
    ids, count = moment.sending, len(moment.sending)
    outcomes = [("accepted", "t"), ("refused", "f"), ("unknown", "u"), ("refused", "p")]
    async with connect(moment.url) as db:
        plan = await explain(
            db,
            results.APPLY,
            ids,
            [1] * count,
            [1] * count,
            [2] * count,
            [THEN] * count,
            [THEN] * count,
            [outcomes[i % 4][0] for i in range(count)],
            [131026 if i % 2 else None for i in range(count)],
            [f"w{i}" for i in ids],
            ["{}"] * count,
            [outcomes[i % 4][1].encode() for i in range(count)],
            [THEN] * count,
            [1] * count,
            repeated,
            generic=generic,
        )
        locked = await explain(db, results.LOCK, ids, generic=generic)
    assert "recipient_pkey" in plan.indexes & locked.indexes
    assert_touches(plan, 2 * BATCH, 20 * BATCH)
    assert_touches(locked, BATCH, 3 * BATCH)


@generic_or_not
async def test_giving_back_touches_its_rows(moment: Moment, generic: bool) -> None:
    async with connect(moment.url) as db:
        plan = await explain(db, claims.GIVE_BACK, moment.claimed, 1, 2, generic=generic)
    assert "recipient_pkey" in plan.indexes
    assert_touches(plan, 2 * BATCH, 4 * BATCH)


@generic_or_not
async def test_a_rescue_touches_what_is_in_flight(moment: Moment, generic: bool) -> None:
    async with connect(moment.url) as db:
        plan = await explain(db, claims.RESCUE, 1, TOKEN, 3, 0, claims.RESCUE_PAGE, generic=generic)
    assert "recipient_in_flight" in plan.indexes
    assert_touches(plan, 2 * 1000, 2 * 1000)


@generic_or_not
async def test_a_sweep_touches_what_is_in_flight(moment: Moment, generic: bool) -> None:
    in_hand = moment.claimed[::2]
    async with connect(moment.url) as db:
        plan = await explain(db, claims.SWEEP, 1, 2, in_hand, 30.0, 10.0, generic=generic)
    assert "recipient_in_flight" in plan.indexes
    assert_touches(plan, 2 * 1000, 2 * 1000)


@generic_or_not
async def test_figures_touch_what_is_in_flight(moment: Moment, generic: bool) -> None:
    async with connect(moment.url) as db:
        plan = await explain(db, figures.IN_FLIGHT, generic=generic)
    assert_touches(plan, 1000, 200)
