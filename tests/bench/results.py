"""One table of all that was measured, and what it was measured on."""

import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from tests.bench.world import ROOT

PLACE = ROOT / "tests" / "bench" / "RESULTS.md"
REMARKS = "<!-- Written by hand from here on: the next run keeps it. -->"
VERSIONS = ("asyncpg", "httpx", "msgspec", "pgqueuer", "pyreqwest", "textual", "uvicorn", "uvloop")
HEADINGS = ("Measured", "Per second", "CPU ms each", "p50 ms", "p99 ms", "Beside it")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `each` is CPU milliseconds of the measured process for one of what `rate` counts."""

    what: str
    rate: float | None = None
    each: float | None = None
    p50: float | None = None
    p99: float | None = None
    note: str = ""

    def cells(self) -> Sequence[str]:
        """As text."""
        rate = "" if self.rate is None else f"{self.rate:,.0f}"
        times = (
            "" if ms is None else f"{ms:.3f}" if ms < 1 else f"{ms:.2f}"
            for ms in (self.each, self.p50, self.p99)
        )
        return [self.what, rate, *times, self.note]


@dataclass(frozen=True, slots=True)
class Goal:
    """What the product promises, and whether this run kept it."""

    what: str
    measured: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Section:
    """What one part of the bench brings home."""

    rows: Sequence[Row]
    goals: Sequence[Goal] = ()


def render(sections: Iterable[Section], postgres: str, course: str) -> str:
    """The document, without what was written by hand. `course`: how the run went."""
    sections = list(sections)
    lines = ["# Bench", "", "`make bench` (`python -m tests.bench`) measures anew and writes this file.", ""]
    lines += [f"- {line}" for line in _circumstances(postgres, course)]
    lines += ["", _line(HEADINGS), _line(["---", "--:", "--:", "--:", "--:", "---"])]
    lines += [_line(row.cells()) for section in sections for row in section.rows]
    goals = [goal for section in sections for goal in section.goals]
    if goals:
        lines += ["", "Goals:", ""]
        lines += [f"- {'kept' if g.kept else 'MISSED'}: {g.what}: {g.measured}" for g in goals]
    return "\n".join(lines) + "\n"


def keep(text: str, place: Path = PLACE) -> None:
    """Write the document; the remarks at its end stay."""
    before = place.read_text("utf-8") if place.exists() else ""
    remarks = before.partition(REMARKS)[2].strip()
    place.write_text(f"{text}\n{REMARKS}\n\n{remarks}\n", "utf-8")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _circumstances(postgres: str, course: str) -> list[str]:
    packages = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
    memory = psutil.virtual_memory().total / 2**30
    return [
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {_commit()}; {course}",
        f"{_processor()}, {psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, Postgres {postgres}, {packages}",
    ]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("ascii", "replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    changed = git("status", "--porcelain", "--", "engine", "console", "migrations")
    return f"commit {git('rev-parse', '--short', 'HEAD') or '?'}" + (
        " with uncommitted changes" if changed else ""
    )
