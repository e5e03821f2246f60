"""While a dead node's lease runs out, nobody sends from its numbers; who waits for it says whose it is and how long."""

from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from engine.domain.lease import Wait
from engine.domain.snapshot import NumberView
from engine.observe.figures import DatabaseFigures
from engine.observe.metrics import NodeFigures
from engine.postgres import leases
from engine.postgres.desired import Desired
from engine.postgres.leases import LeaseRow
from engine.postgres.nodes import Identity
from engine.postgres.pool import Pool
from engine.sending import ownership
from engine.views import Viewer
from tests.sending.stage import number
from tests.sending.test_ownership import LEASE, Clock, node, until
from tests.support import builders

OTHER = uuid4()


async def held_by(pool: Pool, owner: UUID, *numbers: int) -> None:
    for number_id in numbers:
        taken = await leases.take(
            pool, number_id, owner=owner, node="eng2", token=uuid4(), seconds=60, advertise=None, instead_of=None
        )  # fmt: skip
        assert taken is not None


async def test_the_lease_of_a_node_that_says_nothing_is_waited_for_and_told_once(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(ownership, "boottime", clock)
    numbers = {await builders.number(pool), await builders.number(pool, "106540352242923")}
    await held_by(pool, OTHER, *numbers)
    with capture_logs() as lines:
        async with node(pool) as one:
            await until(lambda: len(one.ownership.waits()) == 2)
            clock.ahead += LEASE
            await until(lambda: len(one.ownership.owned) == 2)
            assert one.ownership.waits() == {}
    [told] = [line for line in lines if line["event"] == "waiting for the lease of a silent node"]
    assert told["node"] == "eng2"
    assert 0 < told["seconds"] <= LEASE


def a_lease(owner: UUID, name: str, *, released: bool = False) -> LeaseRow:
    return LeaseRow(1, owner, name, uuid4(), 9, 4, released, ())


ME = Identity(uuid4(), "eng1", "host", 7, None)
WAIT = Wait(OTHER, "eng2", 7.0)


async def seen(lease: LeaseRow | None, wait: Wait | None = None) -> NumberView:
    """The number as the node ME shows it, without a pipeline of its own."""
    viewer = Viewer(ME, "ana", NodeFigures(), DatabaseFigures(cast("Any", None)))
    leases_ = {1: lease} if lease else {}
    waits = {1: wait} if wait else {}
    wanted = Desired(1, {1: number(80)}, {})
    snapshot = viewer.snapshot(1, wanted, leases_, {}, waits, draining=False, read_only=False)
    return snapshot.numbers[0]


@pytest.mark.parametrize(
    ("lease", "owner", "away"),
    [
        (a_lease(ME.id, "eng1"), "eng1", False),
        (a_lease(OTHER, "eng2"), "eng2", True),
        (
            a_lease(OTHER, "eng1"),
            "eng1",
            True,
        ),  # of the same name: this one was started anew, or two share a name
        (a_lease(OTHER, "eng2", released=True), None, False),
        (None, None, False),
    ],
)
async def test_whose_number_it_is_is_told_by_the_lease_s_owner_not_by_a_name(
    lease: LeaseRow | None, owner: str | None, away: bool
) -> None:
    view = await seen(lease)
    assert (view.owner, view.away, view.state) == (owner, away, "active")


async def test_a_number_that_waits_for_a_lease_says_whose_and_until_when() -> None:
    view = await seen(a_lease(OTHER, "eng2"), WAIT)
    assert (view.owner, view.away, view.state, view.bound_by) == (None, False, "waiting", "lease")
    assert view.reason == "silent node eng2 still has its lease"
    assert view.until is not None


async def test_a_pause_is_told_before_the_wait() -> None:
    viewer = Viewer(ME, "ana", NodeFigures(), DatabaseFigures(cast("Any", None)))
    stopped = Desired(1, {1: number(0)}, {})
    snapshot = viewer.snapshot(
        1, stopped, {1: a_lease(OTHER, "eng2")}, {}, {1: WAIT}, draining=False, read_only=False
    )
    assert (snapshot.numbers[0].state, snapshot.numbers[0].bound_by) == ("paused", "lease")
