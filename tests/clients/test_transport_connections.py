"""Connections kept, shared, lost and given back, with a server that counts them."""

import asyncio
from collections.abc import Callable

import httpx
import pytest

from engine.clients.transport import TransportKind, provably_not_sent, warm
from tests.support import wire
from tests.support.transport import both_kinds, opened, post, post_when_free
from tests.support.wire import Line, Script, Wire


@both_kinds
async def test_no_free_connection_is_provably_not_sent(kind: TransportKind) -> None:
    async with Wire(wire.never_answer) as server:
        async with opened(kind, connections=1, pool_timeout=0.1) as transport:
            holder = asyncio.create_task(post(transport, server.url))
            await server.until(lambda seen: len(seen.requests) == 1)
            with pytest.raises(httpx.PoolTimeout) as raised:
                await post(transport, server.url)
            assert provably_not_sent(raised.value)
            assert len(server.requests) == 1
        with pytest.raises(httpx.TransportError) as cut:
            await holder
        assert not provably_not_sent(cut.value)


@both_kinds
async def test_sixty_tasks_share_ten_connections(kind: TransportKind) -> None:
    async with Wire(wire.answer_all) as server, opened(kind, connections=10) as transport:
        replies = await asyncio.gather(*(post(transport, server.url, str(n)) for n in range(60)))
        assert {reply.status_code for reply in replies} == {200}
        assert len(server.requests) == 60
        assert server.peak <= 10


def close_idle(how: Callable[[Line], None]) -> Script:
    """Answer one request, then end the connection while the client thinks that it is idle."""

    async def script(line: Line) -> None:
        await line.read_request()
        await line.write(wire.OK)
        how(line)

    return script


def end_at_the_next_byte(reset: bool) -> Script:
    """Keep the connection until the next request starts to arrive, then end it: the widest race there is."""

    async def script(line: Line) -> None:
        await line.read_request()
        await line.write(wire.OK)
        await line.read_some()
        if reset:
            line.reset()

    return script


IDLE_ENDS = {
    "closed": close_idle(lambda line: None),
    "reset": close_idle(Line.reset),
    "closed at the next byte": end_at_the_next_byte(reset=False),
    "reset at the next byte": end_at_the_next_byte(reset=True),
}


@both_kinds
@pytest.mark.parametrize("name", IDLE_ENDS)
async def test_an_idle_connection_that_ends_never_doubles_or_misreports_a_request(
    name: str, kind: TransportKind
) -> None:
    async with Wire(IDLE_ENDS[name]) as server, opened(kind, connections=1) as transport:
        answered, failed = [], {}
        for n in range(40):
            marker = f"request {n}."
            try:
                await post(transport, server.url, marker)
                answered.append(marker)
            except httpx.TransportError as error:
                failed[marker] = error
        arrivals = {
            marker: sum(marker.encode() in request for request in server.requests)
            for marker in (*answered, *failed)
        }
        assert answered
        assert all(arrivals[marker] == 1 for marker in answered)
        assert all(arrivals[marker] <= 1 for marker in failed)
        assert not any(provably_not_sent(error) for error in failed.values())


@both_kinds
async def test_a_cancelled_request_gives_its_connection_back(kind: TransportKind) -> None:
    async def answer_all_but_the_first(line: Line) -> None:
        if b"cancelled" in await line.read_request():
            await line.until_the_client_hangs_up()
        await line.write(wire.OK)

    async with Wire(answer_all_but_the_first) as server:
        async with opened(
            kind, connections=1, connect_timeout=1.9, deadline=4.0, pool_timeout=0.1
        ) as transport:
            call = asyncio.create_task(post(transport, server.url, "cancelled"))
            await server.until(lambda seen: len(seen.requests) == 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await post_when_free(transport, server.url)).status_code == 200
        assert len(server.requests) == 2


@both_kinds
async def test_the_deadline_gives_the_connection_back(kind: TransportKind) -> None:
    async def answer_all_but_the_stuck(line: Line) -> None:
        if b"X-Name: stuck" in await line.read_request():
            await line.until_the_client_hangs_up()
        await line.write(wire.OK)

    async with Wire(answer_all_but_the_stuck) as server:
        async with opened(kind, connections=1, connect_timeout=1.9, deadline=3.0) as transport:
            with pytest.raises(httpx.ReadTimeout):
                await post(transport, server.url, "stuck")
            assert (await post(transport, server.url)).status_code == 200
        assert len(server.requests) == 2


@both_kinds
async def test_a_closed_transport_sends_nothing_and_lets_its_connections_go(kind: TransportKind) -> None:
    async with Wire(wire.answer_all) as server:
        async with opened(kind) as transport:
            await post(transport, server.url)
        with pytest.raises(httpx.ConnectError) as raised:
            await post(transport, server.url)
        assert provably_not_sent(raised.value)
        await server.until(lambda seen: seen.open == 0)
        assert len(server.requests) == 1


@both_kinds
async def test_a_warmed_pool_opens_no_connection_for_the_sends_that_follow(kind: TransportKind) -> None:
    greeted = asyncio.Barrier(12)

    async def answer_together_first(line: Line) -> None:
        await line.read_request()
        await greeted.wait()
        await line.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await wire.answer_all(line)

    async with Wire(answer_together_first) as server, opened(kind, connections=12) as transport:
        assert await warm(transport, server.url, 12) == 12
        await asyncio.gather(*(post(transport, server.url) for _ in range(24)))
        assert (server.accepted, len(server.requests)) == (12, 36)


@both_kinds
async def test_warming_towards_nobody_reports_that_nobody_answered(kind: TransportKind) -> None:
    with wire.refused() as nowhere:
        async with opened(kind) as transport:
            assert await warm(transport, nowhere, 2) == 0
