"""Group commit: who waits for what, and what each is told."""

import asyncio
from collections.abc import Sequence

import pytest

from engine.delivery.group import GroupStore, NotStoredError


class Disk:
    """A store that can be made to wait or to fail."""

    def __init__(self) -> None:
        self.groups: list[list[bytes]] = []
        self.signatures: list[list[str]] = []
        self.free = asyncio.Event()
        self.free.set()
        self.asked = asyncio.Event()
        self.error: Exception | None = None

    async def store(self, bodies: Sequence[bytes], signatures: Sequence[str]) -> None:
        self.asked.set()
        await self.free.wait()
        if self.error:
            raise self.error
        self.groups.append(list(bodies))
        self.signatures.append(list(signatures))


async def test_bodies_that_arrive_together_are_stored_by_one_write() -> None:
    disk, nudge = Disk(), asyncio.Event()
    async with GroupStore(disk.store, nudge) as group, asyncio.timeout(10):
        await asyncio.gather(*(group.add(b"%d" % i) for i in range(50)))
        assert nudge.is_set()
    assert disk.groups == [[b"%d" % i for i in range(50)]]


async def test_each_body_is_stored_with_the_signature_that_it_came_with() -> None:
    disk = Disk()
    async with GroupStore(disk.store) as group, asyncio.timeout(10):
        await asyncio.gather(group.add(b"x", "sha256=1"), group.add(b"y", "sha256=2"))
    assert (disk.groups, disk.signatures) == ([[b"x", b"y"]], [["sha256=1", "sha256=2"]])


async def test_nobody_is_answered_before_the_write_is_done() -> None:
    disk = Disk()
    disk.free.clear()
    async with GroupStore(disk.store) as group, asyncio.timeout(10):
        adding = asyncio.create_task(group.add(b"x"))
        await disk.asked.wait()
        assert not adding.done()
        disk.free.set()
        await adding


async def test_a_failed_write_fails_its_whole_group_and_no_later_one() -> None:
    disk = Disk()
    disk.error = OSError("gone")
    async with GroupStore(disk.store) as group, asyncio.timeout(10):
        results = await asyncio.gather(*(group.add(b"x") for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [NotStoredError] * 3
        disk.error = None
        await group.add(b"y")
    assert disk.groups == [[b"y"]]


@pytest.mark.parametrize(("bodies", "size"), [(2, 1 << 20), (100, 2)])
async def test_too_much_waiting_is_refused_until_there_is_room(bodies: int, size: int) -> None:
    disk = Disk()
    disk.free.clear()
    async with GroupStore(disk.store, most_bodies=bodies, most_bytes=size) as group, asyncio.timeout(10):
        first = [asyncio.create_task(group.add(b"x")) for _ in range(2)]
        await disk.asked.wait()
        with pytest.raises(NotStoredError):
            await group.add(b"x")
        disk.free.set()
        await asyncio.gather(*first)
        await group.add(b"x")
    assert sum(map(len, disk.groups)) == 3


async def test_stopping_stores_what_waits_and_takes_nothing_more() -> None:
    disk = Disk()
    group = GroupStore(disk.store)
    async with asyncio.timeout(10):
        async with group:
            adding = asyncio.create_task(group.add(b"x"))
            await asyncio.sleep(0)  # let it queue
        await adding
        with pytest.raises(NotStoredError):
            await group.add(b"y")
    assert disk.groups == [[b"x"]]


async def test_a_client_that_went_away_does_not_hurt_its_group() -> None:
    disk = Disk()
    disk.free.clear()
    async with GroupStore(disk.store) as group, asyncio.timeout(10):
        gone, stays = (asyncio.create_task(group.add(body)) for body in (b"x", b"y"))
        await disk.asked.wait()
        gone.cancel()
        disk.free.set()
        await stays
    assert disk.groups == [[b"x", b"y"]]


async def test_when_the_standing_task_dies_nobody_waits_for_it_for_ever() -> None:
    disk = Disk()
    disk.error = RuntimeError("a bug")

    async def run() -> None:
        async with GroupStore(disk.store) as group:
            with pytest.raises(NotStoredError):
                await group.add(b"x")
            with pytest.raises(NotStoredError):
                await group.add(b"y")

    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError, match="a bug"):
            await run()
