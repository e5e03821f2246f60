"""The first second of a run is no other than the rest: connections are open before the first send."""

from __future__ import annotations

from engine.domain.pacing import in_flight_bound
from engine.domain.recipient import State
from tests.support.relay import relay
from tests.support.world import NUMBER, free_port, scenario, world

RATE = 60.0
LATENCY_MS = 150
HANDSHAKE_S = 0.5
AT_FIRST = in_flight_bound(RATE, LATENCY_MS / 1000)
"""Connections, at most, that the first second needs."""


async def test_handshakes_do_not_bunch_what_the_window_had_spaced(database_url: str) -> None:
    port = free_port()
    provider = scenario(latency={"fixed_ms": LATENCY_MS})
    async with (
        relay(port, HANDSHAKE_S) as way,
        world(database_url, provider, {NUMBER: RATE}, api_url=f"http://127.0.0.1:{port}/v25.0") as w,
    ):
        way.target = int(w.sim.base.rpartition(":")[2])
        await way.open()
        await w.campaign(people=150)
        ended = await (await w.engine("--until-finished", "--linger", "1s")).ended()
        assert ended.code == 0, ended.err
        await w.prove()
        assert len(way.first) >= AT_FIRST
        assert not [said for said in way.first[:AT_FIRST] if said.startswith(b"POST")], (
            "sent over a connection that was not open yet"
        )
        assert await w.ends() == {State.READ: 150}
