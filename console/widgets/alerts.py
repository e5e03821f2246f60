"""Row 2: the worst alert with its target, cause and age. The row is always there, so the layout never jumps."""

from collections.abc import Sequence

from rich.cells import cell_len

from console.format import age, fit
from console.frame import Frame, ranked_alerts
from console.line import Line
from console.widgets.panel import LinePanel
from engine.domain.snapshot import AlertView

_ROLES = {"critical": "critical-text", "warning": "warning"}


class AlertLine(LinePanel, can_focus=True):
    """j k choose which alert is shown, and so which one `a` acknowledges."""

    NUMBER = 4

    def lines(self, frame: Frame, width: int, _height: int) -> Sequence[Line]:
        """!!2 ✖ …0042 HELD 131048 9s ago │ ▲ +1 │ [a]ck [A]ll"""
        if frame.snapshot is None:
            return [Line()]
        alerts = ranked_alerts(frame.snapshot)
        if not alerts:
            return [Line(f"{frame.glyphs.normal} no alerts", "title-focus" if self.has_focus else "faint")]
        shown = next((a for a in alerts if a.key == frame.alert), alerts[0])
        fresh = [a for a in alerts if not a.acknowledged]
        critical = sum(1 for a in fresh if a.severity == "critical" and a.active)
        line = Line(f"!!{critical} ", "critical") if critical else Line()
        tail = _tail(frame, len(alerts) - 1, bool(fresh), self.has_focus)
        text = alert_text(shown, frame, with_advice=width >= 120)
        room = width - line.width - tail.width
        line.add(fit(text, min(room, cell_len(text)), cut=frame.glyphs.cut), _role(shown))
        others = [a for a in alerts if a is not shown]
        for left, other in zip(range(len(others) - 1, -1, -1), others, strict=True):
            part = f" {frame.glyphs.sep} {alert_text(other, frame, with_advice=False)}"
            rest = _tail(frame, left, bool(fresh), self.has_focus)
            if line.width + cell_len(part) + rest.width > width:
                break
            line.add(part, _role(other))
            tail = rest
        return [line.end(tail, width)]


def _role(alert: AlertView) -> str:
    if alert.acknowledged or not alert.active:
        return "faint"
    return "critical-text" if alert.severity == "critical" else "warning"


def alert_text(alert: AlertView, frame: Frame, with_advice: bool) -> str:
    """One alert in one line."""
    glyphs = frame.glyphs
    sign = glyphs.critical if alert.severity == "critical" else glyphs.warning
    since = max(0.0, (frame.now - alert.since).total_seconds())
    over = f"cleared {alert.cleared_at:%H:%M}Z:" if alert.cleared_at is not None else "cleared:"
    cause, target = frame.text(alert.cause), frame.text(alert.target)
    advice = f" {glyphs.arrow} {frame.text(alert.advice)}" if with_advice and alert.advice else ""
    acked = f" (acked {frame.text(alert.author)})" if alert.acknowledged else ""
    if alert.active:
        return f"{sign}{target} {cause} {age(since)} ago{acked}{advice}"
    return f"{glyphs.normal}{target} {over} {cause} {age(since)} ago{acked}"


def _tail(frame: Frame, others: int, fresh: bool, focused: bool) -> Line:
    line = Line()
    if others:
        line.add(f" {frame.glyphs.sep} +{others} more", "title-focus" if focused else "text")
    return line.add(f" {frame.glyphs.sep} ").add("[a]ck [A]ll", "key") if fresh else line
