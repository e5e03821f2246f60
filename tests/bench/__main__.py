"""`python -m tests.bench [SECTION ...]`: measure, print the table, and after a whole run write RESULTS.md."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

from tests.bench import imports, receiving, results, screen, sends, statements
from tests.bench.results import Section
from tests.bench.world import World, open_world

SECTIONS: dict[str, Callable[[World], Awaitable[Section]]] = {
    "sends": sends.measure,
    "statements": statements.measure,
    "import": imports.measure,
    "receiver": receiving.measure,
    "console": screen.measure,
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
    started = time.monotonic()
    with open_world() as world:
        sections = asyncio.run(_measure(world, names))
        return results.render(sections, world.version, time.monotonic() - started)


async def _measure(world: World, names: Sequence[str]) -> list[Section]:
    done = []
    for name in names:
        print(f"bench: {name} …", file=sys.stderr)
        started = time.monotonic()
        done.append(await SECTIONS[name](world))
        print(f"bench: {name} took {time.monotonic() - started:.0f} s", file=sys.stderr)
    return done


if __name__ == "__main__":
    sys.exit(main())
