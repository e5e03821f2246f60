"""Every operator action, once: the CLI, the console and the engine itself all come through here.

    done = await Commands(pool, author="ana@10.1.2.3", origin="cli").pause_number("106540352242922", "quality")
    done.text      # "Number 106540352242922 is paused."

An act is one transaction: it changes the rows, is journalled, and raises control.version, so that every engine
sees it within half a second. What is not allowed raises Refused, whose text is one sentence for a person; a
refusal is journalled too. Doing what is done already is no error: `Done.already`.
"""

from engine.commands.account import AccountCommands
from engine.commands.act import Done, Refused
from engine.commands.alert import AlertCommands
from engine.commands.campaign import CampaignCommands
from engine.commands.everything import EverythingCommands
from engine.commands.hold import HoldCommands
from engine.commands.number import NumberCommands
from engine.commands.preview import PreviewCommands
from engine.commands.reconcile import ReconcileCommands
from engine.commands.report import ReportCommands
from engine.commands.row import RowCommands
from engine.commands.steering import SteeringCommands
from engine.commands.suppression import SuppressionCommands
from engine.domain import act as acts

__all__ = ["Commands", "Done", "Refused"]


class Commands(
    AccountCommands,
    NumberCommands,
    AlertCommands,
    CampaignCommands,
    EverythingCommands,
    HoldCommands,
    PreviewCommands,
    ReconcileCommands,
    ReportCommands,
    RowCommands,
    SteeringCommands,
    SuppressionCommands,
):
    """All acts of one author from one origin (cli, console, engine)."""

    async def carry_out(self, act: acts.Act) -> Done:
        """Do what an act of a screen says. Raises Refused, also for acts that are the engine's own affair."""
        self._must_be_allowed()
        match act:
            case acts.PauseNumber(number, reason):
                return await self.pause_number(number, reason)
            case acts.ResumeNumber(number, reason):
                return await self.resume_number(number, reason)
            case acts.SetRate(number, rate):
                return await self.set_rate(number, rate)
            case acts.PauseAll(reason):
                return await self.pause_all(reason)
            case acts.ResumeAll():
                return await self.resume_all()
            case acts.StartCampaign(campaign):
                return await self.start_campaign(campaign)
            case acts.PauseCampaign(campaign, reason):
                return await self.pause_campaign(campaign, reason)
            case acts.ResumeCampaign(campaign):
                return await self.resume_campaign(campaign)
            case acts.CancelCampaign(campaign, reason):
                return await self.cancel_campaign(campaign, reason)
            case acts.RetryFailed(campaign, reason):
                retried = await self.retry_failed(campaign, reason=reason)
                return Done(retried.text, already=not retried.retried, warnings=retried.warnings)
            case acts.LiftHold(hold, _, reason):
                return await self.lift_hold(hold, reason)
        raise Refused(f"{type(act).__name__} is carried out by the engine, not through the database.")
