"""The HTTP server on real sockets: routes, health, refusals, slow clients, a clean stop."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from engine import server
from engine.app import in_use
from engine.config import Address
from engine.delivery.receiver import Receive, Scope, Send, answer
from engine.domain.heard import SILENT_S, Heard
from engine.server import AddressInUseError, App, ListenError, bind, serve

HOST = "127.0.0.1"


async def ready() -> str | None:
    return None


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, 200, b"hello")


@asynccontextmanager
async def served(app: App, grace: float = 30.0) -> AsyncIterator[tuple[str, int]]:
    with bind(HOST, 0) as listening:
        port = listening.getsockname()[1]
        async with asyncio.timeout(120), serve(app, [listening], grace=grace):
            yield HOST, port


async def test_each_path_finds_its_application() -> None:
    app = App(ready, {"/webhook": hello})
    async with (
        served(app) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=60) as client,
    ):
        replies = [await client.get(path) for path in ("/webhook", "/healthz", "/readyz", "/", "/webhook/")]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 404, 404]
    assert "server" not in replies[0].headers


async def test_what_has_no_path_of_its_own_goes_to_the_gateway() -> None:
    app = App(ready, {}, otherwise=hello)
    async with served(app) as (host, port), httpx.AsyncClient(timeout=60) as client:
        assert (await client.post(f"http://{host}:{port}/v25.0/106/messages")).content == b"hello"


async def test_readiness_says_why_not() -> None:
    async def not_yet() -> str | None:
        return "migrations are not current"

    async with served(App(not_yet, {})) as (host, port), httpx.AsyncClient(timeout=60) as client:
        reply = await client.get(f"http://{host}:{port}/readyz")
        healthy = await client.get(f"http://{host}:{port}/healthz")
    assert (reply.status_code, reply.text) == (503, "migrations are not current\n")
    assert healthy.status_code == 200


def test_an_address_in_use_is_said_in_one_sentence() -> None:
    with bind(HOST, 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(AddressInUseError) as caught, bind(HOST, port):
            pass
    assert str(caught.value) == (
        f"Another program listens on 127.0.0.1:{port}: stop it, or set TIDEGATE_LISTEN to a free address."
    )


def test_an_address_that_an_engine_has_points_to_attach() -> None:
    where, error = Address(HOST, 8080), AddressInUseError("Another program")
    assert in_use(error, where, [Heard("dead", SILENT_S)]) is error
    said = str(in_use(error, where, [Heard("dead", SILENT_S), Heard("mar-1", 0.4)]))
    assert said.startswith("127.0.0.1:8080 is in use, and an engine runs on this database already (mar-1): ")
    assert "`tidegate attach`" in said
    assert "stop it" not in said


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 0), ("no such host", 0), (HOST, 99_999)])
def test_an_address_that_is_not_ours_is_said_in_one_sentence(host: str, port: int) -> None:
    with pytest.raises(ListenError, match=r"^TIDEGATE_LISTEN names .*\.$"), bind(host, port):
        pass


async def test_the_signals_stay_with_the_process() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with served(App(ready, {})):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_a_client_that_never_finishes_its_header_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.05)
    async with served(App(ready, {})) as (host, port):
        for start in (b"", b"POST /webhook HTTP/1.1\r\nHost: x\r\nX-Slow: "):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(start)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            writer.close()


async def test_a_patient_client_may_send_request_after_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(App(ready, {"/hello": hello})) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        for _ in range(3):
            writer.write(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()


async def test_a_stop_lets_the_request_in_hand_finish_and_takes_no_new_one() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await go.wait()
        await answer(send, 200, b"done")

    async with httpx.AsyncClient(timeout=60) as client:
        async with served(App(ready, {"/slow": slow})) as (host, port):
            asking = asyncio.create_task(client.get(f"http://{host}:{port}/slow"))
            await asked.wait()
            asyncio.get_running_loop().call_later(0.05, go.set)
        assert (await asking).content == b"done"
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://{host}:{port}/healthz")


async def test_an_application_that_fails_answers_500_and_the_server_lives(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("a bug")

    async with (
        served(App(ready, {"/broken": broken})) as (host, port),
        httpx.AsyncClient(timeout=60) as client,
    ):
        assert (await client.get(f"http://{host}:{port}/broken")).status_code == 500
        assert (await client.get(f"http://{host}:{port}/healthz")).status_code == 200


async def test_the_socket_is_free_again_afterwards() -> None:
    async with served(App(ready, {})) as (host, port):
        pass
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind((host, port))
