"""Settling what is not known, on a person's word."""

from engine.commands.act import Acts, Refused
from engine.control import reconcile
from engine.domain.snapshot import ReconcilePreview


class ReconcileCommands(Acts):
    """reconcile, with or without --dry-run."""

    async def reconcile(self, campaign: str | None = None, *, dry_run: bool = True) -> ReconcilePreview:
        """Apply each campaign's policy to unknown rows whose window has passed, or only say what would happen."""
        try:
            return await reconcile.run(
                self._pool,
                reconcile.Limits(self._unknown_floor, self._request_deadline),
                campaign=campaign,
                dry_run=dry_run,
                author=self._author,
                origin=self._origin,
            )
        except reconcile.UnknownCampaignError:
            raise Refused(
                f"There is no campaign {campaign}: `tidegate campaign list` shows those that exist."
            ) from None
