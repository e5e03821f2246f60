"""From when on a person is told: every figure of the alert rules, in one frozen value of the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from engine.domain.duration import parse_duration


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Names that end in `_s` are seconds, in `_share` 0..1; all others count rows."""

    throttled_share: float = 0.02
    """Of a number's tries in the last minute, refused for throughput."""
    throttled_ceiling_share: float = 0.9
    """Of the rate; a ceiling below it, with refusals for throughput in the last minute, counts as throttled too."""
    throttled_for_s: float = 90.0
    """Longer than the minute above, so that one burst is no steady flow."""
    failed_share: float = 0.10
    """Of a campaign's settled rows, failed."""
    failed_least: float = 50.0
    """Rows that must be settled before that share means anything."""
    delivered_after_s: float = 900.0
    """Age from which a send should have been delivered."""
    delivered_norm_share: float = 0.5
    """Taken for a campaign's norm until it has shown a better one."""
    delivered_drop_share: float = 0.5
    """Of the norm; below it something is wrong."""
    silence_s: float = 120.0
    """That a number sends and hears of no status."""
    webhook_lag_s: float = 60.0
    """That a stored body may wait to be applied."""
    stuck_for_s: float = 30.0
    """That rows are in `sending` for more than two minutes: a slow answer or two is no alarm."""
    unknown_growth: float = 20.0
    """Rows that became unknown within ten minutes, for one number."""
    idle_s: float = 120.0
    """That a running campaign with rows that are due settles none."""
    control_s: float = 300.0
    """That a message to a control phone may take to be delivered."""
    try_budget_share: float = 0.8
    deadline_for_s: float = 60.0
    """That the estimated end lies behind the deadline."""
    database_slow_for_s: float = 30.0
    database_away_for_s: float = 5.0
    transaction_s: float = 300.0
    """That somebody may hold one snapshot open: vacuum can remove nothing newer."""
    lease_s: float = 300.0
    """That a lost lease is spoken of."""
    calm_s: float = 10.0
    """That a condition must be gone before its alert is over: no flicker."""

    def __str__(self) -> str:
        """What is not as by default, as it may be written; or `defaults`."""
        figures = {field.name: getattr(self, field.name) for field in fields(self)}
        changed = {name: figure for name, figure in figures.items() if figure != getattr(DEFAULTS, name)}
        return ", ".join(f"{name}={figure:g}" for name, figure in changed.items()) or "defaults"


DEFAULTS = Thresholds()


def thresholds(value: object) -> Thresholds:
    """From a mapping (a table of tidegate.toml) or a text such as `silence=5m, failed_share=5%`.

    Names may be written without their `_s` or `_share`. Raises ValueError with a sentence.
    """
    if isinstance(value, Thresholds):
        return value
    chosen = {_name(str(name)): text for name, text in _pairs(value)}
    return Thresholds(**{name: _figure(name, text) for name, text in chosen.items()})


def _pairs(value: object) -> list[tuple[object, object]]:
    if isinstance(value, Mapping):
        return list(value.items())
    parts = [part.strip() for part in str(value).split(",") if part.strip()]
    pairs: list[tuple[object, object]] = []
    for part in parts:
        name, equals, text = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is no name=value, such as silence=5m")
        pairs.append((name.strip(), text.strip()))
    return pairs


def _name(written: str) -> str:
    known = [field.name for field in fields(Thresholds)]
    for name in (written, f"{written}_s", f"{written}_share"):
        if name in known:
            return name
    short = sorted(name.removesuffix("_s").removesuffix("_share") for name in known)
    raise ValueError(f"{written!r} is no threshold; there are {', '.join(short)}")


def _figure(name: str, text: object) -> float:
    try:
        if name.endswith("_s"):
            return parse_duration(text if isinstance(text, (int, float)) else str(text))
        written = str(text).strip()
        figure = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError as error:
        wanted = str(error) if name.endswith("_s") else "write a number, such as 20, 0.1 or 10%"
        raise ValueError(f"{name}: {wanted}") from None
    if not 0 <= figure < 1e12 or (name.endswith("_share") and figure > 1):
        raise ValueError(f"{name}: {text} is out of range")
    return figure
