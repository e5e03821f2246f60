"""The line above the keys: a fault of the screen, a notice or a staged rate on the left, the last act on the right."""

from collections.abc import Sequence

from console.format import fit, rate
from console.frame import Frame, act_line
from console.line import Line
from console.widgets.panel import LinePanel


class NoticeLine(LinePanel):
    """One line; a fault stays until a key is pressed after it was seen."""

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """What this screen has to say."""
        left, role = _left(frame)
        right = act_line(frame.act, frame) if frame.act is not None else ""
        if left and right and len(left) + len(right) + 2 > width:
            right = fit(right, max(0, width - len(left) - 2), cut=frame.glyphs.cut).rstrip()
            right = right if len(right) >= 12 else ""
        room = width - len(right) - 2 if right else width
        line = Line(fit(left, room, cut=frame.glyphs.cut), role).add("  " if right else "")
        refused = frame.act is not None and frame.act.stage == "refused"
        return [line.add(right, "critical-text" if refused else "key")]


def _left(frame: Frame) -> tuple[str, str]:
    if frame.fault:
        return frame.text(frame.fault), "warning"
    if frame.notice:
        return frame.text(frame.notice), "strong"
    if frame.ended is not None:
        return f"the engine has ended: {frame.text(frame.ended)}", "warning"
    if frame.staged:
        arrow, enter = frame.glyphs.arrow, frame.glyphs.enter
        shown = [f"{frame.label(key)} {arrow}{rate(value)}" for key, value in frame.staged.items()]
        more = f" and {len(shown) - 2} more" if len(shown) > 2 else ""
        return f"staged: {', '.join(shown[:2])}{more}  {enter} applies the row, Esc drops", "staged"
    return "", "text"
