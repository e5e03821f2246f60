"""A whole small world for journeys: a database, the provider's double, numbers, people, and engines that are
processes of their own.

    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        await w.campaign("reminder", people=60)
        engine = await w.engine("--until-finished", "--linger", "1s")
        assert (await engine.ended()).code == 0
        await w.prove()
"""

from __future__ import annotations

import asyncio
import csv
import itertools
import math
import os
import secrets
import socket
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.commands import Commands
from engine.control import audit
from engine.domain.recipient import State
from engine.intake.importer import import_audience
from engine.postgres.campaigns import Draft
from engine.postgres.pool import Pool, open_pool
from tests.support.process import Ended, Process, put_down, spawn
from tests.support.simulator import APP_SECRET, TOKEN, Simulator, simulator

NUMBER = "106540352242922"
SECOND = "106540352242923"
BODY = ("name", "date")
BETWEEN_LOOKS_S = 0.05
WITHIN_S = 60.0
WINDOW_MS = 985
"""What left one second apart may arrive up to 15 ms closer together (behaviour, invariant 3)."""

AMPLE = {"limit": 1_000_000}
"""What the provider grants unless a test says otherwise: a machine that stands still for a second brings a second's
requests at once, which is no fault of the pacing. That is judged by when they left, not by refusals."""

LATE_US = 15_000

COUNTS = "SELECT state, count(*) AS n FROM recipient GROUP BY 1"
TRIES = "SELECT recipient_id, n, outcome FROM try WHERE outcome = ANY($1) ORDER BY 1, 2"
LEFT = ["accepted", "refused", "unknown"]
"""Outcomes of tries that left, or may have, as their sender records them."""

LATER = ["proven", "failed_later"]
"""What statuses tell of a try, also of one that nobody recorded."""

LEFT_AT = "SELECT recipient_id, n, sent_at FROM try WHERE outcome = ANY($1)"
STAMPS = """
SELECT l.base_mono_us, l.us FROM send_log l JOIN number n USING (number_id)
 WHERE n.id = $1 AND l.rate <= $2 ORDER BY l.id
"""
TAKE = "SELECT l.epoch FROM lease l JOIN number n USING (number_id) WHERE n.id = $1"


