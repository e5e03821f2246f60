"""`make screenshots`: the pictures of the README, from a real simulated run. Needs about three minutes.

Each is made by the console's own export, from an engine that really sends to the simulator.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from console.app import ConsoleApp
from console.attached import AttachedLink
from console.export import svg_to_png
from console.host import EngineHost
from console.link import EngineLink
from engine.config import Config, RunOptions
from engine.demo import Setting, world
from engine.domain.snapshot import Snapshot
from engine.drills import QUICK

Story = Callable[[EngineHost, Config], Coroutine[Any, Any, None]]

PICTURES = Path(__file__).parents[2] / "screenshots"
SMALL, LARGE = (80, 24), (120, 40)
PATIENCE = 90.0

GOOD_DAY: dict[str, object] = {
    "numbers": {
        "106540352242922": {"limit": 80},
        "106540352242923": {"limit": 80},
        "106540352242924": {"limit": 20},
    },
    "latency": {"median_ms": 180, "p95_ms": 450},
    "statuses": {
        "failures": [{"code": 131026, "share": 0.015}],
        "delivered_s": [0.2, 3.0],
        "read_s": [0.5, 3.0],
    },
}

BAD_DAY: dict[str, object] = {
    **GOOD_DAY,
    "statuses": {
        "lost_share": 0.5,
        "delivered_s": [0.2, 3.0],
        "failures": [{"code": 131026, "share": 0.015}],
    },
    "rules": [
        {"do": "error", "code": 131048, "match": {"number": "106540352242923", "from_s": 14}},
        {"do": "error", "code": 131000, "match": {"share": 0.02}},
        {"do": "never_answer", "match": {"number": "106540352242922", "every": 60}},
    ],
}


def main(*wanted: str) -> None:
    """Make them all, or those of the named days: good, throttled, bad, nodes."""
    PICTURES.mkdir(exist_ok=True)
    days = {
        "good": (GOOD_DAY, _good_day),
        "throttled": (_throttled(), _throttled_day),
        "bad": (BAD_DAY, _bad_day),
        "nodes": (GOOD_DAY, _three_nodes),
    }
    for name in wanted or days:
        _run(*days[name])


def _throttled() -> dict[str, object]:
    numbers = {
        "106540352242922": {"limit": 25},
        "106540352242923": {"limit": 80},
        "106540352242924": {"limit": 20},
    }
    return {**GOOD_DAY, "numbers": numbers}


def _run(scenario: dict[str, object], story: Story) -> None:
    with tempfile.TemporaryDirectory() as place:
        day = Path(place) / "day.json"
        day.write_text(json.dumps(scenario), "utf-8")
        setting = Setting(people=12_000, unknown_policy="resend", unknown_after=40.0)
        with world(day, setting) as config:
            config = config.model_copy(update={"alerts": QUICK, "request_deadline": 5.0})
            asyncio.run(_with_engine(config, story))


async def _with_engine(config: Config, story: Story) -> None:
    host = EngineHost(config, RunOptions(demo=True))
    await asyncio.to_thread(host.start)
    try:
        await story(host, config)
    finally:
        host.drain("the pictures are made")
        await asyncio.to_thread(host.join)


async def _good_day(host: EngineHost, _config: Config) -> None:
    await _until(host, lambda s: sum(c.accepted for c in s.campaigns) > 2500)
    await _picture(host, "overview-80x24", SMALL)
    await _picture(host, "overview-120x40", LARGE)
    os.environ["NO_COLOR"] = "1"
    await _picture(host, "overview-no-color-80x24", SMALL)
    del os.environ["NO_COLOR"]
    await _picture(host, "help-80x24", SMALL, "question_mark")


async def _throttled_day(host: EngineHost, _config: Config) -> None:
    await _until(host, lambda s: any("throttled" in a.cause for a in s.alerts) and s.uptime_s > 20)
    await _picture(host, "throttled-120x40", LARGE)


async def _bad_day(host: EngineHost, _config: Config) -> None:
    await _until(host, lambda s: any(n.state == "held" for n in s.numbers))
    await _until(host, lambda s: s.uptime_s > 24)
    await _picture(host, "held-120x40", LARGE)
    await _picture(host, "held-80x24", SMALL)
    await _picture(host, "row-timeline-80x24", SMALL, "2", "enter", "enter", "enter")
    await _picture(host, "holds-80x24", SMALL, "h")
    await _until(host, lambda s: s.unknown > 10)
    await _picture(host, "reconcile-80x24", SMALL, "R")


async def _three_nodes(host: EngineHost, config: Config) -> None:
    """Two more nodes beside the one in this process; one of them is killed for the second picture."""
    others = [_node(config, name) for name in ("eng2", "eng3")]
    link = AttachedLink(config, read_only=False)
    await asyncio.to_thread(link.start)
    try:
        await _until(link, lambda s: len({n.owner for n in s.numbers} - {None}) == 3)
        await _until(host, lambda s: s.uptime_s > 20)
        await _picture(link, "attach-120x40", LARGE)
        others[0].kill()
        await _until(link, lambda s: any(not n.alive for n in s.nodes))
        await _picture(link, "attach-dead-node-80x24", SMALL, "N")
    finally:
        await asyncio.to_thread(link.close)
        for other in others:
            other.kill()
            other.wait()


def _node(config: Config, name: str) -> "subprocess.Popen[bytes]":
    environ = {key: value for key, value in os.environ.items() if not key.startswith("TIDEGATE_")}
    environ |= {"TIDEGATE_DATA_DIR": str(config.data_dir), "TIDEGATE_API_URL": config.api_url}
    environ |= {"TIDEGATE_METRICS_LISTEN": "off"}
    command = [sys.executable, "-m", "console.main", "run", "--no-ui", "--no-webhook", "--node", name]
    return subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


async def _picture(link: EngineLink, name: str, size: tuple[int, int], *keys: str) -> None:
    app = ConsoleApp(link, mode="attach" if isinstance(link, AttachedLink) else "demo")
    async with app.run_test(size=size) as pilot:
        await pilot.pause(1.2)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.8)
        svg = app.export_screenshot(title=f"tidegate {name}")
    (PICTURES / f"{name}.svg").write_text(svg, "utf-8")
    (PICTURES / f"{name}.png").write_bytes(svg_to_png(svg))
    print(PICTURES / f"{name}.png")


async def _until(link: EngineLink, done: Callable[[Snapshot], bool]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while (snapshot := link.snapshot()) is None or not done(snapshot):
                await asyncio.sleep(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
