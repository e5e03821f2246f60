"""A night seen from outside: a real Prometheus scrapes a real engine whose provider turns bad, and both say the same.

The engine runs in this process, so that its snapshot (what the console shows) can be compared at the same moment.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from engine.app import open_engine
from engine.clock import now
from engine.config import Address, Config, RunOptions
from engine.control import audit
from engine.domain.thresholds import Thresholds, thresholds
from engine.node import Engine
from engine.observe.dashboard import dashboard
from engine.observe.rules import as_yaml
from tests.support.prometheus import Prometheus, needs_prometheus, prometheus
from tests.support.simulator import APP_SECRET, TOKEN
from tests.support.world import NUMBER, SECOND, World, free_port, scenario, world

QUICK = thresholds(
    "throttled_for=2s, failed_share=2%, delivered_after=3s, silence=6s, unknown_growth=3, deadline_for=4s, calm=1s"
)
"""The rules as they are, in a hurry."""

EVER = 'count by (kind, subject) (max_over_time(ALERTS{alertstate="firing"}[10m]))'
WITHIN_S = 60.0
PEOPLE = 8000
"""At 40 a second they are done a good while before the deadline, at 15 long after it."""

SPAM = {"do": "error", "code": 131048, "match": {"number": SECOND}}
BAD = [
    SPAM,
    {"do": "never_answer", "accepted": True, "match": {"number": NUMBER, "share": 0.1}},
    {"do": "error", "code": 131026, "match": {"number": NUMBER, "share": 0.25}},
]


LOWER = {NUMBER: {"limit": 15, "window_ms": 985}, SECOND: {"limit": 20, "window_ms": 985}}
"""What the provider grants from then on."""


@dataclass
class Night:
    """A running engine, and the Prometheus that watches it."""

    world: World
    engine: Engine
    outside: Prometheus

    @property
    def on_the_console(self) -> set[str]:
        """Keys of the active alerts of the newest snapshot."""
        assert self.engine.latest is not None
        return {alert.key for alert in self.engine.latest.alerts if alert.active}

    async def both_say(self, expected: set[str]) -> None:
        """Wait until Prometheus and the console find exactly this."""
        await self.outside.until(lambda firing: firing == expected == self.on_the_console, WITHIN_S)

    async def ever_fired(self) -> set[str]:
        """Whatever fired in Prometheus since it runs."""
        return {f"{s['metric']['kind']}:{s['metric']['subject']}" for s in await self.outside.query(EVER)}


@asynccontextmanager
async def night(w: World, directory: Path, chosen: Thresholds) -> AsyncIterator[Night]:
    metrics, api = free_port(), free_port()
    config = Config(
        database_url=SecretStr(w.url),
        api_url=w.sim.url,
        data_dir=directory / "data",
        listen=Address("127.0.0.1", w.port),
        metrics_listen=Address("127.0.0.1", metrics),
        app_secret=(SecretStr(APP_SECRET),),
        request_deadline=3.0,
        grace=2.0,
        node="eng1",
        alerts=chosen,
    )
    async with open_engine(config, RunOptions(no_ui=True), "test") as engine:
        running = asyncio.create_task(engine.run())
        try:
            target = f"127.0.0.1:{metrics}"
            async with prometheus(target, as_yaml(chosen), directory / "prometheus", api) as outside:
                yield Night(w, engine, outside)
        finally:
            engine.drain("the test is over")
            await running


def expressions() -> list[str]:
    """All PromQL of the dashboard, as Grafana would send it with everything chosen."""
    targets = [target for panel in dashboard()["panels"] for target in panel.get("targets", [])]
    variables = {"$__rate_interval": "30s", "$number": ".*", "$campaign": ".*"}
    found = [str(target["expr"]) for target in targets]
    for name, value in variables.items():
        found = [expr.replace(name, value) for expr in found]
    return found


@needs_prometheus
async def test_a_bad_provider_lights_exactly_its_alerts_in_prometheus_and_on_the_console(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", TOKEN)
    async with world(database_url, scenario(), {NUMBER: 40, SECOND: 20}) as w:
        await w.campaign(people=PEOPLE, deadline=now() + timedelta(seconds=320))
        async with night(w, tmp_path, QUICK) as watched:
            # A good hour: everything is accepted, delivered, read.
            await w.until_counts(read=400)
            await watched.both_say(set())

            # One number is stopped; the other goes on.
            await w.sim.replace(scenario(SPAM))
            held = {f"number_held:{SECOND}"}
            await watched.both_say(held)

            # The other is throttled, loses answers, meets strangers, and no webhook comes any more.
            await w.sim.replace(scenario(*BAD, statuses={"enabled": False}, numbers=LOWER))
            expected = held | {
                f"number_throttled:{NUMBER}",
                f"unknown_growing:{NUMBER}",
                f"webhook_silent:{NUMBER}",
                "campaign_failing:reminder",
                "deadline_at_risk:reminder",
            }
            await watched.both_say(expected)
            assert await watched.ever_fired() == expected

            empty = [expr for expr in expressions() if not await watched.outside.query(expr)]
            assert empty == []
            await _the_page_agrees(watched, expected)
        assert (await audit.run(w.db)).holds


async def _the_page_agrees(watched: Night, expected: set[str]) -> None:
    """The engine's own alerts, as exported, and a few figures against the snapshot and the database."""

    async def exported() -> bool:
        """What Prometheus has read last may be older than the snapshot."""
        active = await watched.outside.query("tidegate_alert_active")
        return {f"{s['metric']['alert']}:{s['metric']['subject']}" for s in active} == expected

    await watched.world.until(exported, "the same alerts as exported")
    (balanced,) = await watched.outside.query("tidegate_campaign_books_balanced")
    assert balanced["value"][1] == "1"
    (planned,) = await watched.outside.query("tidegate_campaign_planned_rows")
    assert planned["value"][1] == str(PEOPLE)
    (silent,) = await watched.outside.query(f'tidegate_webhook_silence_seconds{{number="{NUMBER}"}} > 6')
    assert float(silent["value"][1]) > 6


async def test_a_metrics_port_that_is_taken_ends_with_2_and_says_what_to_change(database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        async with world(database_url, scenario(), {NUMBER: 40}) as w:
            ended = await (await w.engine(metrics_listen=where)).ended()
    assert ended.code == 2
    assert f"Another program listens on {where}: stop it, or set TIDEGATE_METRICS_LISTEN" in ended.err
    assert "Traceback" not in ended.err


async def test_a_node_serves_its_page_without_a_screen_unless_it_is_switched_off(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        await w.campaign(people=20)
        engine = await w.engine()
        await w.until_counts(read=20)
        (served,) = engine.events("metrics are served")
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            page = await client.get(served["url"])
            health = await client.get(served["url"].replace("/metrics", "/healthz"))
        assert (page.status_code, health.status_code) == (200, 200)
        assert f'tidegate_number_rate_messages_per_second{{number="{NUMBER}"}} 40.0' in page.text
        assert "+5511" not in page.text, "a person's number is on the page"

        other = await w.engine("--node", "other", port=free_port(), metrics_listen="off")
        await w.until(
            lambda: _logged(other, "leases wait", "number taken", "summary"), "the other node's first line"
        )
        assert other.events("metrics are served") == []


async def _logged(process: Any, *events: str) -> bool:
    return any(process.events(event) for event in events)
