"""What was promised and whether it was kept, all that was measured, and on what: nothing here is written by hand."""

import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from textwrap import fill

import psutil  # type: ignore[import-untyped]

from tests.bench.world import ROOT

PLACE = ROOT / "tests" / "bench" / "RESULTS.md"
WIDTH = 118
VERSIONS = ("asyncpg", "httpx", "msgspec", "pgqueuer", "pyreqwest", "textual", "uvicorn", "uvloop")
BUDGETS = ("Budget", "Measured", "")
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

    def cells(self) -> Sequence[str]:
        """As text."""
        return [self.what, self.measured, "met" if self.kept else "NOT MET"]


@dataclass(frozen=True, slots=True)
class Section:
    """What one part of the bench brings home. `remarks`: paragraphs; whatever they claim follows from the figures."""

    rows: Sequence[Row] = ()
    goals: Sequence[Goal] = ()
    remarks: Sequence[str] = ()


def render(sections: Iterable[Section], postgres: str, course: str) -> str:
    """The document. `course`: how the run went."""
    sections = list(sections)
    goals = [goal for section in sections for goal in section.goals]
    rows = [row for section in sections for row in section.rows]
    lines = [
        "# Bench",
        "",
        "Written by `make bench` (`python -m tests.bench`), all of it: edit the bench instead.",
        "",
    ]
    lines += [f"- {line}" for line in _circumstances(postgres, course)]
    if goals:
        met = sum(goal.kept for goal in goals)
        lines += ["", f"## Budgets: {met} of {len(goals)} met", ""]
        lines += _table(BUDGETS, ("---", "---", "---"), (goal.cells() for goal in goals))
    if rows:
        lines += ["", "## Figures", ""]
        lines += _table(HEADINGS, ("---", "--:", "--:", "--:", "--:", "---"), (row.cells() for row in rows))
    remarks = [remark for section in sections for remark in section.remarks]
    if remarks:
        lines += ["", "## Reading them"]
        lines += [line for remark in remarks for line in ("", fill(remark, WIDTH, break_on_hyphens=False))]
    return "\n".join(lines) + "\n"


def _table(headings: Sequence[str], rule: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_line(headings), _line(rule), *(_line(row) for row in rows)]


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
