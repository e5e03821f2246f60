"""What each transport says after a failure, beside what a raw socket server really received."""

import asyncio
import gzip
import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from engine.clients.transport import MAX_BODY, TransportKind, open_transport, provably_not_sent
from tests.support import wire
from tests.support.transport import both_kinds, opened, post
from tests.support.wire import Line, Script, Wire

CERTIFICATES = Path(__file__).parent / "certificates"


SHORT = 0.4
"""Seconds, for an answer that never comes."""


@dataclass(frozen=True)
class Row:
    """One way for a server to fail, and the truth about it."""

    script: Script
    received: int
    pyreqwest: type[httpx.TransportError]
    httpcore: type[httpx.TransportError] | tuple[type[httpx.TransportError], ...]
    deadline: float = 60.0


AMBIGUOUS = {
    "closed before reading": Row(  # httpcore may meet the FIN or the RST for what was not read
        wire.close_before_reading, 0, httpx.ReadError, (httpx.ReadError, httpx.RemoteProtocolError)
    ),
    "closed after reading": Row(wire.close_after_reading, 1, httpx.ReadError, httpx.RemoteProtocolError),
    "reset after reading": Row(wire.reset_after_reading, 1, httpx.ReadError, httpx.ReadError),
    "half a head": Row(wire.half_a_head, 1, httpx.ReadError, httpx.RemoteProtocolError),
    "half a body": Row(wire.half_a_body, 1, httpx.RemoteProtocolError, httpx.RemoteProtocolError),
    "half a body, then silence": Row(
        wire.half_a_body_then_silence, 1, httpx.ReadTimeout, httpx.ReadTimeout, deadline=SHORT
    ),
    "no HTTP": Row(wire.garbage, 1, httpx.RemoteProtocolError, httpx.RemoteProtocolError),
    "no answer": Row(wire.never_answer, 1, httpx.ReadTimeout, httpx.ReadTimeout, deadline=SHORT),
    "a body over the bound": Row(
        wire.answer_once_with(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1) + bytes(MAX_BODY + 1)
        ),
        1,
        httpx.RemoteProtocolError,
        httpx.RemoteProtocolError,
    ),
    "a compressed body over the bound": Row(
        wire.answer_once_with(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
            % len(bomb := gzip.compress(bytes(MAX_BODY + 1)))
            + bomb
        ),
        1,
        httpx.RemoteProtocolError,
        httpx.RemoteProtocolError,
    ),
    "a body that does not decompress": Row(
        wire.answer_once_with(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip"
        ),
        1,
        httpx.RemoteProtocolError,
        httpx.RemoteProtocolError,
    ),
}


@both_kinds
@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_a_failure_after_the_connection_stands_is_ambiguous(name: str, kind: TransportKind) -> None:
    row = AMBIGUOUS[name]
    async with Wire(row.script) as server:
        error = await failure(kind, server, row.deadline, row.received)
        assert isinstance(error, row.pyreqwest if kind == "pyreqwest" else row.httpcore)
        assert not provably_not_sent(error)
        assert len(server.requests) == row.received


async def failure(kind: TransportKind, server: Wire, deadline: float, received: int) -> httpx.TransportError:
    """What a request comes to. When this machine stood still until the deadline, so that it did not even arrive, it is
    made once more, with more time."""
    for patience in (deadline, 10.0):
        async with opened(kind, connect_timeout=min(2.0, patience / 2), deadline=patience) as transport:
            with pytest.raises(httpx.TransportError) as raised:
                await post(transport, server.url)
        if len(server.requests) == received:
            break
    return raised.value


NOWHERE: dict[str, tuple[Callable[[], AbstractContextManager[str]], type[httpx.TransportError]]] = {
    "refused": (wire.refused, httpx.ConnectError),
    "blackhole": (wire.blackhole, httpx.ConnectTimeout),
    "blackhole under TLS": (lambda: wire.blackhole("https"), httpx.ConnectTimeout),
}


@both_kinds
@pytest.mark.parametrize("name", NOWHERE)
async def test_without_a_connection_nothing_was_sent(name: str, kind: TransportKind) -> None:
    nowhere, expected = NOWHERE[name]
    with nowhere() as url:
        async with opened(kind, connect_timeout=2.0 if name == "refused" else 0.2) as transport:
            with pytest.raises(httpx.TransportError) as raised:
                await post(transport, url)
    assert type(raised.value) is expected
    assert provably_not_sent(raised.value)


@both_kinds
async def test_without_an_address_nothing_was_sent(kind: TransportKind) -> None:
    async with opened(kind) as transport:
        with pytest.raises(httpx.ConnectError) as raised:
            await post(transport, "http://nowhere.invalid/messages")
    assert provably_not_sent(raised.value)


