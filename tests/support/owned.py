"""Numbers under a lease, and the proof that books and counters say what the rows say."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from engine.control import audit
from engine.domain.recipient import State
from engine.postgres import books, claims, leases
from engine.postgres.claims import Ask, Claimed, LaneMark, Permission
from engine.postgres.pool import Executor, Pool
from engine.postgres.results import Fact
from tests.support import builders
from tests.support.builders import MadeCampaign

NUMBER = "106540352242922"
HEAD = datetime(1970, 1, 1, tzinfo=UTC)
THEN = datetime(2026, 3, 2, 12, tzinfo=UTC)

OUT_OF_LEASE = "UPDATE lease SET expires_at = clock_timestamp() - interval '1 ms' WHERE number_id = $1"
AGE = "UPDATE recipient SET moved_at = moved_at - $2::interval WHERE id = ANY($1)"
ROW = """
SELECT id, state, tries, attempts, code, next_attempt_at, in_flight, number_id, epoch, resend
  FROM recipient WHERE id = $1
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it stands."""

    id: int
    state: State
    tries: int
    attempts: int
    code: int | None
    next_attempt_at: datetime | None
    in_flight: int | None
    number_id: int | None
    epoch: int | None
    resend: bool


async def lease(
    db: Executor, number_id: int, *, seconds: float = 60, instead_of: leases.LeaseRow | None = None
) -> Permission | None:
    """Take the number's lease for a new owner."""
    token = uuid4()
    epoch = await leases.take(
        db, number_id, owner=uuid4(), node="n", token=token, seconds=seconds, advertise=None, instead_of=instead_of
    )  # fmt: skip
    return None if epoch is None else Permission(number_id, token, epoch)


async def owned(db: Executor, id_: str = NUMBER) -> Permission:
    """A new number under a lease."""
    permission = await lease(db, await builders.number(db, id_))
    assert permission is not None
    return permission


async def taken_over(db: Executor, old: Permission) -> Permission:
    """The number changes hands."""
    row = (await leases.read(db))[old.number_id]
    new = await lease(db, old.number_id, instead_of=row)
    assert new is not None
    return new


async def running(db: Executor, name: str = "reminder", *, number: str = NUMBER) -> MadeCampaign:
    return await builders.campaign(db, name, numbers=[number], state="running")


def head(*lanes: int) -> list[LaneMark]:
    """Lanes to be claimed from their beginning."""
    return [LaneMark(lane, HEAD, 0) for lane in lanes]


async def claim(db: Executor, permission: Permission, made: MadeCampaign, room: int = 1000) -> list[Claimed]:
    rows, _ = await claims.claim(db, permission, head(made.lane_id), room)
    return rows


async def mark(db: Executor, permission: Permission, rows: list[Claimed]) -> dict[int, str]:
    """The verdicts by row."""
    verdicts = await claims.mark(db, [Ask(r.id, permission, r.tries + 1, r.phone) for r in rows])
    return {id_: verdict for (id_, _), verdict in verdicts.items()}


async def sending(db: Executor, permission: Permission, made: MadeCampaign, n: int = 1) -> list[int]:
    """`n` new rows whose request has left."""
    await builders.recipients(db, made, n)
    rows = await claim(db, permission, made, n)
    assert set((await mark(db, permission, rows)).values()) <= {"ok"}
    return [row.id for row in rows]


async def row(db: Executor, id_: int) -> Row:
    found = await db.fetchrow(ROW, id_)
    assert found is not None
    values = dict(found.items()) | {"state": State(found["state"].decode())}
    return Row(**values)


async def states(db: Executor, ids: list[int]) -> list[str]:
    return [(await row(db, id_)).state.word for id_ in ids]


async def age(db: Executor, ids: list[int], seconds: float) -> None:
    """As if the rows had moved so many seconds earlier."""
    await db.execute(AGE, ids, timedelta(seconds=seconds))


def fact(
    id_: int,
    n: int,
    outcome: str,
    permission: Permission,
    *,
    wanted: State | None = None,
    code: int | None = None,
    spent: int | None = None,
) -> Fact:
    """What `engine.domain.outcome` would make of an answer; `wanted`: where a refusal leads."""
    usual = {"accepted": State.SENT, "unknown": State.UNKNOWN}
    state = wanted or usual.get(outcome, State.PENDING)
    about_the_message = outcome == "accepted" or (outcome == "refused" and state is State.FAILED)
    return Fact(
        id_, n, permission.number_id, permission.epoch, THEN, THEN, outcome, code,
        f"wamid.{id_}.{n}" if outcome == "accepted" else None, None, state.value,
        THEN if state is State.PENDING else None, int(about_the_message) if spent is None else spent,
    )  # fmt: skip


async def assert_books(pool: Pool) -> None:
    """A recount of the rows equals books and counters: the audit's own second invariant."""
    found = await audit.run(pool)
    for check in found.checks:
        if check.invariant == 2:
            assert check.holds, (check.name, check.offenders)


async def tallies(db: Executor, made: MadeCampaign) -> books.Tallies:
    return (await books.tallies(db)).get(made.campaign_id, books.Tallies())


async def counted(db: Executor, made: MadeCampaign) -> dict[str, int]:
    """Rows by state, by the books."""
    balance = (await books.balances(db))[made.campaign_id]
    return {state.word: n for state, n in balance.items() if n}
