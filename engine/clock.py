"""The one place that asks the system for the time of day. Durations come from the loop or from `boottime`."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """The time of day, aware, UTC. For people and for the database; never for measuring a duration."""
    return datetime.now(UTC)


def boottime() -> float:
    """Seconds on a clock that also runs while the machine is suspended: leases are measured by it."""
    return time.clock_gettime(_BOOTTIME) if _BOOTTIME is not None else time.monotonic()


_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
