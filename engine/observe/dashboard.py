"""The Grafana dashboard: `python -m engine.observe.dashboard` prints its JSON, committed as docs/grafana/tidegate.json.

First the six panels that matter first, then campaigns, webhooks, database, nodes. Books and stops are the same on
every node, so they are taken as a maximum; what a node did itself is summed.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from engine.observe.panels import ROWS, Panel

WIDTH = 24
PANEL_WIDTH, PANEL_HEIGHT = 12, 8
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> dict[str, Any]:
    """The whole dashboard, as Grafana imports it."""
    return {
        "uid": "tidegate",
        "title": "Tidegate",
        "description": "Sends, waits, answers, deliveries. Each panel's description is the question it answers.",
        "tags": ["tidegate", "whatsapp"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [_source(), _variable("number"), _variable("campaign")]},
        "panels": list(_panels()),
    }


def _source() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
    }


def _variable(label: str) -> dict[str, Any]:
    metric = {
        "number": "tidegate_number_rate_messages_per_second",
        "campaign": "tidegate_campaign_planned_rows",
    }[label]
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": f"label_values({metric}, {label})", "refId": label},
        "definition": f"label_values({metric}, {label})",
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, y = 0, 0
    for title, panels in ROWS:
        number += 1
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        y += 1
        for nth, panel in enumerate(panels):
            number += 1
            place = {"x": nth % 2 * PANEL_WIDTH, "y": y, "w": PANEL_WIDTH, "h": PANEL_HEIGHT}
            yield _chart(number, panel, place)
            if nth % 2 or nth == len(panels) - 1:
                y += PANEL_HEIGHT


def _chart(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    custom: dict[str, Any] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
    if panel.stacked:
        custom |= {"stacking": {"mode": "normal", "group": "A"}, "fillOpacity": 40}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.question,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": custom}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + nth),
                "datasource": SOURCE,
                "expr": expr,
                "legendFormat": legend,
                "editorMode": "code",
                "range": True,
                "instant": False,
            }
            for nth, (expr, legend) in enumerate(panel.lines)
        ],
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
