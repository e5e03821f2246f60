"""The hot statements at a million rows, through the functions that the engine calls, one caller, one connection.

Twice: with all rows pending, and in the middle of a drain, when hundreds of thousands of dead entries lie at the
head of the index and no vacuum has come by.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from engine.domain.evidence import Evidence, fold
from engine.domain.message import Token
from engine.domain.receipts import Receipt
from engine.domain.recipient import State
from engine.postgres import claims, leases, results, statuses, webhooks
from engine.postgres.claims import Ask, Claimed, LaneMark, Permission
from engine.postgres.pool import Connection, Pool, connect
from engine.postgres.results import Fact
from tests.bench import plans
from tests.bench.results import Goal, Row, Section
from tests.bench.usage import quantile
from tests.bench.world import World
from tests.support import builders

ROWS = 1_000_000
DRAINED = 400_000
NUMBER = "106540352242922"
HEAD = datetime(1970, 1, 1, tzinfo=UTC)
LEASE_S = 3600.0

CALLER = (
    "**Statements.** Rows/s are those of one caller who waits for each commit. A claim from the head again runs over "
    f"{DRAINED:,} dead index entries with autovacuum off: the worst case."
)

# What a drain leaves behind, in one statement: dead versions of rows and of their index entries.
DRAIN = """
UPDATE recipient SET state = 't', tries = 1, number_id = 1, epoch = 1, next_attempt_at = NULL, moved_at = now()
 WHERE id IN (SELECT id FROM recipient WHERE next_attempt_at IS NOT NULL ORDER BY next_attempt_at, id LIMIT $1)