def scenario(*rules: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    """A quick provider: answers within 60 ms, everybody reads within half a second. `settings` go on top."""
    return {
        "latency": {"median_ms": 30, "p95_ms": 60},
        "statuses": quick_statuses(),
        "rules": list(rules),
        "any_number": AMPLE,
    } | settings


SILENT = {"enabled": False}
"""Statuses of a provider that tells nothing by itself."""


def quick_statuses(**settings: Any) -> dict[str, Any]:
    """Everybody reads within half a second."""
    life = {"sent_s": [0.0, 0.1], "delivered_s": [0.0, 0.2], "read_s": [0.0, 0.2], "read_share": 1.0}
    return life | {"max_wait_ms": 50, "retry_first_ms": 200, "retry_max_ms": 1000} | settings


@dataclass
class World:
    """See the module. `rates` are messages/s by number; each number's limit is its rate unless told otherwise."""

    url: str
    db: Pool
    sim: Simulator
    directory: Path
    commands: Commands
    port: int
    rates: Mapping[str, float]
    environment: dict[str, str]
    processes: list[Process] = field(default_factory=list)
    _names: Any = field(default_factory=itertools.count)

    async def tidegate(self, *arguments: str, within_s: float = WITHIN_S) -> Ended:
        """Run one command to its end."""
        return await (await self._spawn(arguments, "command")).ended(within_s)

    async def engine(
        self, *flags: str, port: int | None = None, stderr: int | None = None, **settings: str
    ) -> Process:
        """`tidegate run --no-ui` with these flags. `settings`: lease="5s" stands for TIDEGATE_LEASE=5s."""
        more = {f"TIDEGATE_{name.upper()}": value for name, value in settings.items()}
        if port is not None:
            more["TIDEGATE_LISTEN"] = f"127.0.0.1:{port}"
        return await self._spawn(("run", "--no-ui", *flags), "engine", more, stderr)

    async def _spawn(
        self,
        arguments: tuple[str, ...],
        kind: str,
        more: Mapping[str, str] | None = None,
        stderr: int | None = None,
    ) -> Process:
        name = f"{kind}-{next(self._names)}"
        process = await spawn(
            arguments,
            self.environment | dict(more or {}),
            self.directory,
            name=name,
            stderr=stderr,
            forked=True,
        )
        self.processes.append(process)
        return process

    def audience(self, people: int, first: int = 0) -> Path:
        """A CSV file of so many people; their numbers end in 000000, 000001, …"""
        path = self.directory / f"people-{first}-{people}.csv"
        with path.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["phone", *BODY])
            for nth in range(first, first + people):
                writer.writerow([f"+551196{nth:07d}", f"Ana {nth}", "12/03"])
        return path

    async def campaign(
        self, name: str = "reminder", *, people: int, first: int = 0, start: bool = True, **draft: Any
    ) -> None:
        """A campaign on all numbers, with its people, started; as many may fail as will, unless told otherwise."""
        numbers = draft.pop("numbers", tuple(self.rates))
        await self.commands.create_campaign(
            Draft(name, tuple(numbers), "reminder_v2", "pt_BR", body=BODY, **({"max_failed": 1.0} | draft))
        )
        report = await import_audience(self.db, self.audience(people, first), campaign=name, author="test")
        assert report.taken == people
        if start:
            await self.commands.start_campaign(name)

    async def counts(self) -> Counter[State]:
        """Rows by state, of all campaigns, counted."""
        return Counter({State(r["state"].decode()): r["n"] for r in await self.db.fetch(COUNTS)})

    async def until(
        self, reached: Callable[[], Awaitable[object]], what: str, within_s: float = WITHIN_S
    ) -> None:
        """Wait for a condition on what others hold; TimeoutError tells where everything stands."""
        try:
            async with asyncio.timeout(within_s):
                # Polled: the state is other processes', and no event of this one tells of it.
                while not await reached():
                    self._fail_early(what)
                    await asyncio.sleep(BETWEEN_LOOKS_S)
        except TimeoutError:
            raise TimeoutError(f"not within {within_s} s: {what}; {await self._standing()}") from None

    async def ends(self) -> Counter[State]:
        """As `counts`, but whoever was written to stands in `read`: when an engine has ended, nobody hears the statuses
        that were still to come."""
        written_to = (State.SENT, State.DELIVERED)
        ends: Counter[State] = Counter()
        for state, n in (await self.counts()).items():
            ends[State.READ if state in written_to else state] += n
        return ends

    async def requests(self) -> int:
        """How many the provider has seen. It is asked twice: having stood still for a while, it may answer before it
        has read what came meanwhile."""
        await self.sim.totals()
        return int((await self.sim.totals())["requests"])

    async def until_counts(self, within_s: float = WITHIN_S, **least: int) -> None:
        """Wait until so many rows stand in each of these states: `until_counts(read=60)`."""

        async def reached() -> bool:
            counts = await self.counts()
            return all(counts[State[word.upper()]] >= n for word, n in least.items())

        await self.until(reached, f"rows {least}", within_s)

    async def until_requests(self, n: int, within_s: float = WITHIN_S) -> None:
        """Wait until the provider has seen so many requests in all."""

        async def reached() -> bool:
            return bool((await self.sim.totals())["requests"] >= n)

        await self.until(reached, f"{n} requests", within_s)

    async def campaign_state(self, name: str = "reminder") -> tuple[str, str | None]:
        row = await self.db.fetchrow("SELECT state, reason FROM campaign WHERE name = $1", name)
        assert row is not None
        return row["state"], row["reason"]

    async def until_campaign(self, state: str, name: str = "reminder", within_s: float = WITHIN_S) -> None:
        async def reached() -> bool:
            return (await self.campaign_state(name))[0] == state

        await self.until(reached, f"campaign {name} {state}", within_s)

    async def stamps(self, number: str = NUMBER, *, rate: float = math.inf) -> list[int]:
        """When each request left, in microseconds of its engine's clock, by our own send log; `rate`: of those that
        were let through at no more than this."""
        rows = await self.db.fetch(STAMPS, number, rate)
        return sorted(row["base_mono_us"] + us for row in rows for us in row["us"])

    async def epoch(self, number: str = NUMBER) -> int | None:
        """The epoch of the number's lease; None before the first."""
        epoch: int | None = await self.db.fetchval(TAKE, number)
        return epoch

    async def tell(self, entry: Mapping[str, Any], word: str) -> None:
        """The provider posts one status about a request of its ledger."""
        status = {
            "id": entry["wamid"],
            "status": word,
            "timestamp": "1750030073",
            "recipient_id": entry["to"][1:],
            "biz_opaque_callback_data": entry["token"],
        }
        metadata = {"display_phone_number": "15550783881", "phone_number_id": entry["number"]}
        value = {"messaging_product": "whatsapp", "metadata": metadata, "statuses": [status]}
        change = {"field": "messages", "value": value}
        whole = {"object": "whatsapp_business_account", "entry": [{"id": "W", "changes": [change]}]}
        await self.sim.webhook(whole)

    async def prove(self, *, exact_tries: bool = True) -> list[dict[str, Any]]:
        """Invariants 1, 2, 3 and 5 by `tidegate audit`'s own proof, and against the provider's ledger, which is
        returned. `exact_tries`: nothing crashed, so every request has exactly one try on record and back."""
        found = await audit.run(self.db)
        assert found.holds, [(check.text, check.offenders) for check in found.checks if not check.holds]
        summary = await self.sim.summary(WINDOW_MS)
        assert summary["repeated_rows"] == 0, summary["repeated"]
        ledger = await self.sim.ledger()
        late = await self.late(ledger)
        for number, rate in self.rates.items():
            arrived = [e["at_us"] for e in ledger if e["number"] == number and e["n"] not in late]
            assert most_in(arrived, WINDOW_MS * 1000) <= max(1, rate), f"{number} went over {rate}/s"
        await self._match(ledger, exact_tries)
        return ledger

    async def left_us(self) -> dict[tuple[int, int], float]:
        """By (row, n): when a try left, in microseconds of Unix time."""
        rows = await self.db.fetch(LEFT_AT, LEFT)
        return {(r["recipient_id"], r["n"]): r["sent_at"].timestamp() * 1e6 for r in rows}

    async def late(self, ledger: list[dict[str, Any]]) -> set[int]:
        """The `n` of entries that came later after they had left than the provider's clock allows for, or of whose
        leaving nobody knows (their sender died). None may have come before it left."""
        left = await self.left_us()
        found = set()
        for entry in ledger:
            at = left.get(try_of(entry)) if entry["token"] else None
            assert at is None or entry["unix_us"] - at > -LATE_US, f"{entry} came before it left"
            if at is None or entry["unix_us"] - at > LATE_US:
                found.add(entry["n"])
        return found

    async def _match(self, ledger: list[dict[str, Any]], exact: bool) -> None:
        requests = Counter(try_of(entry) for entry in ledger if entry["token"])
        assert set(requests.values()) <= {1}, "a try was requested twice"
        told = await self.db.fetch(TRIES, [*LEFT, *LATER])
        traces = {(r["recipient_id"], r["n"]) for r in told}
        assert set(requests) <= traces, "a request left without a trace"
        if exact:
            tries = Counter((r["recipient_id"], r["n"]) for r in told if r["outcome"] in LEFT)
            assert set(tries.values()) <= {1}, "a try is on record twice"
            unread = sum(1 for entry in ledger if not entry["token"])
            assert len(set(tries) - set(requests)) <= unread, "tries on record that never arrived"

    def _fail_early(self, what: str) -> None:
        for process in self.processes:
            if process.code in (1, 2):
                raise AssertionError(
                    f"waiting for {what}: a process ended with {process.code}: {process.err[-3000:]}"
                )

    async def _standing(self) -> str:
        counts = {state.word: n for state, n in (await self.counts()).items()}
        campaigns = [tuple(r) for r in await self.db.fetch("SELECT name, state, reason FROM campaign")]
        logs = [f"{'running' if p.running else 'ended'}: {p.said}" for p in self.processes[-2:]]
        return f"rows {counts}, campaigns {campaigns}, the provider {await self.sim.totals()}, logs {logs}"


