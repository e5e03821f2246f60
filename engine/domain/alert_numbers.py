"""Alert rules about business numbers and what stops them."""

from collections.abc import Iterator

from engine.domain.alert import CRITICAL, WARNING, Finding, Look, Rule
from engine.domain.count import counted
from engine.domain.errors import Scope

_THROTTLED_SHARE = (
    "sum by (number) (rate(tidegate_throttled_sends_total[1m]))\n"
    '  / sum by (number) (rate(tidegate_sends_total{outcome=~"accepted|refused|unknown"}[1m]))'
)

NUMBER = "{{ $labels.number }}"


def _throttled(look: Look) -> Iterator[Finding]:
    for n in look.snapshot.numbers:
        share = n.throttled_share or 0.0
        # An engine that has found the grant is refused seldom: then its low ceiling tells.
        slowed = share > 0 and n.ceiling < n.rate * look.thresholds.throttled_ceiling_share
        if slowed or look.over(f"number_throttled:{n.id}", share, look.thresholds.throttled_share):
            granted = f"{n.granted or 0.0:.0f}/s"
            cause = f"throttled ({share:.1%} of tries): the provider grants about {granted} of {n.rate:g}/s"
            yield Finding(n.id, n.display, cause)


def _number_held(look: Look) -> Iterator[Finding]:
    displays = {n.id: n.display for n in look.snapshot.numbers}
    for hold in look.snapshot.holds:
        if hold.scope == Scope.NUMBER.value:
            target = displays.get(hold.key, hold.key)
            yield Finding(hold.key, target, f"HELD {hold.reason or ''}".strip())


def _scope_held(look: Look) -> Iterator[Finding]:
    for hold in look.snapshot.holds:
        if hold.scope != Scope.NUMBER.value:
            subject = f"{hold.scope}/{hold.key}"
            yield Finding(subject, f"{hold.scope} {hold.key}", f"HELD {hold.reason or ''}".strip())


def _silent(look: Look) -> Iterator[Finding]:
    for n in look.snapshot.numbers:
        # With a backlog they have come and are not applied yet: that is the lag's alert.
        behind = (look.snapshot.webhook_lag_s or 0.0) > look.thresholds.silence_s
        silence = n.silence_s or 0.0
        if not behind and look.over(f"webhook_silent:{n.id}", silence, look.thresholds.silence_s):
            yield Finding(n.id, n.display, f"sends, and has heard of no status for {silence:.0f} s")


def _stuck(look: Look) -> Iterator[Finding]:
    for n in look.snapshot.numbers:
        if n.stuck:
            yield Finding(n.id, n.display, f"{counted(n.stuck, 'row')} sending for more than 2 min")


def _unknown(look: Look) -> Iterator[Finding]:
    for n in look.snapshot.numbers:
        if look.over(f"unknown_growing:{n.id}", n.unknown_growth, look.thresholds.unknown_growth):
            yield Finding(
                n.id,
                n.display,
                f"{counted(n.unknown_growth, 'row')} became unknown in 10 min, {n.unknown:,} in all",
            )


def _lease_lost(look: Look) -> Iterator[Finding]:
    for n in look.snapshot.numbers:
        if n.lease_lost_s is not None and n.lease_lost_s < look.thresholds.lease_s:
            yield Finding(n.id, n.display, f"{look.snapshot.node} lost its lease {n.lease_lost_s:.0f} s ago")


NUMBER_RULES = (
    Rule(
        "number_throttled",
        WARNING,
        "A steady flow of throughput errors: the provider grants less than the configured rate.",
        "Lower the rate to what is granted (= or -), or ask Meta for more throughput.",
        _throttled,
        f"{_THROTTLED_SHARE} > %(throttled_share)g\n"
        f"or {_THROTTLED_SHARE} > 0\n"
        "  and on (number) min by (number) (tidegate_number_ceiling_messages_per_second)\n"
        "    < %(throttled_ceiling_share)g * max by (number) (tidegate_number_rate_messages_per_second)",
        NUMBER,
        "Number "
        + NUMBER
        + ": {{ $value | humanizePercentage }} of its tries are refused for throughput; granted are "
        'about {{ with printf `sum(rate(tidegate_sends_total{number="%s",outcome="accepted"}[1m]))` '
        '$labels.number | query }}{{ . | first | value | printf "%.0f" }}{{ end }} messages/s.',
        "throttled_for_s",
    ),
    Rule(
        "number_held",
        CRITICAL,
        "A number is stopped and needs a person.",
        "Read the reason, mend it at Meta, then lift the hold: page h, Enter (or tidegate hold list).",
        _number_held,
        'max by (number) (label_replace(tidegate_held{scope="number"}, "number", "$1", "key", "(.*)")) == 1',
        NUMBER,
        "Number " + NUMBER + " is held and needs a person.",
    ),
    Rule(
        "scope_held",
        CRITICAL,
        "An account, credential, template or country is stopped, and every number and campaign under it.",
        "Read the reason, mend it (token, payment, template), then lift the hold: page h, Enter; the rest follows.",
        _scope_held,
        'max by (scope, key) (tidegate_held{scope!="number"}) == 1',
        "{{ $labels.scope }}/{{ $labels.key }}",
        "The {{ $labels.scope }} {{ $labels.key }} is held and needs a person.",
    ),
    Rule(
        "webhook_silent",
        CRITICAL,
        "A number's messages are accepted and no status comes back: nobody knows whether they arrive.",
        "Check Meta's webhook subscription, the tunnel or proxy, and the app secret.",
        _silent,
        "max by (number) (tidegate_webhook_silence_seconds) > %(silence_s)g\n"
        "  unless on () (max(tidegate_webhook_lag_seconds) > %(silence_s)g)",
        NUMBER,
        "Number " + NUMBER + " sends and has heard of no status for {{ $value | humanizeDuration }}.",
    ),
    Rule(
        "rows_stuck",
        WARNING,
        "Requests left, and their rows have been `sending` for more than two minutes.",
        "They become unknown by themselves; reconcile (R) shows what follows.",
        _stuck,
        'sum by (number) (max by (number, age) (tidegate_number_sending_rows{age!="0-2m"})) > 0',
        NUMBER,
        "Number " + NUMBER + " has {{ $value }} rows sending for more than two minutes.",
        "stuck_for_s",
    ),
    Rule(
        "unknown_growing",
        WARNING,
        "Requests leave and their answers do not come: rows become unknown.",
        "Is the provider answering? Are webhooks arriving? Then reconcile (R).",
        _unknown,
        "max by (number) (tidegate_number_unknown_rows - min_over_time(tidegate_number_unknown_rows[10m]))\n"
        "  > %(unknown_growth)g",
        NUMBER,
        "Number " + NUMBER + ": {{ $value }} rows became unknown within ten minutes.",
    ),
    Rule(
        "lease_lost",
        WARNING,
        "A node lost the lease of a number, stopped sending from it, and the next owner took over.",
        "Look at the node's load and at the database: a lease is lost when it is not renewed in time.",
        _lease_lost,
        "sum by (number) (increase(tidegate_leases_lost_total[%(lease_s).0fs])) > 0",
        NUMBER,
        "A node lost the lease of number " + NUMBER + ".",
    ),
)
