"""Which other nodes died with numbers in their hands: the living tell of the dead, who cannot."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from engine.clock import boottime
from engine.domain.merge import DEAD_AFTER
from engine.domain.snapshot import NodeView
from engine.postgres import nodes
from engine.postgres.desired import Number
from engine.postgres.leases import LeaseRow
from engine.postgres.pool import Executor


class Peers:
    """The other owners of numbers, as one node sees them."""

    def __init__(self, me: UUID) -> None:
        self.lost: tuple[NodeView, ...] = ()
        """Silent for DEAD_AFTER seconds, with what they still hold."""
        self._me = me
        self._sees_since: float | None = None

    def blind(self) -> None:
        """The database did not answer. Nobody could give a sign meanwhile, so nobody's silence counts."""
        self._sees_since, self.lost = None, ()

    async def look(self, db: Executor, leases: Mapping[int, LeaseRow], numbers: Mapping[int, Number]) -> None:
        """Once more. Raises what the database raises."""
        now = boottime()
        self._sees_since = now if self._sees_since is None else self._sees_since
        held: dict[UUID, list[str]] = {}
        for number_id, row in leases.items():
            if row.owner != self._me and not row.released and number_id in numbers:
                held.setdefault(row.owner, []).append(numbers[number_id].id)
        silent = await nodes.silent(db, held, DEAD_AFTER) if held else {}
        if now - self._sees_since >= DEAD_AFTER:
            self.lost = tuple(replace(node, numbers=tuple(sorted(held[key]))) for key, node in silent.items())
