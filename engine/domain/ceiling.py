"""What a number is granted right now: pure steps down at a refusal, careful steps up while nothing is refused.

The provider does not say what it grants; it only refuses what is too much. So the ceiling is searched for: at a
refusal fall back to the last level that held; then probe upward by a step that doubles while it holds, at times
that double while it does not.

    rate ┤──────╮                                       ╭────
         │      │                             ╭─────────╯
    grant┤      ╰──╮   ╭╮  ╭─╮    ╭──╮    ╭───╯   (grant returns)
         │         ╰───╯╰──╯ ╰────╯  ╰────╯
"""

from dataclasses import dataclass, replace

HELD_AFTER = 2.0
"""Seconds without a refusal after which a level counts as held."""

FIRST_PROBE, LAST_PROBE = 2.0, 32.0
"""Seconds between probes: doubles after each probe that was refused. A refused probe costs a second of silence,
so 32 s cost 3 % of the grant, and still bring a returned grant back within a minute."""

STEP = 0.05
"""First step of a probe, as a share of the level; doubles while it holds."""

LARGEST_STEP = 0.40

DROP = 0.7
"""Factor of the fall when no lower level is known to have held."""

LOWEST = 0.25
"""messages/s: a probe every four seconds is what remains under a provider that refuses everything."""

SAME_BURST = 1.0
"""Seconds in which refusals count as one: they were all on their way when the first came back."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The search's state; `level` None: nothing was refused, the rate alone counts. Times: one monotonic clock."""

    level: float | None = None
    held: float | None = None
    """The highest level that held; where a refused probe falls back to."""
    since: float = 0.0
    """When the present level was taken."""
    refused_at: float = float("-inf")
    probe_after: float = FIRST_PROBE
    step: float = STEP

    def allowed(self, rate: float) -> float:
        """messages/s that may be sent: the rate, and never more than the level."""
        return rate if self.level is None else min(rate, self.level)


def refused(ceiling: Ceiling, now: float, rate: float, granted: float) -> Ceiling:
    """A throughput error came back. `granted`: messages/s that were accepted of late (0: none)."""
    if now - ceiling.refused_at < SAME_BURST:
        return replace(ceiling, refused_at=now)
    level = ceiling.allowed(rate)
    if ceiling.held is not None and ceiling.held < level:
        # A probe was too much: back to where it held, and wait longer before the next.
        lower, held = ceiling.held, ceiling.held
        wait = min(ceiling.probe_after * 2, LAST_PROBE)
    else:
        # What held before is refused now: the grant has shrunk. What was just accepted is the best guess.
        lower = min(max(granted, level * 0.1), level * 0.95) if granted > 0 else level * DROP
        held, wait = None, FIRST_PROBE
    return Ceiling(_whole(max(LOWEST, lower)), held, now, now, wait, STEP)


def calm(ceiling: Ceiling, now: float, rate: float) -> Ceiling:
    """To be asked about once a second while sends are accepted: the same, held, or one step up."""
    if ceiling.level is None:
        return ceiling
    quiet = now - max(ceiling.since, ceiling.refused_at)
    if quiet < HELD_AFTER:
        return ceiling
    known = replace(ceiling, held=max(ceiling.held or 0.0, ceiling.level))
    due = ceiling.probe_after if ceiling.step == STEP else HELD_AFTER
    if quiet < due:
        return known
    higher = _higher(ceiling.level, ceiling.step)
    if higher >= rate:
        return Ceiling()
    return replace(
        known, level=higher, since=now, probe_after=FIRST_PROBE if ceiling.step > STEP else ceiling.probe_after,
        step=min(ceiling.step * 2, LARGEST_STEP),
    )  # fmt: skip


def _whole(level: float) -> float:
    """A window holds whole sends, so between 7 and 8 nothing is gained and a probe is lost."""
    return float(int(level)) if level >= 1 else level


def _higher(level: float, step: float) -> float:
    return (
        _whole(level * (1 + step))
        if level * step >= 1
        else (level + 1 if level >= 1 else min(1.0, level * 2))
    )
