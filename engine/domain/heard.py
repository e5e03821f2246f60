"""Who is alive: nodes by when they were heard of last. A lease still runs for a while when its owner is dead."""

from collections.abc import Sequence
from dataclasses import dataclass

SILENT_S = 3.0
"""A node says at least once a second that it is alive."""

FORGOTTEN_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Heard:
    """A node, and seconds since it said that it is alive."""

    node: str
    silent_s: float


def engines(nodes: Sequence[Heard]) -> str:
    """Who is running, as a line for people.

    >>> engines([Heard("a", 0.4), Heard("b", 7.2)])
    'engines: a; b silent for 7 s'
    >>> engines([Heard("a", 7.0)])
    'no engine is running: a silent for 7 s'
    """
    live = [one.node for one in nodes if one.silent_s < SILENT_S]
    silent = [owner(one.node, one.silent_s) for one in nodes if SILENT_S <= one.silent_s < FORGOTTEN_S]
    if live:
        return "; ".join([f"engines: {', '.join(live)}", *silent])
    return "no engine is running: " + ("; ".join(silent) or "`tidegate run` starts one")


def owner(node: str, silent_s: float | None) -> str:
    """A number's owner, and since when it has said nothing.

    >>> owner("a", 0.5)
    'a'
    """
    return node if silent_s is None or silent_s < SILENT_S else f"{node} silent for {silent_s:.0f} s"
