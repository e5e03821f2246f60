"""Consoles over the database, with the engines in processes of their own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr

from console.attached import AttachedLink
from engine.config import Config
from engine.domain.act import AcknowledgeAlerts, Act, PauseNumber, SetRate
from engine.domain.inspection import CodesOf, JournalOf, RowOf
from engine.domain.snapshot import ActView, Snapshot
from tests.support.world import NUMBER, World, free_port, scenario, world

SECOND = "106540352242923"
T = TypeVar("T")


@asynccontextmanager
async def attached(w: World, *, read_only: bool = False) -> AsyncIterator[AttachedLink]:
    """A viewer in a thread of this process."""
    config = Config(database_url=SecretStr(w.url), data_dir=Path(w.environment["TIDEGATE_DATA_DIR"]))
    link = AttachedLink(config, read_only=read_only)
    await asyncio.to_thread(link.start)
    try:
        yield link
    finally:
        await asyncio.to_thread(link.close)


async def seen(link: AttachedLink, what: Callable[[Snapshot], T | None]) -> T:
    """Wait until the viewer shows it; its snapshots come from another thread, and no event tells of them."""
    async with asyncio.timeout(60):
        while True:
            snapshot = link.snapshot()
            found = what(snapshot) if snapshot is not None else None
            if found:
                return found
            await asyncio.sleep(0.05)


async def stage(link: AttachedLink, act: Act, name: str) -> ActView:
    act_id = link.submit(act)
    return await seen(link, lambda s: next((a for a in s.acts if a.id == act_id and a.stage == name), None))


def owners(s: Snapshot) -> set[str | None]:
    return {n.owner for n in s.numbers}


async def test_two_consoles_see_two_nodes_each_other_s_acts_and_a_death(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 20, SECOND: 20}) as w:
        await w.campaign(people=3000)
        await w.engine("--node", "eng1", lease="5s", metrics_listen=f"127.0.0.1:{free_port()}")
        second = await w.engine(
            "--node", "eng2", port=free_port(), lease="5s", metrics_listen=f"127.0.0.1:{free_port()}"
        )
        async with attached(w) as ana, attached(w, read_only=True) as bob:
            both = await seen(ana, lambda s: s if owners(s) == {"eng1", "eng2"} else None)
            assert sorted(n.name for n in both.nodes) == ["eng1", "eng2"]
            await seen(ana, lambda s: all(n.sent_per_second > 5 for n in s.numbers) and s.numbers)

            slower = await stage(ana, SetRate(NUMBER, 10), "in effect")
            assert slower.detail == "20→10"
            await seen(bob, lambda s: any("rate" in e.text and "(attach)" in e.text for e in s.events))
            await seen(ana, lambda s: {n.rate for n in s.numbers if n.id == NUMBER} == {10})
            await stage(ana, AcknowledgeAlerts(None), "in effect")

            refused = await stage(bob, PauseNumber(NUMBER), "refused")
            assert "read-only" in refused.detail
            assert await w.db.fetchval("SELECT count(*) FROM journal WHERE act = 'pause number'") == 0
            codes = await asyncio.wrap_future(ana.ask(CodesOf()))
            assert type(codes).__name__ == "Codes"
            assert type(await asyncio.wrap_future(ana.ask(JournalOf()))).__name__ == "Journal"
            masked = await asyncio.wrap_future(bob.ask(RowOf(1, reveal=True)))
            assert "masked" in repr(masked)

            second.kill()
            dead = await seen(ana, lambda s: s if any(not n.alive for n in s.nodes) else None)
            assert [a.target for a in dead.alerts if a.severity == "critical"] == ["node eng2"]
            await seen(ana, lambda s: s if owners(s) == {"eng1"} else None)
            await stage(ana, AcknowledgeAlerts(dead.alerts[0].key), "in effect")
            await seen(ana, lambda s: any(a.acknowledged and a.target == "node eng2" for a in s.alerts))


async def test_without_an_engine_the_viewer_shows_the_rows_and_that_nobody_sends_them(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: 20, SECOND: 20}) as w:
        await w.campaign(people=9)
        async with attached(w, read_only=True) as bob:
            alone = await seen(bob, lambda s: s)
            assert {(n.id, n.owner, n.bound_by, n.rate) for n in alone.numbers} == {
                (NUMBER, None, "no node", 20),
                (SECOND, None, "no node", 20),
            }
            assert [(c.state, c.planned, c.counts["pending"]) for c in alone.campaigns] == [("running", 9, 9)]
            assert [f"{a.target} {a.cause}" for a in alone.alerts] == [
                "no engine runs: 9 rows pending: start `tidegate run`"
            ]
            await w.engine("--node", "eng1", lease="5s", metrics_listen=f"127.0.0.1:{free_port()}")
            await seen(
                bob, lambda s: owners(s) == {"eng1"} and not any(a.target == "no engine" for a in s.alerts)
            )
