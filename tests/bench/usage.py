"""CPU time and memory of processes, read from the system: what a process used, not what it says of itself."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

STRANGERS_EVERY_S = 5.0
BUSY_CORES = 0.15
"""From this much on strangers are told of as noise."""


@dataclass(frozen=True, slots=True)
class Moment:
    """CPU seconds used so far, by name of the watched and process id; and of the machine, all cores together."""

    at: float
    used: Mapping[str, Mapping[int, float]]
    machine: float


@dataclass(frozen=True, slots=True)
class Span:
    """What lies between two moments. `used`: CPU seconds by name; `others`: cores that somebody else had busy."""

    seconds: float
    used: Mapping[str, float]
    others: float

    def cores(self, name: str) -> float:
        """The share of one core that `name` used: 1.0 is a whole core."""
        return self.used[name] / self.seconds


def look(watched: Mapping[str, psutil.Process]) -> Moment:
    """Now; each watched process with all that it has started."""
    machine = psutil.cpu_times()
    busy = sum(machine) - machine.idle - machine.iowait - machine.guest - machine.guest_nice
    used = {name: {one.pid: _cpu(one) for one in _family(process)} for name, process in watched.items()}
    return Moment(time.monotonic(), used, busy)


def between(before: Moment, after: Moment) -> Span:
    """From one look to a later one."""
    seconds = after.at - before.at
    used = {name: _grown(before.used[name], after.used[name]) for name in after.used}
    others = max(0.0, after.machine - before.machine - sum(used.values())) / seconds
    return Span(seconds, used, others)


class Strangers:
    """Watches, beside everything, how much of the machine somebody else has: figures are only as good as its rest."""

    def __init__(self, *ours: psutil.Process) -> None:
        self._ours = {str(one.pid): one for one in ours}
        self.cores: list[float] = []

    async def watch(self) -> None:
        """For ever."""
        before = look(self._ours)
        while True:
            await asyncio.sleep(STRANGERS_EVERY_S)
            after = look(self._ours)
            self.cores.append(between(before, after).others)
            before = after

    def said(self) -> str:
        """In words."""
        half, most = quantile(self.cores, 0.5), quantile(self.cores, 1.0)
        return f"strangers had {half:.0%} of a core busy meanwhile (median), at most {most:.0%}"

    def remark(self) -> str:
        """How far the figures are to be trusted."""
        half = quantile(self.cores, 0.5)
        if half >= BUSY_CORES:
            return (
                f"**Noise.** Others had {half:.0%} of a core of this machine: waits (p99, gaps, first pictures) hold "
                "their load too, rates that the machine limits are lower than it could do alone, and CPU for a send is "
                "dearer with cold caches. Ratios within this run are the better part of it."
            )
        return (
            f"**Noise.** Others had {half:.0%} of a core of this machine. The contestants, the simulator, Postgres and "
            "the bench itself share its cores all the same: read ratios within this run before figures by themselves."
        )


def main_thread_s(process: psutil.Process) -> float:
    """CPU seconds of the main thread so far, exact to the nanosecond."""
    ran, _, _ = Path(f"/proc/{process.pid}/task/{process.pid}/schedstat").read_text("ascii").split()
    return int(ran) / 1e9


def peak_mb(process: psutil.Process) -> float:
    """The most memory that the process has had resident, in MB (10^6 bytes)."""
    with contextlib.suppress(OSError), Path(f"/proc/{process.pid}/status").open(encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def _family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _grown(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """A process that has ended in between took what it used with it; one that is new counts from its start."""
    return sum(max(0.0, seconds - before.get(pid, 0.0)) for pid, seconds in after.items())


def quantile(samples: list[float], share: float) -> float:
    """The sample below which `share` of them lie; NaN without any."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
