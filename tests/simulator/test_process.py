"""The process as its users see it: over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from typing import Any

import pytest

from tests.simulator.wire_client import NUMBER, answer, connect, raw, request, send, template
from tests.support.simulator import end, simulator, spawn

PROMPT: dict[str, Any] = {"latency": {"fixed_ms": 0}}


async def exit_of(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    try:
        async with asyncio.timeout(60):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, out.decode(), err.decode()


async def test_it_listens_on_a_free_port_and_says_where() -> None:
    process = await spawn("--port", "0")
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            line = await process.stdout.readline()
        assert re.fullmatch(r'\{"listening":"http://127\.0\.0\.1:\d+"\}\n', line.decode())
    finally:
        await end(process)
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly_with_requests_in_flight(number: signal.Signals) -> None:
    async with simulator({"rules": [{"do": "never_answer"}]}) as sim:
        _, writer = await connect(sim.url)
        writer.write(request(template()))
        await sim.until(lambda totals: totals["requests"] == 1)
        os.kill(sim.pid, number)
        async with asyncio.timeout(60):
            assert await sim.process.wait() == 0
        writer.close()


async def test_it_ends_with_its_stdin() -> None:
    async with simulator() as sim:
        assert isinstance(sim.process, asyncio.subprocess.Process)
        assert sim.process.stdin is not None
        sim.process.stdin.close()
        async with asyncio.timeout(60):
            assert await sim.process.wait() == 0


async def test_a_port_in_use_is_one_sentence_and_exit_2() -> None:
    async with simulator() as sim:
        port = sim.base.rsplit(":", 1)[1]
        code, out, err = await exit_of(await spawn("--port", port))
    assert (code, out) == (2, "")
    assert err.strip().splitlines() == [
        f"tidegate simulate: Port {port} is in use; choose another with --port, or 0 for a free one."
    ]


async def test_a_port_that_does_not_exist_is_one_sentence_and_exit_2() -> None:
    code, _, err = await exit_of(await spawn("--port", "70000"))
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert "70000" in err


async def test_a_bad_scenario_is_one_sentence_and_exit_2(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("scenario") / "odd.json"
    path.write_text('{"rules": [{"do": "explode"}]}')
    code, _, err = await exit_of(await spawn("--port", "0", "--scenario", str(path)))
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert str(path) in err
    assert "$.rules[0].do" in err


async def test_it_knows_nothing_of_the_engine() -> None:
    listing = (
        "import sys, engine.simulator.__main__; print([m for m in sys.modules if m.startswith('engine.')])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", listing, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    code, out, _ = await exit_of(process)
    assert code == 0
    assert all(module.startswith("'engine.simulator") for module in out.strip("[]\n").split(", "))


async def test_a_connection_is_kept_and_answers_in_order() -> None:
    scenario = {"latency": {"fixed_ms": 0}, "rules": [{"do": "slow", "extra_ms": 60, "match": {"first": 1}}]}
    async with simulator(scenario) as sim:
        reader, writer = await connect(sim.url)
        writer.write(request(template("+16505550001")) + request(template("+16505550002")))
        first, second = await answer(reader), await answer(reader)
        writer.write(request(template("+16505550003")))
        third = await answer(reader)
        writer.close()
    inputs = [json.loads(body)["contacts"][0]["input"] for _, _, body in (first, second, third)]
    assert inputs == ["+16505550001", "+16505550002", "+16505550003"]


async def test_a_request_in_small_pieces_is_one_request() -> None:
    async with simulator(PROMPT) as sim:
        reader, writer = await connect(sim.url)
        data = request(template())
        for place in range(0, len(data), 7):
            writer.write(data[place : place + 7])
            await writer.drain()
        status, _, _ = await answer(reader)
        writer.close()
        assert (status, (await sim.totals())["requests"]) == (200, 1)


@pytest.mark.parametrize("accepted", [True, False])
async def test_close_after_reading_ends_the_connection_without_a_byte(accepted: bool) -> None:
    async with simulator(PROMPT | {"rules": [{"do": "close_after_reading", "accepted": accepted}]}) as sim:
        assert await raw(sim.url, request(template())) == b""
        [entry] = await sim.ledger()
    assert (entry["outcome"], entry["accepted"], entry["token"]) == ("closed", accepted, "tg1:c:1:1")


async def test_reset_after_reading_is_a_real_reset() -> None:
    async with simulator(PROMPT | {"rules": [{"do": "reset_after_reading"}]}) as sim:
        with pytest.raises(ConnectionResetError):
            await raw(sim.url, request(template()))
        [entry] = await sim.ledger()
    assert (entry["outcome"], entry["accepted"]) == ("reset", True)


async def test_close_before_reading_acts_on_the_headers_alone() -> None:
    async with simulator(PROMPT | {"rules": [{"do": "close_before_reading"}]}) as sim:
        head, blank, _ = request(template()).partition(b"\r\n\r\n")
        assert await raw(sim.url, head + blank) == b""
        [entry] = await sim.ledger()
    assert (entry["outcome"], entry["to"], entry["accepted"]) == ("closed_unread", None, False)


async def test_never_answer_keeps_the_connection_open_in_silence() -> None:
    async with simulator(PROMPT | {"rules": [{"do": "never_answer", "match": {"first": 1}}]}) as sim:
        reader, writer = await connect(sim.url)
        silence = asyncio.create_task(reader.read(1))
        writer.write(request(template()))
        await sim.until(lambda totals: totals["outcomes"].get("unanswered") == 1)
        status, _, _ = await send(sim.url)  # the process is alive and answers others
        assert (status, silence.done()) == (200, False)
        silence.cancel()
        writer.close()


async def test_half_a_reply_breaks_off_inside_the_body() -> None:
    async with simulator(PROMPT | {"rules": [{"do": "half_reply"}]}) as sim:
        data = await raw(sim.url, request(template()))
    head, _, body = data.partition(b"\r\n\r\n")
    promised = int(re.findall(rb"content-length: (\d+)", head)[0])
    assert 0 < len(body) < promised


async def test_a_bad_gateway_is_html_and_an_error_carries_its_headers() -> None:
    rules = [
        {"do": "html_502", "match": {"first": 1}},
        {"do": "error", "code": 130429, "headers": {"Retry-After": "3"}},
    ]
    async with simulator(PROMPT | {"rules": rules}) as sim:
        gateway, throttle = await send(sim.url), await send(sim.url)
    assert (gateway[0], gateway[1]["content-type"]) == (502, "text/html; charset=utf-8")
    assert (throttle[0], throttle[1]["retry-after"]) == (429, "3")


async def test_the_grant_of_a_number_can_be_cut_while_it_runs() -> None:
    async with simulator(PROMPT | {"numbers": {NUMBER: {"limit": 80}}}) as sim:
        assert (await send(sim.url))[0] == 200
        await sim.replace({"latency": {"fixed_ms": 0}, "numbers": {NUMBER: {"limit": 0}}})
        assert (await send(sim.url))[0] == 429
        numbers = (await sim.summary())["numbers"]
    assert (numbers[NUMBER]["requests"], numbers[NUMBER]["accepted"]) == (2, 1)
    assert numbers[NUMBER]["refused"] == {"130429": 1}


async def test_a_bad_scenario_is_refused_and_the_one_in_force_stays() -> None:
    async with simulator(PROMPT) as sim:
        with pytest.raises(AssertionError, match="nubmers"):
            await sim.replace({"nubmers": {}})
        assert (await send(sim.url))[0] == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 404),
        (b"GET /_ledger?after=x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 70_000 + b"\r\n\r\n", 413),
        (b"POST /_webhook HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\n{", 400),
    ],
)
async def test_a_request_that_makes_no_sense_is_answered_and_does_no_harm(data: bytes, status: int) -> None:
    async with simulator(PROMPT) as sim:
        assert (await raw(sim.url, data)).startswith(b"HTTP/1.1 %d " % status)
        assert (await send(sim.url))[0] == 200


async def test_the_ledger_is_paged_over_the_wire() -> None:
    async with simulator(PROMPT | {"any_number": {"limit": 1000}}) as sim:
        reader, writer = await connect(sim.url)
        for n in range(25):
            writer.write(request(template(token=f"tg1:c:{n}:1")))
            await answer(reader)
        writer.close()
        page = await raw(
            sim.url, b"GET /_ledger?after=20&limit=3 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        entries = await sim.ledger()
    lines = page.partition(b"\r\n\r\n")[2].splitlines()
    assert [json.loads(line)["n"] for line in lines] == [21, 22, 23]
    assert [entry["token"] for entry in entries] == [f"tg1:c:{n}:1" for n in range(25)]
