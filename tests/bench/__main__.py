"""`python -m tests.bench [--only NAME]`: measure, print the tables, and after a whole run write RESULTS.md."""

import argparse
import asyncio
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence

import asyncpg
import psutil  # type: ignore[import-untyped]

from tests.bench import (
    beside_import,
    conversing,
    imports,
    receiving,
    remembering,
    results,
    scraping,
    screen,
    sends,
    statements,
    stopping,
    unattended,
)
from tests.bench.results import Goal, Section
from tests.bench.usage import Strangers
from tests.bench.world import World, open_world

SECTIONS: dict[str, Callable[[World], Awaitable[Section]]] = {
    "sends": sends.measure,
    "conversation": conversing.measure,
    "statements": statements.measure,
    "import": imports.measure,
    "beside-import": beside_import.measure,
    "receiver": receiving.measure,
    "console": screen.measure,
    "unattended": unattended.measure,
    "stopping": stopping.measure,
    "memory": remembering.measure,
    "metrics": scraping.measure,
}


FAILURES = (RuntimeError, AssertionError, OSError, TimeoutError, asyncpg.PostgresError)
"""What ends one part and leaves the others: a process that ended by itself, a row that did not come."""


def main() -> int:
    """The exit code: 0 measured, 1 a part could not be, 130 stopped by a signal."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=list(SECTIONS),
        metavar="NAME",
        help=f"one part, and RESULTS.md stays as it is; may be repeated: {', '.join(SECTIONS)}",
    )
    names = parser.parse_args().only
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a SIGTERM cleans up as a Ctrl-C does
    try:
        text, failed = _run(names or list(SECTIONS))
    except KeyboardInterrupt:
        print("bench: stopped; every process it started is ended.", file=sys.stderr)
        return 130
    print(text)
    if not names:
        results.PLACE.write_text(text, "utf-8")
        print(f"bench: written to {results.PLACE}", file=sys.stderr)
    return 1 if failed else 0


def _run(names: Sequence[str]) -> tuple[str, bool]:
    with open_world() as world:
        return asyncio.run(_measure(world, names))


async def _measure(world: World, names: Sequence[str]) -> tuple[str, bool]:
    """The document, and whether a part is missing in it."""
    strangers = Strangers(psutil.Process())
    watching = asyncio.create_task(strangers.watch())
    began, failed = time.monotonic(), False
    done: list[Section] = []
    try:
        for name in names:
            print(f"bench: {name} …", file=sys.stderr)
            started = time.monotonic()
            try:
                done.append(await SECTIONS[name](world))
            except FAILURES as error:
                traceback.print_exc()
                done.append(
                    Section(goals=[Goal(f"the part `{name}` can be measured", _first_line(error), False)])
                )
                failed = True
            print(f"bench: {name} took {time.monotonic() - started:.0f} s", file=sys.stderr)
    finally:
        watching.cancel()
    course = f"measured in {(time.monotonic() - began) / 60:.1f} minutes, {strangers.said()}"
    done.append(Section(remarks=[strangers.remark()]))
    return results.render(done, world.version, course), failed


def _first_line(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:200] if said else ''}".replace("|", "/")


if __name__ == "__main__":
    sys.exit(main())
