"""Any client of the Cloud API, pointed at a node by its base URL: over real sockets, with real engines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.support.process import Process
from tests.support.simulator import TOKEN
from tests.support.world import NUMBER, SECOND, World, free_port, most_in, scenario, world

BEARER = "gateway-token-7"
TEXT = {
    "messaging_product": "whatsapp",
    "to": "+5511960000000",
    "type": "text",
    "text": {"body": "olá"},
    "biz_opaque_callback_data": "client: 7/é",
}
UNKNOWN_NUMBER = "106540352249999"
FIRST = "SELECT name FROM node ORDER BY id LIMIT 1"
"""Of two nodes, the one whose share one number is."""


class Client:
    """A Cloud API client whose base URL is a node's address."""

    def __init__(self, http: httpx.AsyncClient, port: int) -> None:
        self._http = http
        self.base = f"http://127.0.0.1:{port}"

    async def say(
        self, number: str = NUMBER, *, bearer: str = BEARER, body: bytes | None = None, hopped: bool = False
    ) -> httpx.Response:
        return await self._http.post(
            f"{self.base}/v25.0/{number}/messages",
            content=body if body is not None else json.dumps(TEXT).encode(),
            headers={"authorization": f"Bearer {bearer}", "content-type": "application/json"}
            | ({"x-tidegate-hop": "1"} if hopped else {}),
        )

    async def status(self, path: str) -> int:
        try:
            return (await self._http.get(self.base + path)).status_code
        except httpx.TransportError:
            return 0


@asynccontextmanager
async def client(port: int) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(trust_env=False, timeout=60.0) as http:
        yield Client(http, port)


async def _node(
    w: World, *flags: str, port: int | None = None, token: str = BEARER, lease: str = "30s"
) -> tuple[Process, int]:
    """An engine with a gateway, once it is ready; and its port."""
    port = port or free_port()
    engine = await w.engine(
        *("--metrics-listen", f"127.0.0.1:{free_port()}", *flags),
        port=port,
        lease=lease,
        gateway_token=token,
        advertise=f"http://127.0.0.1:{port}",
    )
    async with client(port) as node:

        async def ready() -> bool:
            return await node.status("/readyz") == 200

        await w.until(ready, "a node that is ready")
    return engine, port


async def _owned(w: World, numbers: int) -> dict[str, str]:
    """Node by number, once so many are owned."""

    async def all_owned() -> bool:
        return len(await _owners(w)) == numbers

    await w.until(all_owned, f"{numbers} owned numbers")
    return await _owners(w)


async def _owners(w: World) -> dict[str, str]:
    rows = await w.db.fetch(
        "SELECT n.id, l.node FROM lease l JOIN number n USING (number_id) WHERE l.released_at IS NULL"
    )
    return {row["id"]: row["node"] for row in rows}


async def _spread(w: World, nodes: int) -> dict[str, str]:
    async def spread() -> bool:
        return len(set((await _owners(w)).values())) == nodes

    await w.until(spread, f"numbers on {nodes} nodes")
    return await _owners(w)


async def _until_answered(w: World, node: Client, number: str = NUMBER) -> None:
    """One message goes out; before, the number may be changing hands, which is a 503 that sends nothing."""

    async def answered() -> bool:
        reply = await node.say(number)
        assert reply.status_code in (200, 503), reply.text
        return reply.status_code == 200 and bool(reply.json()["messages"][0]["id"])

    await w.until(answered, "an answer of the provider")


