"""The face that an engine shows to a scrape, without the engine: figures as they are on an eventful night."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from engine.domain.snapshot import AlertView, HoldView, OldTransaction, Snapshot
from engine.observe.figures import DatabaseFigures
from engine.observe.metrics import JOURNEY, Histogram, NodeFigures
from engine.postgres.books import Tallies
from engine.postgres.figures import InFlight
from tests.support.quiet import AT, NUMBER, a_campaign, a_number, quiet

NUMBER_ID, CAMPAIGN_ID = 7, 3


@dataclass
class Webhooks:
    """What an applier would have counted."""

    bodies: int = 30
    unparsable: int = 1
    refused: int = 2
    foreign: int = 3
    unmatched: int = 4
    statuses: Counter[str] = field(default_factory=lambda: Counter({"sent": 12, "read": 5}))
    delay: Histogram = field(default_factory=lambda: Histogram(JOURNEY))
    batch_time: Histogram = field(default_factory=Histogram)


class FakeNode:
    """An engine's face to a scrape."""

    def __init__(
        self, latest: Snapshot | None, *, webhooks: Webhooks | None = None, numbers: int = 1
    ) -> None:
        self.latest = latest
        self.figures = NodeFigures()
        pool = SimpleNamespace(get_size=lambda: 5, get_idle_size=lambda: 3, get_max_size=lambda: 12)
        self.database = DatabaseFigures(cast("Any", pool))
        self.webhooks = webhooks
        self.webhook_answers: Mapping[int, int] = {200: 30, 401: 2}
        self._names = {NUMBER_ID + nth: str(int(NUMBER) + nth) for nth in range(numbers)}

    def number_names(self) -> Mapping[int, str]:
        return self._names

    def campaign_names(self) -> Mapping[int, str]:
        return {CAMPAIGN_ID: "reminder"}


def eventful(numbers: int = 1) -> FakeNode:
    """A node with something to say in every family."""
    alert = AlertView("number_held:1", "critical", "…0042", "HELD", "Look.", AT, True, False)
    over = AlertView("webhook_lag:webhooks", "warning", "webhooks", "61 s", "Look.", AT, False, False)
    snapshot = quiet(
        numbers=tuple(a_number(id=str(int(NUMBER) + nth), silence_s=3.0) for nth in range(numbers)),
        campaigns=(a_campaign(deadline=AT + timedelta(hours=1), late=12),),
        holds=(HoldView("account", "WABA1", 131042, "payment", AT),),
        oldest_transaction=OldTransaction(4242, 17.0, "psql"),
        alerts=(alert, over),
        results_backlog=9,
    )
    node = FakeNode(snapshot, webhooks=Webhooks(), numbers=numbers)
    figures = node.figures.number(NUMBER_ID)
    figures.stored(1.0, "accepted", None, throttled=False)
    figures.stored(1.0, "refused", 130429, throttled=True)
    node.database.in_flight = {NUMBER_ID: InFlight(6, 2, 1, 0, 310.0, fresh=11, claimed=4)}
    node.database.tallies = {CAMPAIGN_ID: Tallies(refusals={130429: 8}, errors={131026: 2})}
    return node
