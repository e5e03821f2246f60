"""What all numbers of a node use together."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from pydantic import SecretStr

from engine.clients.whatsapp import WhatsApp
from engine.domain.outcome import Answer
from engine.observe.metrics import NodeFigures
from engine.postgres.desired import Campaign
from engine.postgres.pool import Pool
from engine.sending.database_clock import DatabaseClock
from engine.sending.marker import Marker
from engine.sending.work import Work
from engine.sending.writer import Writer


@dataclass(frozen=True, slots=True)
class Shared:
    """Handed to every pipeline by the node that builds it."""

    db: Pool
    marker: Marker
    writer: Writer
    whatsapp: WhatsApp
    figures: NodeFigures
    clock: DatabaseClock
    access_token: Callable[[str], SecretStr | str]
    campaigns: Callable[[int], Collection[Campaign]]
    """The campaigns that a number_id may send for now."""
    judge: Callable[[Work, Answer], None]
    """Looks at every answer: trips what it stops wider than its row, and holds a run that goes wrong."""
    probed: Callable[[int, bool], None]
    """What a probe of a breaker showed: accepted or not."""
    request_deadline: float
    warm: Callable[[int], Awaitable[object]] | None = None
    """Opens so many connections to the provider, where that means anything."""
    connected: Callable[[], bool] = lambda: True
    """Whether it is known what people want: after an absence of the database, pauses kept beside it come first."""
    inbound: Callable[[str], float] = lambda _: 0.0
    """messages/s that people write to Meta's phone number id now."""