"""


@dataclass(slots=True)
class Sample:
    """Times of one statement; `rows` in all."""

    rows: int = 0
    seconds: list[float] = field(default_factory=list)

    def ms(self, share: float) -> float:
        """A percentile in milliseconds."""
        return 1000 * quantile(self.seconds, share)

    def row(self, what: str, note: str = "") -> Row:
        """For the table: rows/s as fast as one caller gets them."""
        return Row(what, self.rows / sum(self.seconds), None, self.ms(0.5), self.ms(0.99), note)


@dataclass(slots=True)
class Bench:
    """A million rows, and the lease under which they are worked."""

    db: Connection
    pool: Pool
    permission: Permission
    lane: int
    campaign: str
    mark: LaneMark

    async def claim(self, room: int) -> list[Claimed]:
        """The next ready rows, as the claimer asks for them."""
        claimed, marks = await claims.claim(self.db, self.permission, [self.mark], room)
        self.mark = marks[-1] if marks else self.mark
        return claimed

    def ask(self, row: Claimed) -> Ask:
        """To mark a claimed row for its first try."""
        return Ask(row.id, self.permission, 1)

    def fact(self, row: Claimed) -> Fact:
        """That its first try was accepted."""
        now, lease = datetime.now(UTC), self.permission
        return Fact(
            row.id, 1, lease.number_id, lease.epoch, now - timedelta(seconds=0.25), now, "accepted", None,
            f"wamid.HBgNNTUxMTkxMjM0NTY3OBUCABEYEj{row.id:020}", None, State.SENT.value, None, 1,
        )  # fmt: skip

    def evidence(self, rows: Sequence[Claimed]) -> list[Evidence]:
        """That they were delivered, as the applier has it from a body."""
        at = time.time()
        tokens = [Token(self.campaign, row.id, 1) for row in rows]
        return fold([Receipt(State.DELIVERED, f"wamid.{t.row}", t, NUMBER, at) for t in tokens])


async def measure(world: World) -> Section:
    """Everything at 1 M pending, then the claim and the plans again in mid-drain."""
    async with world.database() as (url, pool), connect(url, command_timeout=None) as db:
        bench = await _prepare(pool, db)
        full = await plans.check(bench)
        claim, rows = await _statements(bench)
        await pool.execute("ALTER TABLE recipient SET (autovacuum_enabled = off)")
        await pool.execute(DRAIN, DRAINED)
        rows += await _mid_drain(bench)
        drained = await plans.check(bench)
    rows += [one.row("1 M pending") for one in full] + [one.row("in mid-drain") for one in drained]
    slow = 1000 * quantile(claim.seconds, 0.99)
    whole = {table for one in (*full, *drained) for table in one.read_whole}
    goals = [
        Goal("claim of 100 rows at 1 M pending: p99 below 20 ms", f"{slow:.1f} ms", slow < 20),
        Goal(
            "no hot statement reads a large table from end to end", " ".join(whole) or "none does", not whole
        ),
    ]
    return Section(rows, goals, [CALLER])


async def _prepare(pool: Pool, db: Connection) -> Bench:
    number = await builders.number(pool, NUMBER, rate=1000, limit=1250)
    made = await builders.campaign(pool, numbers=[NUMBER], state="running", body=["name"])
    await builders.recipients(pool, made, ROWS)
    await pool.execute("VACUUM ANALYZE")
    await pool.execute("CHECKPOINT")
    token = uuid4()
    epoch = await leases.take(
        db, number, owner=uuid4(), node="bench", token=token, seconds=LEASE_S, advertise=None, instead_of=None
    )
    assert epoch is not None
    campaign = await pool.fetchval("SELECT random_id FROM campaign")
    permission = Permission(number, token, epoch)
    return Bench(db, pool, permission, made.lane_id, campaign, LaneMark(made.lane_id, HEAD, 0))


async def _statements(bench: Bench) -> tuple[Sample, list[Row]]:
    """The claim of 100, and the rows of the table."""
    hundred, taken = await _claims(bench, 100, 400)
    quarter, more = await _claims(bench, 250, 100)
    taken += more
    few, many = taken[: 12 * 400], taken[12 * 400 : 12 * 400 + 100 * 200]
    rows = [
        hundred.row("Claim of 100 rows, 1 M pending"),
        quarter.row("Claim of 250 rows, 1 M pending", "a quarter of a second at 1,000/s"),
    ]
    for size, part, note in ((12, few, "one flush of the marker at 1,000/s"), (100, many, "")):
        sample = await _each(part, size, lambda batch: _mark(bench, batch))
        rows.append(sample.row(f"Mark of {size} rows", note))
    sizes = ((40, few, "one flush of the writer at 1,000/s"), (500, many, "the largest"))
    for size, part, note in sizes:
        sample = await _each(
            part, size, lambda batch: results.apply(bench.db, [bench.fact(row) for row in batch])
        )
        rows.append(sample.row(f"Result of {size} rows", note))
    for size, part in ((100, few), (700, many)):
        sample = await _each(part, size, lambda batch: _statuses(bench, batch))
        rows.append(
            sample.row(
                f"Statuses of {size} rows", "in a transaction without a wait for the disk, as the applier"
            )
        )
    return hundred, rows


async def _mid_drain(bench: Bench) -> list[Row]:
    behind = f"{DRAINED:,} rows done before it and not vacuumed"
    await bench.claim(100)  # from where we were, over all that is done
    forward, _ = await _claims(bench, 100, 200)
    at = bench.mark
    bench.mark = LaneMark(bench.lane, HEAD, 0)
    started = time.perf_counter()
    await bench.claim(100)
    rescan = 1000 * (time.perf_counter() - started)
    bench.mark = max(at, bench.mark, key=lambda mark: (mark.at, mark.id))
    return [
        forward.row("Claim of 100 rows, in mid-drain", behind),
        Row(
            "Claim of 100 rows from the head again, in mid-drain",
            p50=rescan,
            note="once; the claimer does it every 30 s",
        ),
    ]


async def _claims(bench: Bench, room: int, times: int) -> tuple[Sample, list[Claimed]]:
    sample, taken = Sample(), []
    for _ in range(times):
        started = time.perf_counter()
        claimed = await bench.claim(room)
        sample.seconds.append(time.perf_counter() - started)
        sample.rows += len(claimed)
        taken += claimed
    return sample, taken


async def _each(
    rows: Sequence[Claimed], size: int, do: Callable[[Sequence[Claimed]], Awaitable[object]]
) -> Sample:
    sample = Sample()
    for start in range(0, len(rows) - size + 1, size):
        batch = rows[start : start + size]
        started = time.perf_counter()
        await do(batch)
        sample.seconds.append(time.perf_counter() - started)
        sample.rows += size
    return sample


async def _mark(bench: Bench, batch: Sequence[Claimed]) -> None:
    verdicts = await claims.mark(bench.db, [bench.ask(row) for row in batch])
    assert set(verdicts.values()) == {"ok"}, verdicts


async def _statuses(bench: Bench, batch: Sequence[Claimed]) -> None:
    evidence = bench.evidence(batch)
    async with bench.db.transaction():
        await bench.db.execute(webhooks.LAZY_COMMIT)
        applied, rest = await statuses.apply(bench.db, evidence)
    assert not rest, f"{len(rest)} statuses found no row"
    assert sum(move.count for move in applied.moves) == len(batch), applied.moves
