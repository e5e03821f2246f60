"""How long an answer takes."""

from __future__ import annotations

import math
from random import Random

from engine.simulator.scenario import Latency

_Z95 = 1.6448536269514722  # the 95th percentile of the standard normal distribution


def draw_ms(latency: Latency, chance: Random) -> float:
    """One latency in milliseconds: fixed, or lognormal with the given median and 95th percentile."""
    if latency.fixed_ms is not None:
        return latency.fixed_ms
    sigma = math.log(latency.p95_ms / latency.median_ms) / _Z95
    return latency.median_ms * math.exp(sigma * chance.gauss(0.0, 1.0))
