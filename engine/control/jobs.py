"""Standing jobs: done by one node for all, under a lease of their own. Each may also run twice at once and any number
of times: what it changes is guarded in the statement that changes it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

import structlog

from engine.control import opening, reconcile, stops
from engine.control.follower import Follower
from engine.control.reaching import LOOK, Reach
from engine.control.reconcile import Limits
from engine.domain.settling import EVERY_S
from engine.postgres import books, breakers, campaigns, expiry, nodes, provider, reach, webhooks
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.partitions import ensure_partitions
from engine.postgres.pool import Pool

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Job:
    """Something done every so many seconds."""

    name: str
    seconds: float
    do: Callable[[], Awaitable[object]]


TURN = 3.0
"""A job's lease, in rounds of the job, and at least this many seconds: a dead node's jobs are taken over then."""


def standing_jobs(db: Pool, limits: Limits, follower: Follower) -> list[Job]:
    """Fold the books, end what is finished, settle what is not known, follow stops, keep tables in shape."""
    return [
        Job("fold books", 1.0, lambda: books.fold(db)),
        Job("finish campaigns", 0.5, lambda: _finish(db)),
        Job("follow stops", 0.5, lambda: stops.follow(db, follower.desired)),
        Job("start scheduled", 1.0, lambda: opening.start_due(db)),
        Job("follow clocks", 1.0, lambda: opening.follow_clocks(db)),
        Job("judge canaries", 1.0, lambda: opening.judge_canaries(db)),
        Job("follow control phones", 0.5, lambda: opening.follow_controls(db)),
        Job("guard reach", LOOK, Reach(db).guard),
        Job("pass waits", 1.0, lambda: _pass_waits(db)),
        Job("reconcile", EVERY_S, lambda: reconcile.run(db, limits, dry_run=False)),
        Job("expire", 1.0, lambda: expiry.expire(db)),
        Job("sweep cancelled", 5.0, lambda: campaigns.sweep_cancelled(db)),
        Job("make partitions", 3600.0, lambda: ensure_partitions(db)),
        Job("trim inbox", 3600.0, lambda: webhooks.trim(db)),
        Job("forget webhooks seen", 3600.0, lambda: provider.forget_old(db)),
        Job("forget contacts", 3600.0, lambda: reach.forget(db)),
        Job("forget nodes", 3600.0, lambda: nodes.forget_old(db)),
    ]


async def run(job: Job, db: Pool, node: UUID) -> None:
    """Do it for ever, when it is this node's turn; a database that is away is waited out."""
    failing = False
    while True:
        try:
            if await nodes.take_job(db, job.name, node, max(TURN, TURN * job.seconds)):
                await job.do()
            failing = False
        except DATABASE_FAULTS as error:
            if not failing:
                log.warning("job waits for the database", job=job.name, error=type(error).__name__)
            failing = True
        await asyncio.sleep(job.seconds)


async def _pass_waits(db: Pool) -> None:
    async with db.acquire() as connection, connection.transaction():
        for passed in await breakers.close_passed(connection):
            log.info("a wait is over", scope=passed.scope.value, key=passed.key)


async def _finish(db: Pool) -> None:
    for name in await books.complete(db):
        log.info("campaign finished", campaign=name)
