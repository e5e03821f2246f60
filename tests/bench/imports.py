"""`tidegate import`, the command itself: rows per second from its start to its end, and the most memory it had."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from tests.bench.results import Row, Section
from tests.bench.usage import peak_mb
from tests.bench.world import ROOT, TIDEGATE, World
from tests.support import builders

SIZE = 1_000_000
LOOK_S = 0.02

LINES, BLANK, TWICE = 1_000_000, 400_000, 30_000
"""A list as people keep it: lines that hold nothing, and of those with somebody one in twenty that repeats a number."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One import: wall and CPU seconds, and MB of resident memory at its peak."""

    seconds: float
    cpu: float
    peak: float


async def measure(world: World) -> Section:
    """A file of one person first: what the command costs before it reads anybody."""
    dirty = LINES - BLANK - TWICE
    async with world.database() as (url, pool):
        for size in (1, SIZE, dirty):
            await builders.campaign(pool, f"import-{size}", body=["name", "date"])
        environment = world.environment(url)
        empty = await _run(world, environment, 1)
        ran = await _run(world, environment, SIZE)
        note = (
            f"{ran.seconds:.1f} s; {ran.peak:.0f} MB at most, {ran.peak - empty.peak:.0f} MB over the same command "
            "for one row"
        )
        rows = [
            Row(f"Import of {SIZE:,} rows, all new", SIZE / ran.seconds, 1000 * ran.cpu / SIZE, note=note)
        ]
        ran = await _run(world, environment, dirty, lines=LINES)
        note = (
            f"{ran.seconds:.1f} s; {dirty:,} taken, {TWICE:,} folded; {ran.peak - empty.peak:.0f} MB over the command "
            "for one row; the rate is of lines"
        )
        what = f"Import of {LINES:,} lines, {BLANK:,} of them blank, 5 % people twice"
        rows.append(Row(what, LINES / ran.seconds, 1000 * ran.cpu / LINES, note=note))
    return Section(rows)


async def _run(world: World, environment: Mapping[str, str], size: int, lines: int | None = None) -> Ran:
    """An import that takes `size` people, from as many lines or from a dirty file of `lines`."""
    path = world.directory / f"audience-{size}.csv"
    if lines is None:
        write_audience(path, size)
    else:
        _write_dirty(path)
    ran = await carry_out(environment, path, f"import-{size}", size)
    path.unlink()
    return ran


async def carry_out(environment: Mapping[str, str], path: Path, campaign: str, people: int) -> Ran:
    """The command, watched; RuntimeError unless it takes so many people."""
    words = (TIDEGATE, "import", path, "--campaign", campaign, "--json")
    pipe = asyncio.subprocess.PIPE
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *words, cwd=ROOT, env=dict(environment), stdout=pipe, stderr=pipe
    )
    answer = asyncio.create_task(process.communicate())
    peak, cpu = await _watch(psutil.Process(process.pid), answer)
    seconds = time.monotonic() - started
    out, err = answer.result()
    taken = json.loads(out)["taken"] if process.returncode == 0 else None
    if taken != people:
        raise RuntimeError(
            f"The import of {people} rows took {taken} (exit {process.returncode}): {err.decode()}"
        )
    return Ran(seconds, cpu, peak)


async def _watch(process: psutil.Process, ends: "asyncio.Task[tuple[bytes, bytes]]") -> tuple[float, float]:
    """Peak memory in MB and CPU seconds, as of the last look before the end."""
    peak = cpu = 0.0
    while not ends.done():
        try:
            times = process.cpu_times()
            peak, cpu = max(peak, peak_mb(process)), float(times.user + times.system)
        except psutil.NoSuchProcess:  # it has just ended
            pass
        await asyncio.wait({ends}, timeout=LOOK_S)
    return peak, cpu


def write_audience(path: Path, size: int) -> None:
    """So many people, from the same first one each time: a longer file holds all of a shorter one."""
    with path.open("w", encoding="utf-8") as file:
        file.write("phone,name,date\n")
        file.writelines(f"+55119{10_000_000 + n},José Ação {n},2026-12-0{n % 9 + 1}\n" for n in range(size))


def _write_dirty(path: Path) -> None:
    """Of every hundred lines forty are blank, and three repeat a number that stands well above them."""
    person = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("phone,name,date\n")
        for n in range(LINES):
            if n % 100 < 40:
                file.write("\n" if n % 2 else ",,\n")
                continue
            again = n % 100 > 96 and person > 50
            whose = person - 50 if again else person
            person += not again
            file.write(f"+55119{80_000_000 + whose},José Ação {whose},2026-12-01\n")
