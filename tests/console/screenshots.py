"""`make screenshots`: the pictures of the README, from a real simulated run. Needs about a minute and a half.

Each is made by the console's own export, from an engine that really sends to the simulator.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from console.app import ConsoleApp
from console.export import svg_to_png
from console.host import EngineHost
from engine.config import Config, RunOptions
from engine.demo import world
from engine.domain.snapshot import Snapshot

PICTURES = Path(__file__).parents[2] / "screenshots"
SMALL, LARGE = (80, 24), (120, 40)
PATIENCE = 60.0

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
    "rules": [
        {"do": "error", "code": 131048, "match": {"number": "106540352242923", "from_s": 14}},
        {"do": "error", "code": 131000, "match": {"share": 0.02}},
        {"do": "never_answer", "match": {"number": "106540352242922", "every": 60}},
    ],
}


def main() -> None:
    """Make them all."""
    PICTURES.mkdir(exist_ok=True)
    _run(GOOD_DAY, _good_day)
    _run(_throttled(), _throttled_day)
    _run(BAD_DAY, _bad_day)


def _throttled() -> dict[str, object]:
    numbers = {
        "106540352242922": {"limit": 25},
        "106540352242923": {"limit": 80},
        "106540352242924": {"limit": 20},
    }
    return {**GOOD_DAY, "numbers": numbers}


def _run(scenario: dict[str, object], story: Callable[[EngineHost], "asyncio.Future[None] | object"]) -> None:
    with tempfile.TemporaryDirectory() as place:
        day = Path(place) / "day.json"
        day.write_text(json.dumps(scenario), "utf-8")
        with world(day) as config:
            asyncio.run(_with_engine(config, story))


async def _with_engine(config: Config, story: Callable[[EngineHost], object]) -> None:
    host = EngineHost(config, RunOptions(demo=True))
    await asyncio.to_thread(host.start)
    try:
        await story(host)  # type: ignore[misc]
    finally:
        host.drain("the pictures are made")
        await asyncio.to_thread(host.join)


async def _good_day(host: EngineHost) -> None:
    await _until(host, lambda s: sum(c.accepted for c in s.campaigns) > 2500)
    await _picture(host, "overview-80x24", SMALL)
    await _picture(host, "overview-120x40", LARGE)
    os.environ["NO_COLOR"] = "1"
    await _picture(host, "overview-no-color-80x24", SMALL)
    del os.environ["NO_COLOR"]
    await _picture(host, "reconcile-80x24", SMALL, "R")
    await _picture(host, "help-80x24", SMALL, "question_mark")


async def _throttled_day(host: EngineHost) -> None:
    await _until(host, lambda s: any(n.state == "slowed" for n in s.numbers) and s.uptime_s > 20)
    await _picture(host, "throttled-120x40", LARGE)


async def _bad_day(host: EngineHost) -> None:
    await _until(host, lambda s: any(n.state == "held" for n in s.numbers))
    await _until(host, lambda s: s.uptime_s > 24)
    await _picture(host, "held-120x40", LARGE)
    await _picture(host, "held-80x24", SMALL)


async def _picture(host: EngineHost, name: str, size: tuple[int, int], *keys: str) -> None:
    app = ConsoleApp(host, mode="demo")
    async with app.run_test(size=size) as pilot:
        await pilot.pause(1.2)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.8)
        svg = app.export_screenshot(title=f"tidegate {name}")
    (PICTURES / f"{name}.svg").write_text(svg, "utf-8")
    (PICTURES / f"{name}.png").write_bytes(svg_to_png(svg))
    print(PICTURES / f"{name}.png")


async def _until(host: EngineHost, done: Callable[[Snapshot], bool]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while (snapshot := host.snapshot()) is None or not done(snapshot):
                await asyncio.sleep(0.2)


if __name__ == "__main__":
    main()
