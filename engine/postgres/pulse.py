"""Whether the database answers: asked all the time, over a connection of its own.

A statement on a connection that has fallen silent (a network that swallows everything, a host that was lost) waits for
its time-out, also when the database has long been back over any new connection. So after a silence, as soon as a
new connection is answered, the pool gives up all that it had: what waits there raises at once, and is repeated.
"""

import asyncio

import asyncpg

from engine.postgres import desired
from engine.postgres.faults import DATABASE_FAULTS
from engine.postgres.pool import Connection, Pool, connection_beside, start_over

LOOK = 1.0
LOOKS = 2
"""Looks, of a second each, without an answer after which the database is silent. Looks and not a time: in a process
that was suspended the answer is there at the second one."""

EVERY = 0.5
"""Seconds between two questions of a receiver."""

CONNECT = 1.5
"""Seconds that a new connection and its first answer may take while the database is silent."""


class Pulse:
    """Reads the version of what people want, the cheapest question there is."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._connection: Connection | None = None
        self._silent = False

    async def version(self) -> int:
        """The version, now. Raises what the database raises; TimeoutError when it says nothing."""
        try:
            version = await self._ask()
        except TimeoutError:
            self._silent = True
            raise
        except asyncpg.TooManyConnectionsError:  # those of the pool may be good
            return await desired.version(self._pool)
        if self._silent:
            start_over(self._pool)
            self._silent = False
        return version

    def close(self) -> None:
        """Give the connection up; the next question makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _ask(self) -> int:
        try:
            if self._connection is None:
                async with asyncio.timeout(CONNECT):
                    self._connection = await connection_beside(self._pool, CONNECT)
                    return await desired.version(self._connection)
            return await _heard(self._connection)
        except BaseException:
            self.close()
            raise


class Watched:
    """The pulse of a pool whose process asks for nothing else all the time, such as a receiver's."""

    def __init__(self, pool: Pool) -> None:
        self.answers = True
        self._pulse = Pulse(pool)

    async def run(self) -> None:
        """Ask for ever."""
        try:
            while True:
                try:
                    await self._pulse.version()
                    self.answers = True
                except DATABASE_FAULTS:
                    self.answers = False
                await asyncio.sleep(EVERY)
        finally:
            self._pulse.close()


async def _heard(connection: Connection) -> int:
    asking = asyncio.create_task(desired.version(connection))
    try:
        for _ in range(LOOKS):
            done, _ = await asyncio.wait({asking}, timeout=LOOK)
            if done:
                return asking.result()
    finally:
        asking.cancel()
    raise TimeoutError
