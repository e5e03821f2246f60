"""The first second of a run is no other than the rest: connections are open before the first send."""

from __future__ import annotations

from engine.domain.recipient import State
from tests.support.relay import relay
from tests.support.world import NUMBER, free_port, scenario, try_of, world

RATE = 60.0
HANDSHAKE_S = 1.0


async def test_handshakes_do_not_bunch_what_the_window_had_spaced(database_url: str) -> None:
    port = free_port()
    provider = scenario(latency={"fixed_ms": 150})
    async with (
        relay(port, HANDSHAKE_S) as way,
        world(database_url, provider, {NUMBER: RATE}, api_url=f"http://127.0.0.1:{port}/v25.0") as w,
    ):
        way.target = int(w.sim.base.rpartition(":")[2])
        await way.open()
        await w.campaign(people=150)
        ended = await (await w.engine("--until-finished", "--linger", "1s")).ended()
        assert ended.code == 0, ended.err
        await w.until_counts(read=150)
        ledger = await w.prove()
        rows = await w.db.fetch("SELECT recipient_id, n, sent_at FROM try WHERE outcome = 'accepted'")
        left = {(row["recipient_id"], row["n"]): row["sent_at"].timestamp() for row in rows}
        waited = [entry["unix_us"] / 1e6 - left[try_of(entry)] for entry in ledger if entry["accepted"]]
        assert [s for s in waited if s > HANDSHAKE_S / 2] == [], (
            "sent over connections that were not open yet"
        )
        assert await w.counts() == {State.READ: 150}
