"""What the server does for the hot statements at this size: by which index, under the plan for any arguments too."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from engine.postgres import claims, results, statuses
from engine.postgres.pool import Connection, Executor
from tests.bench.results import Row
from tests.support.explain import Plan, explain

if TYPE_CHECKING:
    from tests.bench.statements import Bench

BIG = {"recipient", "recipient_data", "try"}
SIZE = 100


@dataclass(slots=True)
class Checked:
    """The plans of one function's statements: for their arguments, and for any."""

    what: str
    own: list[Plan] = field(default_factory=list)
    generic: list[Plan] = field(default_factory=list)

    @property
    def read_whole(self) -> set[str]:
        """The large tables that were read from end to end."""
        return {table for plan in (*self.own, *self.generic) for table in plan.scanned_whole} & BIG

    def row(self, when: str) -> Row:
        """For the table: the indexes, and the pages touched."""
        used = " ".join(sorted({index for plan in self.generic for index in plan.indexes})) or "no index"
        own, generic = (sum(plan.buffers for plan in plans) for plans in (self.own, self.generic))
        scans = f"; READS ALL OF {' '.join(sorted(self.read_whole))}" if self.read_whole else ""
        note = f"{used}; {own:,} pages, {generic:,} with the generic plan{scans}"
        return Row(f"Plan of {self.what}, {SIZE} rows, {when}", note=note)


class _Spy:
    """A connection that explains each statement, with the arguments it was given, before it runs it."""

    def __init__(self, db: Connection, into: Checked) -> None:
        self._db, self._into = db, into
        self._setting: str | None = None

    async def execute(self, sql: str, *arguments: object) -> str:
        if sql.startswith("SET LOCAL"):  # outside a transaction it would do nothing
            self._setting = sql
            return "SET"
        await self._explain(sql, arguments)
        return await self._db.execute(sql, *arguments)

    async def fetch(self, sql: str, *arguments: object) -> Any:
        await self._explain(sql, arguments)
        return await self._db.fetch(sql, *arguments)

    async def fetchval(self, sql: str, *arguments: object) -> Any:
        await self._explain(sql, arguments)
        return await self._db.fetchval(sql, *arguments)

    async def _explain(self, sql: str, arguments: tuple[object, ...]) -> None:
        for generic, plans in ((False, self._into.own), (True, self._into.generic)):
            plans.append(await explain(self._db, sql, *arguments, generic=generic, setting=self._setting))


async def check(bench: "Bench") -> Sequence[Checked]:
    """SIZE rows from the claim to their statuses, each statement explained on the way."""
    checked = [Checked("claim"), Checked("mark"), Checked("result"), Checked("statuses")]
    claim, mark, result, status = (cast(Executor, _Spy(bench.db, into)) for into in checked)
    rows, _ = await claims.claim(claim, bench.permission, [bench.mark], SIZE)
    await claims.mark(mark, [bench.ask(row) for row in rows])
    await results.apply(result, [bench.fact(row) for row in rows])
    await statuses.apply(status, bench.evidence(rows))
    return checked
