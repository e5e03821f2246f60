"""CPU time and memory of processes, read from the system: what a process used, not what it says of itself."""

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class Moment:
    """CPU seconds used so far, by name of the watched; and of the whole machine, all cores together."""

    at: float
    used: Mapping[str, float]
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
    used = {name: sum(_cpu(one) for one in _family(process)) for name, process in watched.items()}
    return Moment(time.monotonic(), used, busy)


def between(before: Moment, after: Moment) -> Span:
    """From one look to a later one."""
    seconds = after.at - before.at
    used = {name: after.used[name] - before.used[name] for name in after.used}
    others = max(0.0, after.machine - before.machine - sum(used.values())) / seconds
    return Span(seconds, used, others)


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


def quantile(samples: list[float], share: float) -> float:
    """The sample below which `share` of them lie; NaN without any."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