async def _announce(port: int, size: int) -> bytes:
    """The beginning of the answer to a message that is said to be so long."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v25.0/{NUMBER}/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {BEARER}\r\n"
    writer.write(f"{head}content-length: {size}\r\n\r\n".encode())
    answer = await reader.read()  # to its end: the connection is closed, or this would hang
    writer.close()
    return answer[:12]


def _error(reply: httpx.Response) -> dict[str, Any]:
    error: dict[str, Any] = reply.json()["error"]
    assert {"message", "type", "code", "fbtrace_id"} <= set(error)
    return error


async def test_a_client_s_message_goes_out_untouched_beside_a_campaign(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        await w.campaign(people=200)
        _, port = await _node(w, port=w.port)
        await _owned(w, 1)
        async with client(port) as meta_like:
            await w.until_requests(20)
            replies = await asyncio.gather(*(meta_like.say() for _ in range(10)))
            assert [reply.status_code for reply in replies] == [200] * 10
            wamids = {reply.json()["messages"][0]["id"] for reply in replies}
            assert len(wamids) == 10
            assert {reply.headers["content-type"].split(";")[0] for reply in replies} == {"application/json"}

            bad = await meta_like.say(body=b'{"messaging_product": "whatsapp"')
            assert bad.status_code == 400
            assert not str(_error(bad)["fbtrace_id"]).startswith("tidegate")  # the provider's own words
        await w.until_counts(read=200)
        ours = [e for e in await w.sim.ledger() if e["token"] == TEXT["biz_opaque_callback_data"]]
        assert {entry["wamid"] for entry in ours} == wamids
        assert most_in(await w.stamps(), 1_000_000) <= 40


async def test_who_may_not_and_what_is_not_there_is_told_as_the_provider_would(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        _, port = await _node(w)
        await _owned(w, 1)
        async with client(port) as node:
            for bearer in ("-", "wrong", BEARER[:-1], BEARER + "x", TOKEN):
                reply = await node.say(bearer=bearer)
                assert (reply.status_code, _error(reply)["code"]) == (401, 190)
            reply = await node.say(UNKNOWN_NUMBER)
            assert (reply.status_code, _error(reply)["code"]) == (404, 100)
            assert await _announce(port, 3 * 1024 * 1024 + 1) == b"HTTP/1.1 413"
            assert await node.status(f"/v25.0/{NUMBER}/messages") == 405
            assert await node.status(f"/v25.0/{NUMBER}/media") == 404
        assert await w.requests() == 0


async def test_a_node_passes_a_message_on_to_the_number_s_owner_in_one_hop(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40, SECOND: 40}) as w:
        nodes = {name: await _node(w, "--node", name) for name in ("a", "b")}
        owners = await _spread(w, 2)
        for number, owner in owners.items():
            other = next(name for name in nodes if name != owner)
            async with client(nodes[other][1]) as stranger, client(nodes[owner][1]) as home:
                await _until_answered(w, stranger, number)

                hopped = await stranger.say(number, hopped=True)
                assert (hopped.status_code, _error(hopped)["code"]) == (421, 131016)
                assert (await home.say(number, hopped=True)).status_code == 200
                assert (await stranger.say(number, bearer="wrong")).status_code == 401
        tokens = [entry["token"] for entry in await w.sim.ledger()]
        assert tokens == [TEXT["biz_opaque_callback_data"]] * 4


async def test_an_owner_that_cannot_be_reached_is_a_503_with_the_time_to_come_again(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        nodes = {name: await _node(w, "--node", name, lease="8s") for name in ("a", "b")}
        rightful = await w.db.fetchval(FIRST)

        async def home() -> bool:
            return await _owners(w) == {NUMBER: rightful}

        await w.until(home, "the number where it stays")
        (owner, _), (other, port) = nodes[rightful], nodes["b" if rightful == "a" else "a"]
        async with client(port) as node:
            await _until_answered(w, node)
            owner.kill()
            await owner.ended()
            reply = await node.say()
            assert reply.status_code == 503
            assert int(reply.headers["retry-after"]) >= 1
            _error(reply)

            await _until_answered(w, node)
        assert other.running


async def test_what_people_write_slows_the_campaign_of_the_number(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        await w.campaign(people=400)
        await _node(w, port=w.port)
        await w.until_requests(20)

        async def write_and_look() -> bool:
            for nth in range(15):
                await w.sim.inbound(NUMBER, f"+55119700{nth:05d}", "oi")
            return await _slowest(w) <= 12

        await w.until(write_and_look, "the campaign made room")


async def _slowest(w: World) -> float:
    """The lowest rate that a send was let through by."""
    return float(await w.db.fetchval("SELECT min(rate) FROM send_log"))


async def test_without_a_token_there_is_no_gateway(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        _, port = await _node(w, token="")
        async with client(port) as node:
            assert (await node.say()).status_code == 404
