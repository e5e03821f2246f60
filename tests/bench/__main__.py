"""`python -m tests.bench [SECTION ...]`: measure, print the table, and after a whole run write RESULTS.md."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

import psutil  # type: ignore[import-untyped]

from tests.bench import imports, receiving, results, scraping, screen, sends, statements
from tests.bench.results import Section
from tests.bench.usage import Strangers
from tests.bench.world import World, open_world

SECTIONS: dict[str, Callable[[World], Awaitable[Section]]] = {
    "sends": sends.measure,
    "statements": statements.measure,
    "import": imports.measure,
    "receiver": receiving.measure,
    "console": screen.measure,
    "metrics": scraping.measure,
}


def main() -> int:
    """The exit code: 0 measured, 130 stopped by a signal."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default all"
    )
    parser.add_argument("--write", action="store_true", help="write RESULTS.md, also when only some were run")
    asked = parser.parse_args()
    unknown = [name for name in asked.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]}: choose from {', '.join(SECTIONS)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a SIGTERM cleans up as a Ctrl-C does
    names = asked.sections or list(SECTIONS)
    try:
        text = _run(names)
    except KeyboardInterrupt:
        print("bench: stopped; every process it started is ended.", file=sys.stderr)
        return 130
    print(text)
    if asked.write or names == list(SECTIONS):
        results.keep(text)
        print(f"bench: written to {results.PLACE}", file=sys.stderr)
    return 0


def _run(names: Sequence[str]) -> str:
    with open_world() as world:
        return asyncio.run(_measure(world, names))


async def _measure(world: World, names: Sequence[str]) -> str:
    strangers = Strangers(psutil.Process())
    watching = asyncio.create_task(strangers.watch())
    began, done = time.monotonic(), []
    try:
        for name in names:
            print(f"bench: {name} …", file=sys.stderr)
            started = time.monotonic()
            done.append(await SECTIONS[name](world))
            print(f"bench: {name} took {time.monotonic() - started:.0f} s", file=sys.stderr)
    finally:
        watching.cancel()
    course = f"measured in {(time.monotonic() - began) / 60:.1f} minutes, {strangers.said()}"
    return results.render(done, world.version, course)


if __name__ == "__main__":
    sys.exit(main())
