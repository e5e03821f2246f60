"""pause-all and resume-all: every number at once, and back to exactly what was going before."""

from engine.commands.act import Acts, Done
from engine.postgres import numbers


class EverythingCommands(Acts):
    """Numbers are stopped, not campaigns: a campaign that is started meanwhile does not send either."""

    async def pause_all(self, reason: str | None = None) -> Done:
        """Stop every number that is going."""
        async with self._act("pause all", "all", reason) as (db, entry):
            stopped = await numbers.pause_all(db, self._author, reason)
            entry.after = f"{len(stopped)} stopped"
            if not stopped:
                entry.result = "already"
        if not stopped:
            return Done("Every number is paused already.", already=True)
        return Done(f"{_count(len(stopped))} paused: resume-all lifts exactly this.", after=entry.after)

    async def resume_all(self) -> Done:
        """Lift what pause_all stopped, and nothing else."""
        async with self._act("resume all", "all") as (db, entry):
            lifted = await numbers.resume_all(db)
            entry.after = f"{len(lifted)} resumed"
            if not lifted:
                entry.result = "already"
        if not lifted:
            return Done("Nothing is stopped by pause-all.", already=True)
        return Done(f"{_count(len(lifted))} resumed.", after=entry.after)


def _count(n: int) -> str:
    return f"{n} number is" if n == 1 else f"{n} numbers are"
