"""The provider's double as a process of its own, for any test that sends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support import forks

READY_WITHIN_S = 60.0
ENDS_WITHIN_S = 60.0
BETWEEN_LOOKS_S = 0.02
TOKEN = "simulator-token"
APP_SECRET = "simulator-secret"


class Simulator:
    """A running simulator. `base` is its address, `url` the API's with its version, `pid` for a kill."""

    def __init__(
        self, base: str, process: asyncio.subprocess.Process | forks.Forked, client: httpx.AsyncClient
    ) -> None:
        self.base, self.url = base, f"{base}/v25.0"
        self.process, self.pid = process, process.pid
        self._client = client

    async def totals(self) -> dict[str, Any]:
        """Running counts, cheap to ask for; see engine/simulator/control.py."""
        return await self._json("GET", "/_totals")

    async def summary(self, window_ms: int = 1000) -> dict[str, Any]:
        """The full count over the ledger: sliding windows, repeated rows, statuses, webhooks."""
        return await self._json("GET", f"/_summary?window_ms={window_ms}")

    async def ledger(self) -> list[dict[str, Any]]:
        """Every request received, in order of arrival."""
        entries: list[dict[str, Any]] = []
        while page := await self._page(len(entries)):
            entries += page
        return entries

    async def replace(self, scenario: Mapping[str, Any]) -> None:
        """Put another scenario in force; secrets and webhook stay unless it names others."""
        await self._json("PUT", "/_scenario", scenario)

    async def inbound(self, number: str, writer: str, text: str) -> str:
        """A person writes to the number; returns the wamid."""
        reply = await self._json("POST", "/_inbound", {"number": number, "from": writer, "text": text})
        return str(reply["id"])

    async def webhook(self, value: object) -> None:
        """Post any JSON value as a signed webhook."""
        await self._json("POST", "/_webhook", value)

    async def until(
        self, reached: Callable[[dict[str, Any]], bool], within_s: float = 60.0
    ) -> dict[str, Any]:
        """The first totals for which `reached` holds; TimeoutError tells the last ones seen."""
        totals: dict[str, Any] = {}
        try:
            async with asyncio.timeout(within_s):
                # Polled: the state is another process's, and no event of this one tells of it.
                while not reached(totals := await self.totals()):
                    await asyncio.sleep(BETWEEN_LOOKS_S)
        except TimeoutError:
            raise TimeoutError(f"not reached within {within_s} s; the simulator last said {totals}") from None
        return totals

    async def _page(self, after: int) -> list[dict[str, Any]]:
        reply = await self._client.get(f"{self.base}/_ledger", params={"after": after, "limit": 20_000})
        reply.raise_for_status()
        return [json.loads(line) for line in reply.text.splitlines()]

    async def _json(self, method: str, path: str, value: object = None) -> dict[str, Any]:
        content = None if value is None else json.dumps(value)
        reply = await self._client.request(method, self.base + path, content=content)
        if reply.status_code != 200:
            raise AssertionError(f"{method} {path} was answered {reply.status_code}: {reply.text}")
        answer: dict[str, Any] = reply.json()
        return answer


@asynccontextmanager
async def simulator(
    scenario: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    forked: bool = False,
) -> AsyncIterator[Simulator]:
    """Start a simulator on a free port, and end it whatever happens. `forked`: without a new interpreter.

    Without a `webhook` in the scenario none are posted, so that a test never knocks on a stranger's port.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-simulator-") as directory:
        path = Path(directory, "scenario.json")
        _write(path, {"webhook": ""} | dict(scenario or {}))
        start = _forked if forked and forks.SUPPORTED else _spawned
        async with (
            start(("--port", "0", "--scenario", str(path)), environment or {}) as (base, process),
            httpx.AsyncClient(trust_env=False, verify=False, timeout=60.0) as client,
        ):
            yield Simulator(base, process, client)


@asynccontextmanager
async def _spawned(
    flags: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    process = await spawn(*flags, environment=environment)
    try:
        yield await _listening(process), process
    finally:
        await end(process)


@asynccontextmanager
async def _forked(
    flags: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[tuple[str, forks.Forked]]:
    directory = Path(flags[-1]).parent
    out, err = directory / "out", directory / "err"
    process = await forks.session.spawn(
        forks.SIMULATOR, flags, _inherited() | dict(environment), directory, out, err
    )
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            # Polled: a file tells nobody that it has grown.
            while not (said := out.read_text()).endswith("\n"):
                assert process.returncode is None, f"the simulator did not start: {err.read_text()}"
                await asyncio.sleep(BETWEEN_LOOKS_S)
        yield str(json.loads(said.splitlines()[0])["listening"]), process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def spawn(*flags: str, environment: Mapping[str, str] | None = None) -> asyncio.subprocess.Process:
    """`python -m engine.simulator --exit-with-stdin`, without the tester's own TIDEGATE_* settings."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "engine.simulator", "--exit-with-stdin"),
        *flags,
        cwd=Path(__file__).parents[2],
        env=_inherited() | dict(environment or {}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def end(process: asyncio.subprocess.Process) -> None:
    """End the process by closing its stdin, and kill it if it stays."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.communicate()


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}


def _write(path: Path, scenario: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(scenario))


async def _listening(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.timeout(READY_WITHIN_S):
        line = await process.stdout.readline()
        if not line:
            raise AssertionError(f"the simulator did not start: {(await process.stderr.read()).decode()}")
    return str(json.loads(line)["listening"])
