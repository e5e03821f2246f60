"""Settling what is not known, on a person's word."""

from engine.commands.act import Acts, Refused
from engine.control import reconcile
from engine.domain.snapshot import ReconcilePreview

DECISIONS = ("resend", "assume_sent")


class ReconcileCommands(Acts):
    """reconcile, with or without --dry-run."""

    async def reconcile(
        self, campaign: str | None = None, *, policy: str | None = None, dry_run: bool = True
    ) -> ReconcilePreview:
        """Apply each campaign's policy to unknown rows whose window has passed, or only say what would happen.

        `policy`: resend or assume_sent for the rows of one campaign, this once, whatever its own policy is.
        """
        if policy is not None and policy not in DECISIONS:
            raise Refused(f"{policy!r} is no decision about unknown rows: one of {', '.join(DECISIONS)}.")
        if policy is not None and campaign is None:
            raise Refused("A decision about unknown rows is for one campaign: name it with --campaign.")
        if not dry_run:
            self._must_be_allowed()
        try:
            return await reconcile.run(
                self._pool,
                reconcile.Limits(self._unknown_floor, self._request_deadline),
                campaign=campaign,
                policy=policy,
                dry_run=dry_run,
                author=self._author,
                origin=self._origin,
                journalled=self.journalled.append,
            )
        except reconcile.UnknownCampaignError:
            raise Refused(
                f"There is no campaign {campaign}: `tidegate campaign list` shows those that exist."
            ) from None
