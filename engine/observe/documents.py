"""Everything below docs/ that is made from code: `python -m engine.observe.documents` writes it anew.

A test compares what is committed with what would be written.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.domain.alert_rules import RULES
from engine.domain.duration import format_duration
from engine.domain.thresholds import DEFAULTS
from engine.observe.catalog import CAMPAIGN_METRICS, NUMBER_METRICS, SYSTEM_METRICS, Metric
from engine.observe.dashboard import dashboard
from engine.observe.rules import as_yaml

RULES_FILE = Path("docs/prometheus/tidegate.rules.yml")
DASHBOARD_FILE = Path("docs/grafana/tidegate.json")
PAGE = Path("docs/observability.md")

SECTIONS = (
    ("Numbers and sends", NUMBER_METRICS),
    ("Campaigns", CAMPAIGN_METRICS),
    ("Webhooks, database, nodes", SYSTEM_METRICS),
)


def documents(root: Path) -> dict[Path, str]:
    """The text of each file by its path below `root`; of the page only the tables are made, the prose is kept."""
    page = (root / PAGE).read_text(encoding="utf-8")
    page = _between(page, "metrics", "\n\n".join(_table(title, metrics) for title, metrics in SECTIONS))
    return {
        RULES_FILE: as_yaml(),
        DASHBOARD_FILE: json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n",
        PAGE: _between(page, "alerts", "\n".join(_alerts())),
    }


def _between(page: str, name: str, text: str) -> str:
    marks = re.compile(rf"(<!-- {name}: made by code -->\n).*?(<!-- end -->)", re.DOTALL)
    return marks.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page)


def _table(title: str, metrics: Sequence[Metric]) -> str:
    lines = [f"### {title}", "", "| metric | kind, unit | labels | what it says | what a change means |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for m in metrics:
        labels = ", ".join(f"`{label}`" for label in m.labels) or "–"
        lines.append(f"| `{m.name}` | {m.kind}, {m.unit} | {labels} | {m.help} | {m.change} |")
    return "\n".join(lines)


def _alerts() -> Iterator[str]:
    yield "| alert | severity | lasts | what it means |"
    yield "| --- | --- | --- | --- |"
    for rule in RULES:
        lasts = rule.lasts_s(DEFAULTS)
        page = rule.runbook.removeprefix("docs/")
        yield (
            f"| [{rule.name}]({page}) | {rule.severity} | {format_duration(lasts) if lasts else 'at once'} "
            f"| {rule.meaning} |"
        )


if __name__ == "__main__":
    for path, text in documents(Path()).items():
        path.write_text(text, encoding="utf-8")
        print(path)
