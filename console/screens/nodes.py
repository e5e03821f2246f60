"""N: which node owns which numbers, and how old its figures are. A dead node is named dead; its figures are gone."""

from collections.abc import Sequence

from console.format import age, clean, rate
from console.frame import Frame
from console.line import Line
from console.screens.page import PageScreen
from engine.domain.snapshot import NodeView, Snapshot


class NodesScreen(PageScreen):
    """In `run` this node, and others that died with numbers in their hands; `tidegate attach` shows them all."""

    def page_title(self, frame: Frame) -> str:
        """How many, and how many are dead."""
        nodes = nodes_of(frame.snapshot) if frame.snapshot else ()
        dead = sum(1 for n in nodes if not n.alive)
        return f"NODES {len(nodes)}" + (f", {dead} DEAD" if dead else "")

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """A line a node, then its numbers."""
        if frame.snapshot is None:
            return []
        lines: list[Line] = []
        for node in nodes_of(frame.snapshot):
            lines += [_head(node, frame), *_numbers(node, frame, width)]
        orphans = [n.id for n in frame.snapshot.numbers if n.owner is None]
        if orphans:
            names = " ".join(frame.label(key) for key in orphans)
            lines.append(Line(f" {frame.glyphs.warning} owned by no node: {names}", "warning"))
        return lines or [Line(" no node is running: tidegate run", "warning")]


def nodes_of(snapshot: Snapshot) -> tuple[NodeView, ...]:
    """What was merged; a single engine speaks for itself, and for the dead."""
    if snapshot.nodes:
        return snapshot.nodes
    own = [n for n in snapshot.numbers if n.owner is not None and not n.away]
    mine, sent = tuple(n.id for n in own), sum(n.sent_per_second for n in own)
    return (
        NodeView(
            snapshot.node,
            snapshot.host,
            snapshot.pid,
            0.0,
            True,
            snapshot.draining,
            mine,
            sent,
            snapshot.memory_mb,
        ),
        *snapshot.lost,
    )


def _head(node: NodeView, frame: Frame) -> Line:
    glyphs = frame.glyphs
    line = Line(
        f" {glyphs.normal if node.alive else glyphs.critical} ", "text" if node.alive else "critical-text"
    )
    line.add(f"{clean(node.name, glyphs)} ", "strong").add(
        f"({clean(node.host, glyphs)}:{node.pid}) ", "faint"
    )
    if not node.alive:
        return line.add(f"DEAD, no sign for {age(node.age_s)}: its figures are not shown", "critical-text")
    line.add("DRAINING " if node.draining else "", "warning")
    line.add(f"snapshot {age(node.age_s)} old  {rate(node.sent_per_second)}/s  ")
    return line.add(
        f"{len(node.numbers)} number{'' if len(node.numbers) == 1 else 's'}  {node.memory_mb:.0f} MB"
    )


def _numbers(node: NodeView, frame: Frame, width: int) -> list[Line]:
    lines, line = [], Line("    ")
    for key in node.numbers:
        label = frame.label(key)
        if line.width + len(label) + 1 > width:
            lines.append(line)
            line = Line("    ")
        line.add(f"{label} ", "text" if node.alive else "warning")
    return [*lines, line] if node.numbers else []
