"""The layout as a failing build: who may import what, and how large a file or a function may grow.

import-linter holds the layers (`pyproject.toml`); this file holds what it does not see: outside libraries, calls,
names and sizes.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "console")

LIBRARY_HOMES = {
    "httpx": ("engine/clients/",),
    "pyreqwest": (
        "engine/clients/",
        "engine/simulator/",
    ),  # the double posts webhooks, and may not see clients
    "asyncpg": ("engine/postgres/",),
    "aiolimiter": ("engine/sending/limiter.py",),
    "plotext": ("console/widgets/",),
    "textual": ("console/",),
}
JOURNEYS = ("sending", "delivery", "control", "intake", "simulator")
IMPURE_MODULES = {
    *("asyncio", "random", "secrets", "time", "threading", "subprocess", "socket", "os", "pathlib", "io"),
    *("httpx", "asyncpg", "structlog", "logging"),
}
IMPURE_CALLS = {"open", "print", "input", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}

LONG_FILE, LONGEST_FILE = 300, 400
LONG_FUNCTION, LONGEST_FUNCTION = 50, 80


@dataclass(frozen=True)
class Source:
    """One file: its path below the root with forward slashes, its text, and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def package(self) -> list[str]:
        """The dotted package that a relative import starts from, in parts."""
        return self.path.split("/")[:-1]

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and absolute dotted name of each import, wherever it stands; `from a import b` gives `a.b`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                start = self.package[: len(self.package) - node.level + 1] if node.level else []
                base = [*start, node.module] if node.module else start
                yield from ((node.lineno, ".".join([*base, name.name])) for name in node.names)

    def calls(self) -> Iterator[tuple[int, str]]:
        """Line and the last two parts of each called name: `open`, `datetime.now`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield node.lineno, ".".join(ast.unparse(node.func).split(".")[-2:])

    def functions(self) -> Iterator[tuple[int, str, int]]:
        """Line, name and length of each function, docstring included."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def parsed(path: str, text: str) -> Source:
    return Source(path, text, ast.parse(text, filename=path))


@cache
def sources(*below: str) -> tuple[Source, ...]:
    """Every Python file below the given folders."""
    files = sorted(file for folder in below for file in (ROOT / folder).rglob("*.py"))
    assert files, f"no Python file below {below}"
    return tuple(
        parsed(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files
    )


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def offences(found: Iterable[Source], *forbidden: str) -> list[str]:
    return [
        f"{source.path}:{line} imports {name}"
        for source in found
        for line, name in source.imports()
        if any(within(name, package) for package in forbidden)
    ]


def test_the_scan_sees_an_import_wherever_it_hides() -> None:
    source = parsed(
        "engine/sending/pacer.py",
        "import a.b as c\nfrom d import e\ndef f():\n    from ..postgres import claims\n    from . import writer\n",
    )
    names = [name for _, name in source.imports()]
    assert names == ["a.b", "d.e", "engine.postgres.claims", "engine.sending.writer"]
    assert offences([source], "engine.postgres") == [
        "engine/sending/pacer.py:4 imports engine.postgres.claims"
    ]


@pytest.mark.parametrize("library", LIBRARY_HOMES)
def test_a_library_is_imported_only_where_it_lives(library: str) -> None:
    homes = LIBRARY_HOMES[library]
    strangers = [source for source in sources(*PACKAGES) if not source.path.startswith(homes)]
    assert offences(strangers, library) == []


def test_plotext_is_imported_by_one_file() -> None:
    users = {source.path for source in sources("console") if offences([source], "plotext")}
    assert len(users) <= 1, f"a second chart belongs in the first one's file: {sorted(users)}"


def test_the_engine_never_imports_the_console() -> None:
    assert offences(sources("engine"), "console") == []


@pytest.mark.parametrize("journey", JOURNEYS)
def test_journeys_never_import_each_other(journey: str) -> None:
    others = [f"engine.{other}" for other in JOURNEYS if other != journey]
    assert offences(sources(f"engine/{journey}"), *others) == []


def test_the_domain_imports_nothing_of_the_engine_but_itself() -> None:
    found = offences(sources("engine/domain"), "engine", "console")
    assert [offence for offence in found if " imports engine.domain" not in offence] == []


def test_the_domain_does_no_io_and_asks_no_clock_and_no_chance() -> None:
    assert offences(sources("engine/domain"), *IMPURE_MODULES) == []
    called = [
        f"{source.path}:{line} calls {name}()"
        for source in sources("engine/domain")
        for line, name in source.calls()
        if name in IMPURE_CALLS
    ]
    assert called == []


def test_the_simulator_imports_nothing_of_the_engine() -> None:
    found = offences(sources("engine/simulator"), "engine", "console")
    assert [offence for offence in found if " imports engine.simulator" not in offence] == []


def test_the_engine_starts_without_the_screens_libraries() -> None:
    ask = "import sys, engine.cli; print(*sorted({'textual', 'plotext', 'console'} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (answer.returncode, answer.stdout.strip()) == (0, ""), answer.stderr


def test_a_file_is_named_for_what_it_does() -> None:
    paths = [Path(source.path) for source in sources(*PACKAGES, "tests")]
    assert [str(path) for path in paths if EMPTY_NAMES & {path.stem, *path.parts[:-1]}] == []


def test_files_and_functions_stay_short(capsys: pytest.CaptureFixture[str]) -> None:
    files = [(source.lines, source.path) for source in sources(*PACKAGES, "tests")]
    functions = [
        (length, f"{source.path}:{line} {name}()")
        for source in sources(*PACKAGES, "tests")
        for line, name, length in source.functions()
    ]
    outliers = sorted((size, what) for size, what in files if size > LONG_FILE)
    outliers += sorted((size, what) for size, what in functions if size > LONG_FUNCTION)
    with capsys.disabled():
        for size, what in outliers:
            print(f"\nlong: {what}: {size} lines", end="")
    assert [what for size, what in files if size > LONGEST_FILE] == []
    assert [what for size, what in functions if size > LONGEST_FUNCTION] == []
