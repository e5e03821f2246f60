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

    def items(self, frame: Frame, _width: int) -> Sequence[Line]:
        """Two or three lines an alert."""
        lines: list[Line] = []
        for alert in ranked_alerts(frame.snapshot) if frame.snapshot else []:
            role = (
                "faint"
                if alert.acknowledged or not alert.active
                else ("critical-text" if alert.severity == "critical" else "warning")
            )
            lines.append(Line(alert_text(alert, frame, with_advice=False), role))
            lines.append(Line(f"    since {alert.since:%H:%M:%S}Z  do: {frame.text(alert.advice) or '-'}"))
            if alert.runbook:
                lines.append(Line(f"    page: {frame.text(alert.runbook)}", "faint"))
        return lines or [Line(" no alerts", "faint")]
