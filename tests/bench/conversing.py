"""What a campaign at full rate adds to a conversation that goes through the same number.

A client posts the same message to the gateway and straight to the simulator, in turn, in one run. What an answer
through the gateway took beyond the median of the straight ones was added by the engine: its own work, the wait for
a place within the number's limit, and whatever else the machine had to do. The campaign is then paused, and the
client goes on: that is what the gateway costs by itself.
"""

import asyncio
import json
from collections.abc import Sequence

from engine.commands import Commands
from tests.bench.results import Goal, Row, Section
from tests.bench.sends import IDS, RAMP_S, Load, Sending, sending
from tests.bench.usage import quantile
from tests.bench.world import ROOT, World, module
from tests.support.simulator import TOKEN

ELSEWHERE = "106540352249999"
"""A number of nobody's, for the messages that go straight to the simulator."""

LOADS = (Load(1, 64.0, 80.0), Load(1, 80.0, 80.0), Load(1, 800.0, 1000.0))
"""A number as it is by default, one without headroom, and an upgraded one."""

TALKS_S, IDLE_S = 20.0, 8.0
RATE = 8.0
"""Conversational messages/s each way."""

MOST_MS = 100.0


SETTLES_S = 3.0
"""From the pause of the campaign until its last answers and statuses are in."""

ADDED = (
    "**Conversations.** A client posts through the gateway and straight to the simulator in turn, "
    f"{RATE:.0f} messages/s each way at moments of chance. Added is what an answer through the gateway took beyond the "
    "median of the straight ones of the same run: the engine's work, the wait for a place within the number's limit, "
    "and whatever the machine had to do besides, which also shows in the p99 of the straight ones."
)


async def measure(world: World) -> Section:
    """Each load in turn; a goal of its own for each."""
    rows, goals = [], []
    for load in LOADS:
        async with sending(world, load, gateway_token=TOKEN) as at_work:
            await asyncio.sleep(RAMP_S)
            before = await at_work.simulator.totals()
            added, straight = await _talk(world, at_work, TALKS_S)
            after = await at_work.simulator.totals()
            await Commands(at_work.pool, author="bench", origin="bench").pause_campaign("reminder")
            await asyncio.sleep(SETTLES_S)
            alone, _ = await _talk(world, at_work, IDLE_S)
        accepted = after["accepted"] - before["accepted"] - len(added) - len(straight)
        beside = (
            f"about {accepted / TALKS_S:,.0f} campaign sends/s; "
            f"straight to the simulator {_ms(straight, 0.99) - _ms(straight, 0.5):.1f} ms over the median at p99"
        )
        name = f"Added to a conversation, {load.rate:,.0f} of {load.limit:,.0f}/s for campaigns"
        rows += [_row(f"{name}, all used", added, beside), _row(f"{name}, campaign paused", alone)]
        p99 = _ms(added, 0.99)
        full = f"a campaign at {load.rate:,.0f} of {load.limit:,.0f}/s"
        what = f"{full} adds less than {MOST_MS:.0f} ms to a conversation (p99)"
        goals.append(Goal(what, f"{p99:.1f} ms", p99 < MOST_MS))
    return Section(rows, goals, [ADDED])


async def _talk(world: World, at_work: Sending, seconds: float) -> tuple[list[float], list[float]]:
    """Seconds that the engine added to each message, and that the straight ones took."""
    path = f"/v25.0/{IDS[0]}/messages"
    gateway = f"http://127.0.0.1:{at_work.port}{path}"
    straight = f"{at_work.simulator.url}/{ELSEWHERE}/messages"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *module("talker", str(seconds), str(RATE), gateway, straight),
        cwd=ROOT,
        env=world.environment(at_work.url),
        stdout=pipe,
        stderr=pipe,
    )
    out, err = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"The client of the gateway failed: {err.decode()[-1500:]}")
    through, around = json.loads(out)
    usual = quantile(around, 0.5)
    return [took - usual for took in through], around


def _row(what: str, added: Sequence[float], beside: str = "") -> Row:
    note = f"p95 {_ms(added, 0.95):.1f} ms of {len(added)} messages"
    return Row(what, p50=_ms(added, 0.5), p99=_ms(added, 0.99), note="; ".join(filter(None, (note, beside))))


def _ms(seconds: Sequence[float], share: float) -> float:
    return 1000 * quantile(list(seconds), share)
