"""Follows what people want: polls one row four times a second, and reads everything anew when it has moved."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from engine.domain.breaker import country_key, template_key
from engine.domain.campaign import STOPS
from engine.domain.errors import Scope
from engine.postgres import desired
from engine.postgres.desired import Campaign, Desired
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Pool
from engine.postgres.pulse import Pulse

POLL = 0.25
REREAD = 1.0
"""Seconds after which everything is read anyway: an import adds lanes without an act."""

LONGEST_READ = 10.0
"""Seconds that reading everything anew may take."""

log = structlog.get_logger()


class Follower:
    """The newest desired state, and the news of it."""

    def __init__(
        self,
        db: Pool,
        changed: Callable[[Desired], None],
        returned: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`returned`: called after an absence, before anybody relies on what the database says people want."""
        self.desired = Desired(-1, {}, {})
        self.healthy = True
        self._db = db
        self._pulse = Pulse(db)
        self._changed = changed
        self._returned = returned
        self._again = asyncio.Event()
        self._read_at = 0.0
        self._rounds = 0
        self._by_number: dict[int, list[Campaign]] = {}

    def rounds(self) -> int:
        """How often it has looked; a count that stands still tells of a loop that hangs."""
        return self._rounds

    def running(self, number_id: int) -> list[Campaign]:
        """The running campaigns that a number serves."""
        return self._by_number.get(number_id, [])

    def forget(self, campaign_id: int) -> None:
        """A campaign has been stopped from here: it is not served any more, before the database says so."""
        self._by_number = {
            number: [c for c in campaigns if c.campaign_id != campaign_id]
            for number, campaigns in self._by_number.items()
        }

    async def refresh(self) -> None:
        """Read everything now."""
        self.desired = await desired.read(self._db)
        self._read_at = asyncio.get_running_loop().time()
        self._by_number = served(self.desired)
        self._changed(self.desired)

    async def run(self) -> None:
        """Follow for ever."""
        try:
            while True:
                self._rounds += 1
                await self._look()
                await asyncio.sleep(POLL)
        finally:
            self._pulse.close()

    async def _look(self) -> None:
        try:
            version = await self._pulse.version()
            if not self.healthy and self._returned is not None:
                await self._returned()
            stale = asyncio.get_running_loop().time() - self._read_at >= REREAD
            if stale or not self.healthy or version != self.desired.version:
                async with asyncio.timeout(LONGEST_READ):
                    await self.refresh()
            self.healthy = True
        except DATABASE_FAULTS as error:
            if self.healthy:
                log.warning("the database is away", error=type(error).__name__)
            self.healthy = False


def served(desired: Desired) -> dict[int, list[Campaign]]:
    """For each number the running campaigns that it may send for now, without the lanes of stopped countries."""
    stopped = {(breaker.scope, breaker.key) for breaker in desired.breakers}
    by_number: dict[int, list[Campaign]] = {}
    for campaign in desired.campaigns.values():
        # Held only by what stops its numbers: those say themselves when they may send, and need rows to probe with.
        if campaign.state != "running" and campaign.held_by != STOPS:
            continue
        for number_id in campaign.numbers:
            number = desired.numbers.get(number_id)
            if number is None:  # added between the two reads; the next look, which follows at once, has it
                continue
            account = number.account
            if (Scope.TEMPLATE, template_key(account, campaign.template, campaign.language)) not in stopped:
                by_number.setdefault(number_id, []).append(_open_lanes(campaign, account, stopped))
    return by_number


def _open_lanes(campaign: Campaign, account: str, stopped: set[tuple[Scope, str]]) -> Campaign:
    if all(scope is not Scope.COUNTRY for scope, _ in stopped):
        return campaign
    lanes = zip(campaign.lanes, campaign.countries, strict=True)
    free = [(lane, c) for lane, c in lanes if (Scope.COUNTRY, country_key(account, c)) not in stopped]
    return replace(campaign, lanes=tuple(lane for lane, _ in free), countries=tuple(c for _, c in free))
