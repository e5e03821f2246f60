"""A real Prometheus and promtool for tests: Debian's, found where `make check` puts them or on the PATH."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
PLACES = (Path(sys.prefix, "prometheus/usr/bin"), ROOT / ".venv/prometheus/usr/bin")
READY_WITHIN_S = 60.0
BETWEEN_LOOKS_S = 0.1


def tool(name: str) -> str | None:
    """Path of `prometheus` or `promtool`; None where there is none."""
    here = [str(place / name) for place in PLACES if (place / name).is_file()]
    return shutil.which(name) or next(iter(here), None)


needs_prometheus = pytest.mark.skipif(
    tool("prometheus") is None or tool("promtool") is None,
    reason="Prometheus is not at hand: `make prometheus` fetches Debian's package, where it can be had",
)


def promtool(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool to its end."""
    program = tool("promtool")
    assert program is not None
    return subprocess.run(
        [program, *arguments], input=stdin, capture_output=True, text=True, check=False, timeout=60
    )


class Prometheus:
    """A running server's API."""

    def __init__(self, base: str, client: httpx.AsyncClient) -> None:
        self._base = base
        self._client = client

    async def query(self, expr: str) -> list[dict[str, Any]]:
        """The samples of an instant query; AssertionError tells why there are none."""
        reply = await self._client.post(f"{self._base}/api/v1/query", data={"query": expr})
        answer = reply.json()
        assert answer["status"] == "success", f"{expr}: {answer.get('error')}"
        data = answer["data"]
        result: list[dict[str, Any]] = data["result"] if data["resultType"] == "vector" else [data]
        return result

    async def firing(self) -> set[str]:
        """kind:subject of every alert that fires."""
        reply = await self._client.get(f"{self._base}/api/v1/alerts")
        alerts = reply.json()["data"]["alerts"]
        labels = [alert["labels"] for alert in alerts if alert["state"] == "firing"]
        return {f"{one['kind']}:{one['subject']}" for one in labels}

    async def until(self, reached: Callable[[set[str]], bool], within_s: float) -> set[str]:
        """The first set of firing alerts for which `reached` holds; TimeoutError tells the last one seen."""
        seen: set[str] = set()
        try:
            async with asyncio.timeout(within_s):
                # Polled: the state is another process's, and no event of this one tells of it.
                while not reached(seen := await self.firing()):
                    await asyncio.sleep(BETWEEN_LOOKS_S)
        except TimeoutError:
            raise TimeoutError(f"not within {within_s} s; firing are {sorted(seen)}") from None
        return seen


@asynccontextmanager
async def prometheus(target: str, rules: str, directory: Path, port: int) -> AsyncIterator[Prometheus]:
    """A server of our own on loopback that scrapes `target` (host:port) and evaluates `rules` every half second."""
    program = tool("prometheus")
    assert program is not None
    _configure(directory, target, rules)
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program,
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=60.0) as client:
            base = f"http://127.0.0.1:{port}"
            await _ready(base, client, process, directory / "log")
            yield Prometheus(base, client)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _configure(directory: Path, target: str, rules: str) -> None:
    config = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "tidegate", "static_configs": [{"targets": [target]}]}],
    }
    directory.mkdir()
    (directory / "rules.yml").write_text(rules)
    (directory / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML


async def _ready(
    base: str, client: httpx.AsyncClient, process: asyncio.subprocess.Process, log: Path
) -> None:
    async with asyncio.timeout(READY_WITHIN_S):
        while process.returncode is None:
            with contextlib.suppress(httpx.TransportError):
                if (await client.get(f"{base}/-/ready")).status_code == 200:
                    return
            await asyncio.sleep(BETWEEN_LOOKS_S)
    raise AssertionError(f"Prometheus ended at once; its log is {log}")
