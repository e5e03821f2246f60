"""What was done elsewhere comes into a node's event log, once, and nothing of its own comes back to it."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.acts import event_of
from engine.commands import Commands, Refused
from engine.domain.snapshot import EventView
from engine.node import Engine
from engine.postgres import journal
from engine.postgres.journal import Entry, Kept
from engine.postgres.pool import Pool
from engine.publisher import BACK, News, take_in
from tests.support import builders

NUMBER = "106540352242922"
AT = datetime(2026, 3, 14, 3, 14, 9, tzinfo=UTC)


def kept(id_: int, author: str = "ana", **fields: object) -> Kept:
    base = Kept(AT, author, "cli", "rate", NUMBER, "80", "40", None, "done", id_)
    return replace(base, **fields)  # type: ignore[arg-type]


def ids(found: list[Kept]) -> list[int]:
    return [one.id for one in found]


def test_an_entry_that_is_committed_after_one_with_a_higher_id_is_news_too() -> None:
    news = News(10)
    assert news.after == 10
    assert ids(news.fresh([kept(12)])) == [12]
    assert news.after == 10, "11 may still come"
    assert ids(news.fresh([kept(11), kept(12)])) == [11]
    assert ids(news.fresh([kept(11), kept(12)])) == []


@given(st.lists(st.integers(1, 400), unique=True, min_size=1), st.integers(0, 30))
def test_each_entry_is_news_once_in_whatever_order_they_are_committed(order: list[int], late: int) -> None:
    """An id comes at most `late` places after higher ones, as transactions that run at once do."""
    arriving = sorted(order, key=lambda id_: id_ + (late if id_ % 3 == 0 else 0))
    news, there, told = News(0), list[int](), list[int]()
    for id_ in arriving:
        there.append(id_)
        seen = [kept(i) for i in sorted(there) if i > news.after]
        told += ids(news.fresh(seen))
    assert sorted(told) == sorted(order)
    assert len(news._known) <= BACK


class Node:
    """The parts of an engine that hear of acts elsewhere."""

    def __init__(self, journalled: list[int]) -> None:
        self.heard: list[str] = []
        self.acknowledged: list[tuple[str | None, str]] = []
        self.commands = SimpleNamespace(journalled=journalled)
        self.desk = SimpleNamespace(hear=lambda event: self.heard.append(f"{event.author} {event.text}"))

    def acknowledge(self, key: str | None, author: str) -> None:
        self.acknowledged.append((key, author))

    def takes_in(self, *fresh: Kept) -> list[str]:
        take_in(cast("Engine", self), fresh)
        return self.heard


def test_acts_of_others_are_told_and_neither_the_engine_s_nor_this_node_s_own() -> None:
    node = Node(journalled=[7])
    assert node.takes_in(kept(6, "ana@bastion"), kept(7), kept(8, "auto")) == [
        f"ana@bastion rate {NUMBER} 80→40 (cli)"
    ]


def test_an_alert_that_somebody_took_on_elsewhere_is_acknowledged_and_told() -> None:
    node = Node([])
    one = kept(6, "bo", act="acknowledge", target="stuck", before=None, after=None)
    every = kept(7, "bo", act="acknowledge", target="all", before=None, after=None)
    assert node.takes_in(one, every) == ["bo acknowledge stuck (cli)", "bo acknowledge all (cli)"]
    assert node.acknowledged == [("stuck", "bo"), (None, "bo")]


def test_an_act_that_was_refused_is_told_as_refused() -> None:
    refused = kept(6, before=None, after=None, result="refused: A rate of 81/s is above the limit.")
    assert event_of(refused) == EventView(
        AT, "ana", f"rate {NUMBER} (cli): refused: A rate of 81/s is above the limit."
    )


async def test_every_entry_that_commands_write_is_known_as_their_own(pool: Pool) -> None:
    await builders.number(pool)
    made = await builders.campaign(pool, state="running")
    await builders.recipients(pool, made, 1)
    begin = await journal.end(pool)
    commands = Commands(pool, author="ana", origin="console")
    await commands.set_rate(NUMBER, 40)
    await commands.pause_number(NUMBER)
    await commands.pause_all("lunch")
    await commands.reconcile(dry_run=False)
    with pytest.raises(Refused):
        await commands.set_rate(NUMBER, 10_000)
    await journal.write(pool, Entry("bo", "cli", "pause campaign", "reminder"))
    entries = await journal.since(pool, begin, 100)
    assert [e.author for e in entries if e.id not in commands.journalled] == ["bo"]
    assert len(entries) == 6
    node = Node(cast("Any", commands.journalled))
    assert node.takes_in(*entries) == ["bo pause campaign reminder (cli)"]
