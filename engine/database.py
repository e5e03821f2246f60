"""The database of this process's settings: the one that they name, or an embedded one under the data directory."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from engine.config import Config
from engine.postgres import migrate
from engine.postgres.embedded import serving
from engine.postgres.pool import Pool, open_pool

EMBEDDED = "postgres"
"""The embedded server's directory, under the data directory."""


@asynccontextmanager
async def open_url(config: Config) -> AsyncIterator[str]:
    """The database's URL; an embedded server runs at least as long as this is open. Raises EmbeddedError."""
    if config.database_url is not None:
        yield config.database_url.get_secret_value()
        return
    async with serving(config.data_dir / EMBEDDED) as url:
        yield url


@asynccontextmanager
async def open_database(
    config: Config, *, size: int = 4, abandoned_after: float | None = None
) -> AsyncIterator[Pool]:
    """A pool on a database whose schema is exactly ours; `abandoned_after` as in `open_pool`.

    Only the embedded one, which has no DBA, is migrated here. Raises DatabaseUnreachable, EmbeddedError and
    MigrationError.
    """
    async with AsyncExitStack() as up:
        url = await up.enter_async_context(open_url(config))
        if config.database_url is None:
            await migrate.migrate(url)
        pool = await up.enter_async_context(open_pool(url, size=size, abandoned_after=abandoned_after))
        async with pool.acquire() as connection:
            await migrate.require_current(connection)  # type: ignore[arg-type]  # the pool's proxy is a connection
        yield pool
