"""An import's memory does not grow with its file. Measured in a process of its own, by the system's figure."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from engine.intake.importer import import_audience
from engine.postgres.pool import open_pool

ROWS = 100_000
NOTE = "x" * 600  # 60 MB of file: keeping its text would show
BOUND_MB = 40

CAMPAIGN = """
INSERT INTO campaign (name, random_id, template, language, body) VALUES ('reminder', 'r', 't', 'pt_BR', '{name}')
"""


def unlike(n: int) -> str:
    return f"+55119{80_000_000 + n},Ana {n},{NOTE}\n"


def alike(n: int) -> str:
    return f"+5511980000001,Ana {n},{NOTE}\n"


def dirty(n: int) -> str:
    """Of ten lines four hold nothing; of a hundred people five stand further up already."""
    if n % 10 < 4:
        return "\n" if n % 10 < 2 else ",,\n"
    return unlike(n - 6 if n % 120 == 119 or n % 60 == 9 else n)


def refused(n: int) -> str:
    return f"119,Ana {n},{NOTE}\n"


def quoted(n: int) -> str:
    return (
        f'+5511980000001,Ana,"{NOTE}\n{NOTE}"\n'
        if n
        else '+5511980000001,Ana,"' + "never closed\n" * 4_000_000
    )


@pytest.mark.parametrize(
    ("row", "rows", "outcome"),
    [
        (unlike, ROWS, {"taken": ROWS}),
        (dirty, ROWS, {"blank": ROWS * 4 // 10}),
        (alike, ROWS, {"taken": 1, "folded": ROWS - 1}),
        (refused, ROWS, {"refused": ROWS}),
        (quoted, 1, {"file_fault": {"line": 2}}),
    ],
    ids=[
        "people",
        "people, blank lines and people twice",
        "one person",
        "refused rows",
        "a quote that is never closed",
    ],
)
def test_memory_stays_flat_for_a_file_full_of(
    row: Callable[[int], str], rows: int, outcome: dict[str, object], database_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "audience.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write("phone,name,note\n")
        file.writelines(map(row, range(rows)))
    child = subprocess.run(
        [sys.executable, "-m", "tests.intake.test_memory", str(path), database_url],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(child.stdout)
    for key, value in outcome.items():
        found = report[key]
        assert (found if not isinstance(value, dict) else {k: found[k] for k in value}) == value
    assert report["grown_mb"] < BOUND_MB


async def measure(path: Path, url: str) -> dict[str, object]:
    process = psutil.Process()
    async with open_pool(url, size=1) as pool:
        await pool.execute(CAMPAIGN)
        before = peak = process.memory_info().rss

        def look(done: int, total: int) -> None:
            nonlocal peak
            peak = max(peak, process.memory_info().rss)

        report = await import_audience(
            pool, path, campaign="reminder", author="ana", country="BR", progress=look
        )
        look(0, 0)
    counts: dict[str, object] = json.loads(report.json())
    return counts | {"rejects": [], "folds": [], "grown_mb": (peak - before) / 1e6}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1]), sys.argv[2]))))
