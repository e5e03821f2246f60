"""Publishes what this node's screen would show, for `tidegate attach`, and takes in what was done elsewhere: acts of
other consoles and of the command line, and alerts that people there took on."""

import asyncio
from collections.abc import Container, Sequence

import structlog

from engine.acts import event_of
from engine.author import ENGINE
from engine.node import Engine
from engine.postgres import journal, snapshots
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.journal import Kept

PERIOD = 0.5
"""Seconds; with the follower's poll of 0.25 s an act shows as in effect within a second."""

BACK = 50
"""Ids of the journal that are looked at again: of two acts at once, the lower id may be committed later."""

MOST = 200
"""Acts taken in at once."""

log = structlog.get_logger()


class News:
    """Which entries of the journal are new here, each once."""

    def __init__(self, end: int) -> None:
        """`end`: the newest id as yet; what is older is no news."""
        self._begin = self._end = end
        self._known: set[int] = set()

    @property
    def after(self) -> int:
        """The id to read on from."""
        return max(self._begin, self._end - BACK)

    def fresh(self, kept: Sequence[Kept]) -> list[Kept]:
        """Those that were not seen before."""
        found = [one for one in kept if one.id not in self._known]
        self._end = max([self._end, *(one.id for one in found)])
        self._known = {id_ for id_ in self._known | {one.id for one in found} if id_ > self.after}
        return found


async def publishing(engine: Engine) -> None:
    """For ever. A database that is away is waited for: viewers then see this node grow old."""
    news: News | None = None
    while True:
        try:
            if news is None:
                news = News(await journal.end(engine.db))
            take_in(engine, news.fresh(await journal.since(engine.db, news.after, MOST)))
            if engine.latest is not None:
                await snapshots.publish(engine.db, engine.identity.id, snapshots.encoded(engine.latest))
        except DATABASE_FAULTS as error:
            log.debug("snapshot not published", error=type(error).__name__)
        await asyncio.sleep(PERIOD)


def take_in(engine: Engine, fresh: Sequence[Kept]) -> None:
    """What people did elsewhere: this node's own acts, and the engine's, are in its event log already."""
    own: Container[int] = engine.commands.journalled
    for one in fresh:
        if one.author == ENGINE or one.id in own:
            continue
        if one.act == "acknowledge":
            engine.acknowledge(None if one.target == "all" else one.target, one.author)
        engine.desk.hear(event_of(one))
