"""The capacity sum: what a rate asks of everything around it, before the night of the campaign."""

from collections.abc import Sequence
from dataclasses import dataclass

STATUSES_PER_MESSAGE = 3
"""sent, delivered, read."""

WRITES_PER_MESSAGE = 7
"""Rows written in the database: claim, mark, result, its try, and three statuses."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Per second, unless named otherwise. `hours` is None when nothing would ever be sent."""

    rate: float
    in_flight: float
    statuses: float
    database_rows: float
    audience: int
    hours: float | None


def capacity(rates: Sequence[float], *, latency: float, inbound: float = 0.0, audience: int = 0) -> Capacity:
    """For numbers of these rates. `latency`: seconds of one request; `inbound`: messages/s that people write.

    >>> capacity([80.0], latency=0.25, audience=288_000).hours
    1.0
    """
    rate = sum(rates)
    return Capacity(
        rate=rate,
        in_flight=rate * latency,
        statuses=rate * STATUSES_PER_MESSAGE + inbound,
        database_rows=rate * WRITES_PER_MESSAGE + inbound,
        audience=audience,
        hours=audience / rate / 3600 if rate > 0 else None,
    )
