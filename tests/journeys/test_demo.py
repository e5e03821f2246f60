"""`tidegate demo --no-ui`, as it is: nothing to set up, nothing left behind."""

import re
from pathlib import Path

from tests.support.database import reachable_directory
from tests.support.process import put_down, spawn

LASTS_AT_MOST_S = 180


async def test_the_demo_ends_with_0_and_balanced_books_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with reachable_directory() as scratch:
        demo = await spawn(("demo", "--no-ui"), {"TMPDIR": str(scratch)}, tmp_path, name="demo")
        try:
            ended = await demo.ended(LASTS_AT_MOST_S)
        finally:
            await put_down(demo)
        assert ended.code == 0, ended.err
        taken = re.search(r"([\d,]+) people taken", ended.err)
        assert taken is not None, ended.err
        assert f"reminder: finished; planned {taken[1]}" in ended.out
        assert "the books balance" in ended.out
        assert list(scratch.iterdir()) == []
        assert _processes_naming(scratch) == []


def _processes_naming(directory: Path) -> list[str]:
    """A server or a simulator that lives on names the demo's directory."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # ended meanwhile
            continue
        if str(directory) in words:
            found.append(words)
    return found
