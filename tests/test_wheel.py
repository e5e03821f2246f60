"""The distribution as a stranger gets it: a wheel, what it declares, and no source tree beside it.

Nothing is fetched: the environment holds the wheel and links to this one's copies of what it declares, and of what
that declares in turn, so an undeclared import fails here as it would there.
"""

import ast
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import distribution, packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from engine.postgres.migrate import sql_script

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "console")
MIGRATIONS = "engine/postgres/migrations"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, without extras."""

    python: Path
    home: Path

    def tidegate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python.parent / "tidegate", *arguments],
            cwd=self.home,  # not the source tree: nothing may be found there
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, *_pip("wheel"), "--no-deps", "--no-build-isolation", "-w", directory, ROOT)
    [built] = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    base = tmp_path_factory.mktemp("installed")
    _run(sys.executable, "-m", "venv", "--without-pip", base / "venv")
    scheme = {"base": str(base / "venv"), "platbase": str(base / "venv")}
    packages = Path(sysconfig.get_path("purelib", "venv", scheme))
    for entry in {entry for name in _needed(PROJECT["dependencies"]) for entry in _entries(name)}:
        (packages / entry.name).symlink_to(entry)
    python = base / "venv" / "bin" / "python"
    _run(sys.executable, *_pip("--python", python, "install"), "--no-deps", "--no-index", wheel)
    (base / "home").mkdir()
    return Installed(python, base / "home")


def _pip(*arguments: str | Path) -> tuple[str | Path, ...]:
    return ("-m", "pip", "--disable-pip-version-check", "-qq", *arguments)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _needed(declared: Iterable[str]) -> set[str]:
    """The names of all that `declared` needs here, however indirectly."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(line), "") for line in declared]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in {"", *requirement.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, wanted))
            waiting += [(Requirement(line), wanted) for line in distribution(name).requires or ()]
    return {name for name, _ in seen}


def _entries(name: str) -> Iterator[Path]:
    """Its files and folders right below site-packages."""
    installed = distribution(name)
    for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
        yield Path(str(installed.locate_file(top)))


def test_the_wheel_holds_the_packages_their_data_and_the_migrations_and_nothing_else(wheel: Path) -> None:
    expected = {
        file.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    expected |= {f"{MIGRATIONS}/{file.name}" for file in (ROOT / "migrations").glob("*.sql")}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == expected
    assert {
        f"{MIGRATIONS}/0001_initial.sql",
        "engine/intake/demo_audience.csv",
        "engine/simulator/demo.json",
        "console/console.tcss",
    } <= held


def test_the_installed_program_prints_the_same_migrations_as_the_source_tree(installed: Installed) -> None:
    done = installed.tidegate("migrate", "--sql")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip("\n") == sql_script().rstrip("\n")


def test_help_needs_no_extra(installed: Installed) -> None:
    done = installed.tidegate("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert {"run", "demo", "import", "migrate"} <= set(done.stdout.split())


def test_the_demo_without_its_extra_says_in_one_sentence_what_to_install(installed: Installed) -> None:
    done = installed.tidegate("demo")
    assert (done.returncode, done.stdout) == (2, "")
    [sentence] = done.stderr.splitlines()
    assert "tidegate[embedded]" in sentence


def test_every_module_of_the_installed_program_can_be_imported_without_extras(installed: Installed) -> None:
    walk = (
        "import importlib, pkgutil, engine, console\n"
        "for package in (engine, console):\n"
        "    assert 'site-packages' in package.__file__, package.__file__\n"
        "    for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not found.name.endswith('__main__'):\n"
        "            importlib.import_module(found.name)\n"
    )
    done = subprocess.run(
        [installed.python, "-W", "error", "-c", walk],
        cwd=installed.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_the_code_imports_is_declared_and_what_is_declared_is_imported() -> None:
    homes = packages_distributions()
    modules = {
        name for package in PACKAGES for file in (ROOT / package).rglob("*.py") for name in _imports(file)
    }
    outside = modules - set(PACKAGES) - sys.stdlib_module_names
    imported = {canonicalize_name(name) for module in outside for name in homes.get(module, [module])}
    declared = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    drawing = {"resvg-py"}  # only for those who draw screenshots: extra `test`
    assert imported - drawing == declared


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def test_everything_that_is_installed_is_locked_to_one_version_that_is_allowed() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    locked = {
        canonicalize_name(requirement.name): requirement.specifier
        for requirement in (Requirement(line) for line in lines if not line.startswith("#"))
    }
    loose = [f"{name}{pin}" for name, pin in locked.items() if not re.fullmatch(r"==[^*,]+", str(pin))]
    assert loose == []

    base, extras = PROJECT["dependencies"], PROJECT["optional-dependencies"]
    declared = [line for line in (*base, *chain(*extras.values())) if not line.startswith("tidegate[")]
    here = [line for line in declared if line in {*base, *extras["embedded"], *extras["test"]}]
    assert _needed(here) - set(locked) == set(), "run `make lock`"
    outside = [
        str(wanted)
        for wanted in map(Requirement, declared)
        if not wanted.specifier.contains(str(locked[canonicalize_name(wanted.name)]).removeprefix("=="))
    ]
    assert outside == [], "run `make lock`"
