"""One number, several nodes: one owner at a time, also when the old one comes back from the dead."""

from __future__ import annotations

import signal
from itertools import pairwise

from engine.domain.recipient import State
from tests.support.world import NUMBER, World, free_port, scenario, try_of, world

RATE = 20
EPOCHS = "SELECT recipient_id, n, epoch FROM try WHERE outcome = ANY(ARRAY['accepted', 'refused', 'unknown'])"
STAMPS = "SELECT epoch, base_mono_us, us FROM send_log ORDER BY id"


async def test_two_nodes_on_one_number_send_at_the_rate_of_one(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=120)
        first = await w.engine("--node", "a", "--until-finished", "--linger", "1s", lease="10s")
        second = await w.engine(
            *(
                "--node",
                "b",
                "--until-finished",
                "--linger",
                "1s",
                "--metrics-listen",
                f"127.0.0.1:{free_port()}",
            ),
            port=free_port(),
            lease="10s",
        )
        for engine in (first, second):
            ended = await engine.ended()
            assert ended.code == 0, ended.err
        assert await w.ends() == {State.READ: 120}
        assert len(await w.prove()) == 120


async def test_an_owner_that_was_stopped_for_longer_than_its_lease_sends_nothing_afterwards(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=200)
        old = await w.engine("--node", "old", lease="5s")
        await w.until_requests(30)
        old.signal(signal.SIGSTOP)
        old_epoch = await w.epoch()
        assert old_epoch is not None

        new = await w.engine(
            *("--node", "new", "--metrics-listen", f"127.0.0.1:{free_port()}"), port=free_port(), lease="5s"
        )

        async def taken_over() -> bool:
            return (await w.epoch()) != old_epoch

        await w.until(taken_over, "the take-over")
        await w.until_requests(await w.requests() + 30)
        woken = len(await w.sim.ledger())
        old.signal(signal.SIGCONT)

        async def noticed() -> bool:
            return bool(old.events("lease lost") or old.events("number handed over"))

        await w.until(noticed, "the old owner noticed")
        await w.until(lambda: _told(w, 200), "every row read, or marked by the old owner and never sent")
        ledger = await w.prove(exact_tries=False)
        epochs = {(r["recipient_id"], r["n"]): r["epoch"] for r in await w.db.fetch(EPOCHS)}
        late = [entry for entry in ledger[woken:] if epochs.get(try_of(entry)) == old_epoch]
        assert not late, "the old owner sent after it had lost its lease"
        assert new.running
        assert old.running


async def test_the_stamps_of_two_epochs_do_not_overlap(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: RATE}) as w:
        await w.campaign(people=150)
        ports = [free_port(), free_port()]
        nodes = [
            await w.engine(
                *("--node", f"n{nth}", "--metrics-listen", f"127.0.0.1:{free_port()}"), port=port, lease="20s"
            )
            for nth, port in enumerate(ports)
        ]
        await w.until_requests(30)
        owner = await w.db.fetchval("SELECT node FROM lease")
        nodes[int(owner[1])].signal(signal.SIGTERM)
        assert (await nodes[int(owner[1])].ended()).code == 143
        await w.until(lambda: _all_sent(w), "everything sent by the other")
        spans: dict[int, tuple[int, int]] = {}
        for row in await w.db.fetch(STAMPS):
            times = [row["base_mono_us"] + us for us in row["us"]]
            low, high = spans.get(row["epoch"], (times[0], times[0]))
            spans[row["epoch"]] = (min(low, *times), max(high, *times))
        assert len(spans) >= 2
        in_order = [spans[epoch] for epoch in sorted(spans)]
        assert all(last < first for (_, last), (first, _) in pairwise(in_order))
        await w.prove()


async def _all_sent(w: World) -> bool:
    counts = await w.counts()
    return sum(counts[state] for state in (State.SENT, State.DELIVERED, State.READ)) == 150


async def _told(w: World, people: int) -> bool:
    counts = await w.counts()
    return counts[State.READ] + counts[State.UNKNOWN] == people and counts[State.READ] == await w.requests()
