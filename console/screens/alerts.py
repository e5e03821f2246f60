"""! : every alert with its cause, since when, and what to do."""

from collections.abc import Sequence

from console.frame import Frame, ranked_alerts
from console.line import Line
from console.screens.page import PageScreen
from console.widgets.alerts import alert_text


class AlertsScreen(PageScreen):
    """The order of the alert line."""

    def page_title(self, frame: Frame) -> str:
        """How many."""
        return (
            f"ALERTS {len(frame.snapshot.alerts) if frame.snapshot else 0}  (a acknowledges on the overview)"
        )

    def items(self, frame: Frame, width: int) -> Sequence[Line]:
        """What, since when, what to do; each in as many lines as it takes."""
        lines: list[Line] = []
        for alert in ranked_alerts(frame.snapshot) if frame.snapshot else []:
            role = (
                "faint"
                if alert.acknowledged or not alert.active
                else ("critical-text" if alert.severity == "critical" else "warning")
            )
            since = Line(f"    since {alert.since:%H:%M:%S}Z  do: {frame.text(alert.advice) or '-'}")
            lines += Line(alert_text(alert, frame, with_advice=False), role).folded(width)
            lines += since.folded(width, 8)
            if alert.runbook:
                lines.append(Line(f"    page: {frame.text(alert.runbook)}", "faint"))
        return lines or [Line(" no alerts", "faint")]
