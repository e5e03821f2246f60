"""When rows may go out: starts at their time, quiet hours by the clocks of zones, control phones and a canary before
their audience."""

import structlog

from engine.domain.canary import why_not
from engine.domain.quiet import is_quiet, next_change
from engine.postgres import canaries, controls, schedules
from engine.postgres.canaries import Watched
from engine.postgres.pool import Pool
from engine.postgres.schedules import Clock, ClockedLane

CONTROL_MOST_S = 60.0
"""Seconds that an audience waits for its control phones to have had their turn; what keeps them is told by itself."""

log = structlog.get_logger()


async def start_due(pool: Pool) -> None:
    """Start what is due; what is overdue waits for a person."""
    for started in await schedules.start_due(pool):
        if started.why_held is None:
            log.info("campaign started", campaign=started.name)
        else:
            log.error("campaign not started", campaign=started.name, reason=started.why_held)


async def follow_clocks(pool: Pool) -> int:
    """Close lanes whose quiet hours have begun, open those whose have ended; how many changed.

    An open lane is told ahead when it closes, so that the mark refuses from that moment on by itself.
    """
    clocks = [_clock(lane) for lane in await schedules.clocked_lanes(pool)]
    if not clocks:
        return 0
    async with pool.acquire() as db, db.transaction():
        return await schedules.set_clocks(db, clocks)


def _clock(lane: ClockedLane) -> Clock:
    if is_quiet(lane.quiet, lane.zones, lane.now):
        return Clock(lane.lane_id, True, None)
    return Clock(lane.lane_id, False, next_change(lane.quiet, lane.zones, lane.now))


async def judge_canaries(pool: Pool) -> None:
    """Open the rest of an audience whose first rows did well, hold the campaign when they did not."""
    for one in await canaries.watched(pool):
        if one.canary == "failed":  # and yet it runs: a person has looked and let it go on
            await _resolve(pool, one, None)
            continue
        sent = await canaries.stands(pool, one)
        if sent.open:
            continue
        why = why_not(sent, one.max_failed)
        await _resolve(pool, one, f"its canary: {why}" if why else None)


async def follow_controls(pool: Pool) -> None:
    """Send the rounds of control phones that are due, and let audiences follow their first."""
    for campaign_id in await controls.due(pool):
        async with pool.acquire() as db, db.transaction():
            added = await controls.add_round(db, campaign_id)
        if added is not None:
            log.info("control phones get the message", campaign=added[0], round=added[1])
    for name in await controls.follow(pool, CONTROL_MOST_S):
        log.info("the audience follows its control phones", campaign=name)


async def _resolve(pool: Pool, one: Watched, why: str | None) -> None:
    async with pool.acquire() as db, db.transaction():
        done = await canaries.resolve(db, one, why)
    if done and why is not None:
        log.error("campaign held", campaign=one.name, reason=why)
    elif done:
        log.info("the rest of the audience follows its canary", campaign=one.name)
