"""The marker groups the rows of all numbers, waits a database out, and answers every row."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import pytest

from engine.observe.metrics import NodeFigures
from engine.postgres import claims
from engine.postgres.claims import Ask, Claimed, Permission
from engine.sending.marker import FLUSH, Marker
from engine.sending.work import Work
from tests.sending.stage import PERMISSION, campaign
from tests.support.virtual_loop import run

OTHER = Permission(2, PERMISSION.token, 9)


def work(id_: int, permission: Permission = PERMISSION, tries: int = 0) -> Work:
    return Work(Claimed(id_, 1, tries, 0, "+5511988880001", {}), campaign(), permission, 0.0)


class Database:
    """Answers marks; remembers when and what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[tuple[float, list[Ask]]] = []
        self.faults = 0
        self.seconds = 0.001
        monkeypatch.setattr(claims, "mark", self.mark)

    async def mark(self, _db: object, asks: Sequence[Ask]) -> dict[tuple[int, int], str]:
        self.batches.append((asyncio.get_running_loop().time(), list(asks)))
        await asyncio.sleep(self.seconds)
        if self.faults:
            self.faults -= 1
            raise ConnectionResetError
        return {(a.id, a.permission.epoch): "ok" for a in asks if a.id != 404}


async def marking(marker: Marker, seconds: float) -> None:
    """Let the marker work for so long."""
    task = asyncio.create_task(marker.run())
    await asyncio.sleep(seconds)
    assert not task.done()
    task.cancel()


def test_rows_of_all_numbers_share_a_commit_and_commits_keep_their_distance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        database, told = Database(monkeypatch), list[int]()
        marker = Marker(cast(Any, None), NodeFigures())

        async def rows() -> None:
            for i in range(1000):
                marker.put(work(i + 1, PERMISSION if i % 2 else OTHER), lambda w, v: told.append(w.row.id))
                await asyncio.sleep(0.001)

        feeding = asyncio.create_task(rows())
        await marking(marker, 1.5)
        await feeding
        assert told == list(range(1, 1001))
        moments = [at for at, _ in database.batches]
        assert min(b - a for a, b in pairwise(moments)) >= FLUSH - 1e-6
        assert len(moments) <= 103
        assert {a.permission.number_id for _, asks in database.batches for a in asks} == {1, 2}

    run(scenario())


def test_every_row_is_answered_also_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        Database(monkeypatch)
        marker, told = Marker(cast(Any, None), NodeFigures()), dict[int, str]()
        for id_ in (1, 404):
            marker.put(work(id_), lambda w, v: told.update({w.row.id: v}))
        await marking(marker, 0.1)
        assert told == {1: "ok", 404: "gone"}

    run(scenario())


def test_a_row_asked_for_under_two_leases_gets_two_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_db: object, asks: Sequence[Ask]) -> dict[tuple[int, int], str]:
        return {(a.id, a.permission.epoch): "ok" if a.permission == OTHER else "lost" for a in asks}

    async def scenario() -> None:
        monkeypatch.setattr(claims, "mark", answer)
        marker, told = Marker(cast(Any, None), NodeFigures()), list[tuple[int, str]]()
        for permission in (PERMISSION, OTHER):
            marker.put(work(1, permission), lambda w, v: told.append((w.permission.epoch, v)))
        await marking(marker, 0.1)
        assert told == [(PERMISSION.epoch, "lost"), (OTHER.epoch, "ok")]

    run(scenario())


def test_a_database_that_is_away_is_waited_out_with_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        database = Database(monkeypatch)
        database.faults = 5
        marker, told = Marker(cast(Any, None), NodeFigures()), list[int]()
        health: list[bool] = []
        for id_ in (1, 2):
            marker.put(work(id_), lambda w, v: told.append(w.row.id))
        asyncio.get_running_loop().call_later(0.5, lambda: health.append(marker.healthy))
        await marking(marker, 5.0)
        assert health == [False]
        assert marker.healthy
        assert told == [1, 2]
        assert {tuple(a.id for a in asks) for _, asks in database.batches} == {(1, 2)}
        assert len(database.batches) == 6

    run(scenario())


def test_the_mark_asks_for_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        database = Database(monkeypatch)
        marker = Marker(cast(Any, None), NodeFigures())
        row = work(7, tries=3)
        row.template_key = "WABA1/t/en"
        marker.put(row, lambda w, v: None)
        await marking(marker, 0.1)
        [(_, [ask])] = database.batches
        assert (ask.id, ask.n, ask.permission) == (7, 4, PERMISSION)
        assert (ask.phone, ask.template) == ("+5511988880001", "WABA1/t/en")
        assert row.marked_at > 0

    run(scenario())
