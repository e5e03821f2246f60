"""Fixtures that every kind of test may use. The database is always a real Postgres."""

from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from engine.postgres.pool import Pool, open_pool
from tests.support import forks
from tests.support.database import TestServer, session_server

# Property tests judge values, never the clock; and a build that fails fails again.
settings.register_profile(
    "tidegate", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tidegate")

WAITING = ("tests/journeys/", "tests/faults/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for real time begins first, so that the workers end together."""
    items.sort(key=lambda item: not item.nodeid.startswith(WAITING))


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """The session's server. Ask for `database_url` or `pool` instead, unless you need several databases."""
    with session_server() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def _forks_end() -> Iterator[None]:
    """What the session has forked does not outlive it."""
    yield
    forks.session.end()


@pytest.fixture
def database_url(postgres: TestServer) -> Iterator[str]:
    """A fresh, migrated database of the test's own."""
    with postgres.database() as url:
        yield url


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """A pool of up to five connections to a fresh, migrated database."""
    async with open_pool(database_url, size=5) as opened:
        yield opened