def most_in(times: list[int], window_us: int) -> int:
    """The most in any half-open window (t - window, t]; times ascending."""
    most = first = 0
    for last, at in enumerate(times):
        while times[first] <= at - window_us:
            first += 1
        most = max(most, last - first + 1)
    return most


def try_of(entry: Mapping[str, Any]) -> tuple[int, int]:
    """(row, n) of a ledger entry, by its token."""
    _, _, row, n = str(entry["token"]).split(":")
    return int(row), int(n)


@asynccontextmanager
async def world(
    url: str,
    scenario: Mapping[str, Any],
    rates: Mapping[str, float],
    *,
    limits: Mapping[str, float] | None = None,
    api_url: str | None = None,
) -> AsyncIterator[World]:
    """Everything but a campaign and an engine. Each number's limit is `limits`, or exactly its rate. `api_url` takes
    the place of the simulator's own address."""
    port = free_port()
    granted = {number: (limits or rates)[number] for number in rates}
    whole = {"webhook": f"http://127.0.0.1:{port}/webhook"} | dict(scenario)
    async with AsyncExitStack() as up:
        directory = Path(up.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-world-")))
        sim = await up.enter_async_context(simulator(whole, forked=True))
        db = await up.enter_async_context(open_pool(url, size=4))
        environment = {
            "TIDEGATE_DATABASE_URL": url,
            "TIDEGATE_API_URL": api_url or sim.url,
            "TIDEGATE_DATA_DIR": str(directory / "data"),
            "TIDEGATE_LISTEN": f"127.0.0.1:{port}",
            "TIDEGATE_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
            "TIDEGATE_APP_SECRET": APP_SECRET,
            "TOKEN": TOKEN,
        }
        commands = Commands(db, author="test", origin="cli")
        made = World(url, db, sim, directory, commands, port, rates, environment)
        up.push_async_callback(_put_down_all, made)
        for nth, (number, rate) in enumerate(rates.items()):
            await commands.add_number(
                number,
                display=f"+551198888000{nth}",
                account="WABA1",
                token="env:TOKEN",
                limit=granted[number],
                rate=rate,
            )
        yield made


async def _put_down_all(made: World) -> None:
    for process in made.processes:
        await put_down(process)


def free_port() -> int:
    """A port that nobody listens on now, and that nobody gets who asks the kernel for any: it may be a while until it
    is used."""
    for port in _PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:  # taken
                continue
            return port
    raise AssertionError("unreachable: the ports go round")


def _ports() -> Iterator[int]:
    """Below those that the kernel gives out by itself, and other ones in each worker of a test run."""
    nth = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    mine = range(20_000 + 1_500 * nth, 21_500 + 1_500 * nth)
    begin = secrets.randbelow(len(mine))  # another run begins elsewhere
    return itertools.cycle([*mine[begin:], *mine[:begin]])


_PORTS = _ports()
