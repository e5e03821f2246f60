"""The alert rules as Prometheus reads them: `python -m engine.observe.rules [--set 'silence=5m, …']` prints YAML.

Committed with the default thresholds as docs/prometheus/tidegate.rules.yml; print your own when you change them in
the configuration, so that Prometheus and the console keep the same opinion.
"""

import argparse
import json
import sys
from collections.abc import Iterator

from engine.domain.alert_rules import RULES, Rule
from engine.domain.thresholds import DEFAULTS, Thresholds, thresholds

HEADER = """\
# Made by `python -m engine.observe.rules` from engine/domain/alert_rules.py: change it there.
# Every alert has its page in docs/runbooks/. Needs Prometheus 2.42 or newer (keep_firing_for).
"""


def as_yaml(chosen: Thresholds = DEFAULTS, *, runbooks: str = "") -> str:
    """The rule file. `runbooks`: put before each page's path, so that a pager can open it."""
    lines = [HEADER + "groups:", "  - name: tidegate", "    rules:"]
    for rule in RULES:
        lines += _rule(rule, chosen, runbooks)
    return "\n".join(lines) + "\n"


def _rule(rule: Rule, chosen: Thresholds, runbooks: str) -> Iterator[str]:
    yield f"      - alert: {rule.name}"
    yield "        expr: |-"
    yield from (f"          {line}" for line in rule.query(chosen).splitlines())
    lasts = rule.lasts_s(chosen)
    if lasts:
        yield f"        for: {_duration(lasts)}"
    if chosen.calm_s:
        yield f"        keep_firing_for: {_duration(chosen.calm_s)}"
    yield "        labels:"
    yield f"          severity: {rule.severity}"
    yield f"          kind: {rule.kind}"
    yield f"          subject: {_text(rule.subject)}"
    yield "        annotations:"
    yield f"          summary: {_text(rule.summary)}"
    yield f"          description: {_text(f'{rule.meaning} {rule.advice}')}"
    yield f"          runbook_url: {_text(runbooks + rule.runbook)}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds * 1000:.0f}ms"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a YAML string, whatever is in it


def main() -> int:
    """The exit code: 0, or 2 when a threshold cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m engine.observe.rules", description=__doc__)
    parser.add_argument(
        "--set", default="", metavar="NAME=VALUE, …", help="thresholds, as in TIDEGATE_ALERTS"
    )
    parser.add_argument(
        "--runbooks", default="", metavar="URL", help="where docs/runbooks/ can be read, up to docs/"
    )
    given = parser.parse_args()
    try:
        chosen = thresholds(given.set)
    except ValueError as error:
        print(f"--set cannot be used: {error}.", file=sys.stderr)
        return 2
    sys.stdout.write(as_yaml(chosen, runbooks=given.runbooks))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