@both_kinds
async def test_tls_to_a_plain_text_port_sends_nothing(kind: TransportKind) -> None:
    async with Wire(wire.plain_text_to_anything) as server, opened(kind) as transport:
        with pytest.raises(httpx.ConnectError) as raised:
            await post(transport, server.url.replace("http://", "https://"))
        assert provably_not_sent(raised.value)
        assert (server.accepted, server.requests) == (1, [])


@both_kinds
async def test_a_tls_handshake_that_never_ends_sends_nothing(kind: TransportKind) -> None:
    async with Wire(Line.until_the_client_hangs_up) as server:
        async with opened(kind, connect_timeout=0.2) as transport:
            with pytest.raises(httpx.ConnectTimeout) as raised:
                await post(transport, server.url.replace("http://", "https://"))
        assert provably_not_sent(raised.value)
        await server.until(lambda seen: seen.accepted == 1)
        assert server.requests == []


def server_side_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    return context


@both_kinds
async def test_a_certificate_from_a_stranger_sends_nothing(kind: TransportKind) -> None:
    async with Wire(wire.answer_all, server_side_tls()) as server, opened(kind) as transport:
        with pytest.raises(httpx.ConnectError) as raised:
            await post(transport, server.url)
        assert provably_not_sent(raised.value)
        assert server.requests == []


@both_kinds
async def test_a_trusted_certificate_is_enough_for_https(kind: TransportKind) -> None:
    authority = (CERTIFICATES / "authority.pem").read_text()
    async with Wire(wire.answer_all, server_side_tls()) as server:
        async with opened(kind, extra_ca=authority) as transport:
            assert (await post(transport, server.url)).text == "ok"
        assert len(server.requests) == 1


@both_kinds
async def test_an_answer_that_trickles_ends_at_the_deadline(kind: TransportKind) -> None:
    async def trickle(line: Line) -> None:
        await line.read_request()
        await line.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        hung_up = asyncio.ensure_future(line.until_the_client_hangs_up())
        while not (await asyncio.wait({hung_up}, timeout=0.05))[0]:
            await line.write(b"1\r\n.\r\n")

    async with Wire(trickle) as server:
        error = await failure(kind, server, SHORT, 1)
        assert isinstance(error, httpx.ReadTimeout)
        assert not provably_not_sent(error)
        assert len(server.requests) == 1


@both_kinds
async def test_a_url_that_is_not_http_sends_nothing(kind: TransportKind) -> None:
    async with opened(kind) as transport:
        with pytest.raises(httpx.UnsupportedProtocol) as raised:
            await post(transport, "ftp://127.0.0.1/messages")
    assert provably_not_sent(raised.value)


@both_kinds
async def test_a_redirect_is_an_answer_like_any_other(kind: TransportKind) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n"
    async with Wire(wire.answer_once_with(moved)) as server, opened(kind) as transport:
        reply = await post(transport, server.url)
        assert (reply.status_code, reply.headers["location"]) == (302, "/elsewhere")
        assert len(server.requests) == 1


@both_kinds
async def test_the_request_arrives_as_it_was_built_and_a_packed_answer_is_unpacked(
    kind: TransportKind,
) -> None:
    packed = gzip.compress(b'{"messages": []}')
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: %d\r\n\r\n%b"
    async with (
        Wire(wire.answer_once_with(answer % (len(packed), packed))) as server,
        opened(kind) as transport,
    ):
        request = httpx.Request(
            "POST", f"{server.url}?q=a%20b", headers={"Authorization": "Bearer t"}, json={"to": "é"}
        )
        reply = await transport.handle_async_request(request)
        assert reply.json() == {"messages": []}
        assert reply.headers.get_list("x-a") == ["1", "2"]
        (received,) = server.requests
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"POST /messages?q=a%20b HTTP/1.1\r\n")
        assert b"authorization: bearer t" in head.lower()
        assert body == request.content


@both_kinds
async def test_a_proxy_in_the_environment_is_ignored(
    kind: TransportKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wire.refused() as nowhere:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, nowhere)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with Wire(wire.answer_all) as server, opened(kind) as transport:
            assert (await post(transport, server.url)).status_code == 200


@pytest.mark.parametrize(
    ("name", "limits"),
    {
        "connections": {"connections": 0},
        "connect_timeout": {"connections": 1, "connect_timeout": 2.5},
        "deadline": {"connections": 1, "connect_timeout": 2.0, "deadline": 2.0},
        "pool_timeout": {"connections": 1, "pool_timeout": 0.0},
    }.items(),
)
def test_a_limit_out_of_range_is_refused_by_name(name: str, limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"^{name} is "):
        open_transport("pyreqwest", **limits)  # type: ignore[arg-type]


def test_only_proofs_count_as_proof() -> None:
    maybe = (
        httpx.ReadError,
        httpx.ReadTimeout,
        httpx.WriteError,
        httpx.WriteTimeout,
        httpx.RemoteProtocolError,
    )
    assert not any(provably_not_sent(kind("")) for kind in maybe)
    assert not any(
        provably_not_sent(error) for error in (TimeoutError(), OSError(), asyncio.CancelledError())
    )
