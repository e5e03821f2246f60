"""The moments of the sends are kept once, and prove the ceiling."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from engine.clock import now
from engine.postgres import audit, send_log
from engine.postgres.pool import Pool
from engine.postgres.send_log import Stamps
from engine.sending.database_clock import DatabaseClock

BATCH = Stamps(
    number_id=1,
    epoch=7,
    lane="c",
    rate=64.0,
    limit=80.0,
    base_mono_us=5_000_000,
    base_db=datetime(2026, 3, 2, 12, tzinfo=UTC),
    err_us=120,
    us=(0, 15_000, 31_250),
)


async def kept(pool: Pool) -> list[Stamps]:
    async with audit.snapshot(pool) as db:
        return [
            Stamps(
                b.number_id, b.epoch, "c" if b.campaign else "v", b.rate, b.limit, b.base_mono_us, b.base_db,
                b.err_us, b.us,
            )
            async for b in audit.sends(db)
        ]  # fmt: skip


async def test_stamps_come_back_as_they_were(pool: Pool) -> None:
    later = replace(BATCH, base_mono_us=6_000_000, rate=12.5, us=(0,))
    talk = replace(BATCH, lane="v", base_mono_us=7_000_000)
    await send_log.append(pool, [BATCH, later, talk])
    assert await kept(pool) == [BATCH, later, talk]


async def test_a_batch_that_is_offered_again_is_kept_once(pool: Pool) -> None:
    others = [
        replace(BATCH, epoch=8),
        replace(BATCH, number_id=2),
        replace(BATCH, lane="v"),
        replace(BATCH, base_mono_us=5_000_001),
    ]
    await send_log.append(pool, [BATCH])
    await send_log.append(pool, [BATCH, *others])
    await send_log.append(pool, [*others, BATCH])
    assert len(await kept(pool)) == 5


async def test_nothing_to_keep_is_no_fault(pool: Pool) -> None:
    await send_log.append(pool, [])
    assert await kept(pool) == []


async def test_the_loop_s_moments_are_placed_on_the_database_s_clock(pool: Pool) -> None:
    clock = DatabaseClock()
    assert clock.at(0.0)[1] == 2**31 - 1  # nothing is known yet
    await clock.sample(pool)
    before = now()
    moment, error_us = clock.at(asyncio.get_running_loop().time())
    assert 0 < error_us < 2**31 - 1
    assert abs((moment - before).total_seconds()) < 1.0 + error_us / 1e6
