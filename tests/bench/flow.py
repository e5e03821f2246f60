"""What the simulator accepted, one message after another, by its own ledger."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.bench.results import Row
from tests.bench.usage import quantile


@dataclass(frozen=True, slots=True)
class Flow:
    """Messages a second, and the seconds between one and the next."""

    rate: float
    gaps: Sequence[float]

    def gap(self, share: float) -> float:
        """The gap in seconds below which `share` of them lie; 1.0 for the longest."""
        return quantile(list(self.gaps), share)

    def row(self, what: str, note: str = "") -> Row:
        """For the table; its times are of the gaps."""
        longest = f"time between two sends, at most {1000 * self.gap(1.0):.0f} ms"
        p50, p99 = (1000 * self.gap(share) for share in (0.5, 0.99))
        return Row(what, self.rate, None, p50, p99, "; ".join(filter(None, (longest, note))))


def flow(entries: Sequence[dict[str, Any]]) -> Flow:
    """Of these entries of a ledger, the accepted ones. RuntimeError when there are fewer than two."""
    at = [entry["at_us"] / 1e6 for entry in entries if entry["accepted"]]
    if len(at) < 2:
        raise RuntimeError(f"Only {len(at)} messages were accepted in a window of the bench.")
    return Flow((len(at) - 1) / (at[-1] - at[0]), [later - earlier for earlier, later in pairwise(at)])
