"""Nodes that are killed, stopped, drained and started again, by a seeded chance; and what must be true afterwards."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from engine.control import audit
from engine.domain.recipient import State
from engine.postgres import books
from tests.support.process import Process
from tests.support.world import WINDOW_MS, World, free_port, most_in, try_of

ARRIVAL_JITTER = 0.05
"""Of the rate, and two sends: what may come late to the wire while starting or stopped processes have the machine."""

ROWS = "SELECT id, state FROM recipient"
OPEN = frozenset({State.PENDING, State.CLAIMED, State.SENDING, State.ASSESSING})
ALIVE = "SELECT count(*) FROM node WHERE pid = ANY($1)"


@dataclass
class Fleet:
    """Engines in slots: what runs in a slot always has the same addresses. Webhooks go to the first one."""

    world: World
    chance: random.Random
    lease: str = "5s"
    kills: int = 0
    nodes: list[Process] = field(default_factory=list)
    _ports: list[tuple[int, int]] = field(default_factory=list)

    async def start(self, size: int) -> None:
        for slot in range(size):
            self._ports.append((self.world.port if slot == 0 else free_port(), free_port()))
            self.nodes.append(await self._engine(slot))

    async def _engine(self, slot: int) -> Process:
        port, metrics = self._ports[slot]
        return await self.world.engine(
            *("--node", f"n{slot}", "--grace", "5s", "--metrics-listen", f"127.0.0.1:{metrics}"),
            port=port,
            lease=self.lease,
        )

    def _any(self) -> int:
        return self.chance.randrange(len(self.nodes))

    async def kill_one(self) -> None:
        """kill -9 of one node, and another in its place."""
        slot = self._any()
        self.nodes[slot].kill()
        await self.nodes[slot].ended()
        self.kills += 1
        self.nodes[slot] = await self._engine(slot)

    async def drain_one(self) -> None:
        """SIGTERM of one node, and another in its place."""
        slot = self._any()
        self.nodes[slot].signal(signal.SIGTERM)
        ended = await self.nodes[slot].ended()
        assert ended.code == 143, ended.err[-3000:]
        self.nodes[slot] = await self._engine(slot)

    async def stop_one(self, seconds: float) -> None:
        """SIGSTOP of one node, and SIGCONT after so long."""
        node = self.nodes[self._any()]
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)  # the fault itself: a machine that stands still for so long
        node.signal(signal.SIGCONT)

    async def until_up(self) -> None:
        """Every node has told the database that it lives."""
        pids = [node.pid for node in self.nodes]

        async def up() -> bool:
            return bool(await self.world.db.fetchval(ALIVE, pids) == len(pids))

        await self.world.until(up, "all nodes up")


async def until_settled(w: World, within_s: float) -> None:
    """Nothing is left to send, and whatever the provider took is known to be taken."""

    async def settled() -> bool:
        counts = await w.counts()
        accepted = (await w.sim.totals())["accepted"]
        known = sum(counts[state] for state in (State.SENT, State.DELIVERED, State.READ))
        return not any(counts[state] for state in OPEN) and known >= accepted

    await w.until(settled, "nothing left to send", within_s)


async def judge(w: World, people: int) -> str:
    """The engine's audit and the provider's ledger, compared; a sentence with the figures.

    Every row was taken at most once (but for what is counted as a possible duplicate); every row that was taken is
    known to be; none is lost: what is not sent is unknown, failed or
    cancelled, and never arrived as a message that was taken. By our own
    stamps the windows are exact (the audit), and so they are by the provider's clock for what came in time.
    """
    found = await audit.run(w.db)
    assert found.holds, [(check.text, check.offenders) for check in found.checks if not check.holds]
    rows = {row["id"]: State(row["state"].decode()) for row in await w.db.fetch(ROWS)}
    assert len(rows) == people
    ledger = await w.sim.ledger()
    taken = Counter(try_of(entry)[0] for entry in ledger if entry["accepted"] and entry["token"])
    twice = sum(times - 1 for times in taken.values())
    allowed = sum(tally.possible_duplicates for tally in (await books.tallies(w.db)).values())
    assert twice <= allowed, (
        f"{twice} messages were taken twice, {allowed} are counted as possible duplicates"
    )
    known = {id_ for id_, state in rows.items() if state in (State.SENT, State.DELIVERED, State.READ)}
    assert set(taken) <= known, f"taken, and not known to be: {sorted(set(taken) - known)[:10]}"
    lost = {id_: state for id_, state in rows.items() if id_ not in taken}
    assert set(lost.values()) <= {State.UNKNOWN, State.FAILED, State.CANCELLED}, Counter(lost.values())
    requests = Counter(try_of(entry) for entry in ledger if entry["token"])
    assert set(requests.values()) <= {1}, "a try was requested twice"
    worst = await _windows(w, ledger)
    unknown = sum(state is State.UNKNOWN for state in lost.values())
    return (
        f"{people} people, {len(ledger)} requests, {len(taken)} taken, {twice} twice ({allowed} counted), "
        f"{unknown} unknown, {len(lost) - unknown} failed or cancelled; {worst}"
    )


def granted(rate: float) -> int:
    """The most that a window of the provider's clock may hold."""
    return round(rate * (1 + ARRIVAL_JITTER)) + 2


async def _windows(w: World, ledger: list[dict[str, Any]]) -> str:
    """What came in time keeps to the rate, exactly; what a busy machine, or a process that was stopped with a request
    on its way, brought late is told: how many, by how much, and the fullest window with them."""
    left = await w.left_us()
    late = await w.late(ledger)
    known = (e for e in ledger if e["n"] in late and e["token"] and try_of(e) in left)
    behind = [e["unix_us"] - left[try_of(e)] for e in known]
    for number, rate in w.rates.items():
        of = [e for e in ledger if e["number"] == number]
        most = most_in([e["at_us"] for e in of if e["n"] not in late], WINDOW_MS * 1000)
        assert most <= rate, (number, rate, most)
    worst = {
        number: most_in([e["at_us"] for e in ledger if e["number"] == number], WINDOW_MS * 1000)
        for number in w.rates
    }
    return f"{len(late)} late or of unknown leaving, at most {max(behind, default=0) / 1000:.0f} ms; as it came {worst}"
