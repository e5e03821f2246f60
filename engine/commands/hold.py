"""Breakers as a person sees them: what is stopped, why, and lifting it."""

from engine.commands.act import Acts, Done, Refused
from engine.postgres import breakers
from engine.postgres.breakers import Breaker


class HoldCommands(Acts):
    """hold list, lift."""

    async def list_holds(self) -> list[Breaker]:
        """All that stops something right now, oldest first."""
        return await breakers.open_breakers(self._pool)

    async def lift_hold(self, breaker_id: int, reason: str | None = None) -> Done:
        """Close a breaker: only requests that leave from now on can trip it again. Campaigns that it held go on."""
        self._must_be_allowed()
        async with self._pool.acquire() as db, db.transaction():
            lifted = await breakers.lift(
                db,
                breaker_id,
                self._author,
                reason,
                origin=self._origin,
                journalled=self.journalled.append,
            )
            if lifted is not None:
                return Done(
                    f"Hold {breaker_id} ({target(lifted)}) is lifted.", before=lifted.state, after="closed"
                )
            known = await breakers.find(db, breaker_id)
        if known is None:
            raise Refused(f"There is no hold {breaker_id}: `tidegate hold list` shows them.")
        return Done(f"Hold {breaker_id} ({target(known)}) is lifted already.", already=True)


def target(one: Breaker) -> str:
    """What it stops, in two words: `account 102290129340398`."""
    return f"{one.scope.value} {one.key}"
