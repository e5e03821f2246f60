"""Acts on rows that wait for a person's word."""

from collections.abc import Sequence

from engine.commands.act import Acts, Done, Refused
from engine.domain.count import counted
from engine.postgres import asides, campaigns


class RowCommands(Acts):
    """rows release | discard."""

    async def release_rows(self, campaign: str, ids: Sequence[int] | None = None) -> Done:
        """Other spellings of a number are sent like all rows. None that waits: `Done.already`."""
        return await self._settle("release rows", campaign, ids)

    async def discard_rows(self, campaign: str, ids: Sequence[int] | None = None) -> Done:
        """Other spellings of a number are cancelled, for they are the same person."""
        return await self._settle("discard rows", campaign, ids)

    async def _settle(self, act: str, campaign: str, ids: Sequence[int] | None) -> Done:
        releasing = act == "release rows"
        async with self._act(act, campaign) as (db, entry):
            standing = await campaigns.standing(db, campaign)
            if standing is None:
                raise Refused(
                    f"There is no campaign {campaign}: `tidegate campaign list` shows those that exist."
                )
            if standing.state in ("finished", "cancelled"):
                raise Refused(f"Campaign {campaign} is {standing.state}: nothing of it waits any more.")
            settle = asides.release if releasing else asides.discard
            moved = await settle(db, standing.campaign_id, ids)
            left = await asides.waiting(db, standing.campaign_id)
            entry.before, entry.after = f"{moved + left} aside", f"{left} aside"
            if not moved:
                entry.result = "already"
        if not moved:
            return Done(
                f"No row of campaign {campaign} {'among these ' if ids else ''}is kept aside.", already=True
            )
        word = "released, to be sent like all others" if releasing else "cancelled"
        return Done(
            f"{counted(moved, 'row')} of campaign {campaign} {word}; {left:,} still kept aside.",
            before=entry.before,
            after=entry.after,
        )
