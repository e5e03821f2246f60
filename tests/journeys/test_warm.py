"""The first second of a run is no other than the rest: connections are open before the first send."""

from __future__ import annotations

from engine.domain.recipient import State
from tests.support.relay import relay
from tests.support.world import NUMBER, free_port, scenario, world

RATE = 60.0
HANDSHAKE_S = 0.3


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
        assert [entry for entry in ledger if entry["code"] == 130429] == []
        assert await w.counts() == {State.READ: 150}
