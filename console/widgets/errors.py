"""Which answers refuse, over the chosen window."""

from collections.abc import Sequence

from console.format import clean, fit, number, spark
from console.frame import Frame
from console.history import chosen
from console.line import Line
from console.widgets.panel import ListPanel
from engine.domain.snapshot import ErrorView

_STOPS = ("number stop", "account", "credential", "template", "country")


class Errors(ListPanel):
    """One line a code: title, count, ten tenths of the window, and how wide it reaches."""

    NUMBER = 2

    def title(self, frame: Frame) -> str:
        """With the total, since the list may be longer than the panel."""
        errors = errors_of(frame)
        return f"2 ERRORS {frame.span} {number(sum(e.count for e in errors))}"

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """The most frequent first."""
        errors = errors_of(frame)
        if not errors:
            return [Line(" none", "faint")]
        return [_line(e, frame, width) for e in sorted(errors, key=lambda e: (-e.count, e.code))]


def errors_of(frame: Frame) -> Sequence[ErrorView]:
    """Of the chosen window."""
    snapshot = frame.snapshot
    return chosen(snapshot.past.errors, frame.window, snapshot.errors) if snapshot is not None else ()


def _line(error: ErrorView, frame: Frame, width: int) -> Line:
    glyphs = frame.glyphs
    stops = any(word in error.scope for word in _STOPS)
    rising = sum(error.trend[-3:]) > 2 * max(1, sum(error.trend[:3])) if error.trend else False
    sign, role = (glyphs.normal, "text")
    if stops:
        sign, role = glyphs.critical, "critical-text"
    elif rising:
        sign, role = glyphs.warning, "warning"
    strip = spark(error.trend if width >= 46 else _pairs(error.trend), glyphs.spark)
    wide = max(0, width - 46)
    scope = fit(" " + clean(error.scope, glyphs), min(wide, 20), cut=glyphs.cut) if wide >= 8 else ""
    title_width = max(4, width - 17 - len(strip) - len(glyphs.critical) - len(scope))
    line = Line(f"{error.code:>7} ").cell(clean(error.title, glyphs), title_width, cut=glyphs.cut)
    return (
        line.cell(number(error.count), 7, ">", "strong")
        .add(f" {strip}", "bar")
        .add(f" {sign}", role)
        .add(scope)
    )


def _pairs(trend: Sequence[int]) -> list[int]:
    """Fifths out of tenths, for a narrow panel."""
    return [sum(trend[max(0, end - 2) : end]) for end in range(len(trend), 0, -2)][::-1]
