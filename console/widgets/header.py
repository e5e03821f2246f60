"""Row 1: which campaign, its state as a word, which engine, what this screen may do, and how fresh it is."""

from collections.abc import Sequence

from console.format import Glyphs, clean, duration, fit
from console.frame import Frame, headline
from console.line import Line
from console.widgets.panel import LinePanel

STATE_ROLES = {
    "RUNNING": "running", "PAUSED": "paused", "HELD": "critical", "STOPPED": "critical",
    "DRAINING": "warning", "FINISHED": "strong",
}  # fmt: skip
FRESH_ROLES = {"LIVE": "strong", "STALE": "critical", "FROZEN": "staged", "NONE": "warning"}


def state_glyph(word: str, glyphs: Glyphs) -> str:
    """The sign before a state's word."""
    signs = {
        "RUNNING": glyphs.running, "PAUSED": glyphs.paused, "HELD": glyphs.critical,
        "STOPPED": glyphs.stopped, "NO NODE": glyphs.critical, "DRAINING": glyphs.slowed, "FINISHED": glyphs.tick,
    }  # fmt: skip
    return signs.get(word, glyphs.dot)


class Header(LinePanel):
    """One line; what fits least matters least."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """The line, without its least important parts when it is too long."""
        return [fitted([(rank, line) for rank, line in _parts(frame, width) if line.parts], width)]


def fitted(parts: list[tuple[int, Line]], width: int) -> Line:
    """Join parts with two spaces (the last at the right edge); drop the highest rank first until it fits."""
    kept = list(parts)
    while len(kept) > 1 and sum(line.width + 2 for _, line in kept) - 2 > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    out = Line()
    for i, (_, line) in enumerate(kept):
        if i:
            out.add("  ")
        if i and i == len(kept) - 1:
            out.to(width - line.width)
        out.parts.extend(line.parts)
    return out


def _parts(frame: Frame, width: int) -> list[tuple[int, Line]]:
    fresh = fresh_line(frame)
    snapshot = frame.snapshot
    if snapshot is None:
        text = f"waiting for the engine's first snapshot, {duration(frame.waiting_s)}"
        end = f"the engine has ended: {frame.ended}" if frame.ended is not None else ""
        return [(0, Line("tidegate", "strong")), (1, Line(clean(end, frame.glyphs) or text, "warning"))]
    head = headline(snapshot, frame.ended, frame.glyphs)
    name_width = 20 if width < 120 else 40
    name = Line(fit(head.name, min(name_width, len(head.name)), cut=frame.glyphs.cut) + " ", "strong")
    name.add(state_glyph(head.word, frame.glyphs) + head.word, STATE_ROLES.get(head.word, "text"))
    host = clean(snapshot.host, frame.glyphs)
    node = clean(snapshot.node, frame.glyphs)
    where = f"{host}:{snapshot.pid}" if width < 120 or node == host else f"{node}@{host}:{snapshot.pid}"
    where = f"attached to {node}" if snapshot.attached else where
    right = "RO" if snapshot.read_only else "RW"
    utc = snapshot.at if frame.freshness.word == "FROZEN" else frame.now
    return [
        (0, name),
        (3, Line(head.others, "text")),
        (4, Line(where, "text")),
        (7, Line(f"up{duration(snapshot.uptime_s)}", "faint")),
        (2, Line(right, "warning" if snapshot.read_only else "strong")),
        (6, Line(clean(snapshot.author, frame.glyphs), "text")),
        (1, fresh),
        (5, Line(f"{utc:%H:%M:%S}Z").add(f" {utc.astimezone():%H:%M}L" if width >= 100 else "", "faint")),
    ]


def fresh_line(frame: Frame) -> Line:
    """LIVE 0.4s"""
    word, seconds = frame.freshness.word, frame.freshness.age_s
    age = f"{seconds:.1f}s" if seconds < 10 else duration(seconds)
    return Line(f"{word} {age}", FRESH_ROLES[word])
