"""Every act of the console, from the key that is pressed on a real terminal to the requests at the provider.

One engine under one screen for the whole file; each test leaves the number sending as it found it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from engine.domain.recipient import State
from tests.support.database import TestServer
from tests.support.screen import Screen, screen
from tests.support.world import NUMBER, SILENT, WITHIN_S, World, most_in, scenario, world

pytestmark = pytest.mark.asyncio(loop_scope="module")

RATE, LIMIT = 40, 60
SECOND_US = 1_000_000
OF_CAMPAIGN = """
SELECT r.state, count(*) AS n FROM recipient r JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
 WHERE c.name = $1 GROUP BY 1
"""
LONG_AGO = "UPDATE recipient SET moved_at = moved_at - interval '1 hour' WHERE state = 'u'"
NOT_BY_ITSELF = """
UPDATE job_lease SET owner = gen_random_uuid(), until = clock_timestamp() + interval '1 hour' WHERE name = 'reconcile'
"""
"""The engine, too, settles what it does not know, once in a while: here a person does."""

STATUSES_ARRIVE = "UPDATE webhook_seen SET at = clock_timestamp()"
RATE_NOW = "SELECT rate FROM number WHERE id = $1"


class Night:
    """The world, and the screen that a person sits at."""

    def __init__(self, w: World, shown: Screen) -> None:
        self.w, self.shown = w, shown

    async def acted(self, act: str, stage: str = "in effect") -> float:
        """Wait until the screen shows what came of an act; when it was seen, in microseconds as the stamps."""
        await self.shown.until(rf"act#a\d+ {act}.*{stage}")
        return time.monotonic() * SECOND_US

    async def requests(self) -> int:
        return await self.w.requests()

    async def goes_on(self, more: int = 20) -> None:
        """So many requests more."""
        await self.w.until_requests(await self.requests() + more)

    async def stands_still(self) -> None:
        """Nothing is claimed or in flight."""

        async def still() -> bool:
            counts = await self.w.counts()
            return not (counts[State.CLAIMED] or counts[State.SENDING])

        await self.w.until(still, "nothing claimed or in flight")

    async def stamps(self, since: float, until: float) -> list[int]:
        """When requests left in between, once what left afterwards has been written down, too."""

        async def written() -> bool:
            return any(at > until for at in await self.w.stamps())

        await self.w.until(written, "the send log")
        return [at for at in await self.w.stamps() if since < at < until]

    async def answer(self, title: str, *typed: str) -> None:
        """A dialog that wants words, each with Enter; what comes last is the reason. Few, for they come at once, and
        the console takes more than 20 keys a second for a paste."""
        await self.shown.until(title)
        for words, then in zip(typed, ["Now the reason"] * (len(typed) - 1) + [""], strict=True):
            # The dialog's own text may hold the words too, and is painted after its title.
            await self.shown.rest()
            seen = self.shown.text.count(words)
            await self.shown.press(words)
            await self.w.until(lambda: self._shows(words, seen + 1), f"{words} in the dialog")  # noqa: B023
            await self.shown.press("\r")
            await self.shown.until(then or title, gone=not then)

    async def _shows(self, words: str, times: int) -> bool:
        return self.shown.text.count(words) >= times

    async def page(self, key: str, title: str) -> None:
        await self.shown.press(key)
        await self.shown.until(title)

    async def back(self) -> None:
        """To the overview, from a page that it opened."""
        await self.shown.press("\x1b")
        await self.shown.until("1 NUMBERS")

    async def leave_campaign(self, name: str) -> None:
        """To the overview, over the list; a key that comes again too soon counts as held down."""
        await self.shown.press("\x1b")
        await self.shown.until(f"CAMPAIGN {name}", gone=True)
        await self.back()

    async def counts(self, campaign: str) -> Mapping[str, int]:
        rows = await self.w.db.fetch(OF_CAMPAIGN, campaign)
        return {State(row["state"].decode()).word: row["n"] for row in rows}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def night(postgres: TestServer) -> AsyncIterator[Night]:
    with postgres.database() as url:
        async with (
            world(url, scenario(), {NUMBER: RATE}, limits={NUMBER: LIMIT}) as w,
            screen(w, "run", request_deadline="3s", lease="10s") as shown,
        ):
            await shown.until("LIVE")
            await w.campaign("natl", people=12_000)
            await w.until_requests(1)
            yield Night(w, shown)


async def test_after_p_is_acknowledged_nothing_leaves_until_r(night: Night) -> None:
    await night.goes_on()
    await night.shown.press("p")
    paused = await night.acted("PAUSE", r"ack \d+ms")
    await night.stands_still()
    resumed = time.monotonic() * SECOND_US
    await night.shown.press("r")
    await night.acted("RESUME")
    await night.goes_on()
    assert await night.stamps(paused, resumed) == []


async def test_a_rate_typed_after_equals_bounds_the_requests_and_u_takes_it_back(night: Night) -> None:
    await night.shown.press("=")
    await night.answer("messages per second", "10")
    slower = await night.acted("RATE", "in effect.*40→10")
    await night.goes_on(25)
    undone = time.monotonic() * SECOND_US
    await night.shown.press("u")
    await night.acted("RATE", "in effect.*10→40")
    await night.goes_on(60)
    slow = await night.stamps(slower + SECOND_US, undone)
    assert slow
    assert most_in(slow, SECOND_US) <= 10
    fast = [at for at in await night.w.stamps() if at > undone]
    assert most_in(fast, SECOND_US) > 10


async def test_a_step_down_and_a_step_up_are_applied_by_enter(night: Night) -> None:
    await night.shown.press("-")
    await night.shown.until("40→38")
    await night.shown.press("\r")
    slower = await night.acted("RATE", "in effect.*40→38")
    assert await night.w.db.fetchval(RATE_NOW, NUMBER) == 38
    await night.goes_on(80)
    await night.shown.press("+")
    await night.shown.until("38→40")
    faster = time.monotonic() * SECOND_US
    await night.shown.press("\r")
    await night.acted("RATE", "in effect.*38→40")
    assert await night.w.db.fetchval(RATE_NOW, NUMBER) == 40
    await night.goes_on()
    slow = await night.stamps(slower + SECOND_US, faster)
    assert slow
    assert most_in(slow, SECOND_US) <= 38


async def test_after_pause_all_is_acknowledged_nothing_leaves_until_it_is_continued(night: Night) -> None:
    await night.goes_on()
    await night.shown.press("P")
    await night.answer("PAUSE EVERYTHING", "all", "wrong")
    paused = await night.acted("PAUSE ALL", r"ack \d+ms")
    await night.stands_still()
    await night.shown.until("natl .PAUSED")  # it follows its numbers, and C refuses what changes under it
    await night.shown.press("C")
    await night.shown.until("RESUME ALL")
    resumed = time.monotonic() * SECOND_US
    await night.shown.press("y")
    await night.acted("RESUME ALL")
    await night.goes_on()
    assert await night.stamps(paused, resumed) == []


async def test_a_lifted_hold_lets_its_number_send_again(night: Night) -> None:
    await night.w.sim.replace(scenario({"do": "error", "code": 131048}))
    await night.page("h", r"HOLDS [1-9]")
    await night.shown.until("131048")
    await night.shown.until("natl .HELD")  # what follows from the hold has happened: the question is about it
    await night.stands_still()
    await night.w.sim.replace(scenario())
    before = await night.requests()
    await night.shown.press("\r")
    await night.shown.until("LIFT|RESUME")
    assert await night.requests() == before
    await night.shown.press("y")
    await night.answer("Now the reason", "mended")
    await night.acted("LIFT")
    await night.w.until_requests(before + 20)
    await night.back()


async def test_a_campaign_is_paused_resumed_and_cancelled_on_its_page(night: Night) -> None:
    await night.page("c", "CAMPAIGNS")
    await night.page("\r", "CAMPAIGN natl")
    await night.shown.press("p")
    paused = await night.acted("PAUSE natl")
    await night.stands_still()
    await night.shown.press("r")
    await night.shown.until("RESUME CAMPAIGN natl")
    resumed = time.monotonic() * SECOND_US
    await night.shown.press("y")
    await night.acted("RESUME natl")
    await night.goes_on()
    assert await night.stamps(paused, resumed) == []

    await night.shown.press("x")
    await night.answer("CANCEL CAMPAIGN natl", "natl", "over")
    await night.acted("CANCEL natl")
    await night.stands_still()
    left = await night.counts("natl")
    assert left.get("cancelled", 0) > 0
    assert "pending" not in left
    await night.leave_campaign("natl")


async def test_a_campaign_is_started_on_its_page_and_its_failed_rows_go_out_once_more(night: Night) -> None:
    await night.w.sim.replace(scenario(statuses=SILENT))
    before = await night.requests()
    await night.w.campaign("late", people=10, first=5000, start=False)
    await night.shown.until(r"late .DRAFT|. late  |\+1 draft")
    await night.page("c", "CAMPAIGNS")
    await night.page("\r", "CAMPAIGN late")
    assert await night.requests() == before
    await night.shown.press("s")
    await night.acted("START late")
    await night.w.until_requests(before + 10)

    sent = [entry for entry in await night.w.sim.ledger() if entry["n"] > before]
    for entry in sent[:3]:
        await _fails_later(night.w, entry)
    await night.w.until(lambda: _failed(night, 3), "three rows failed")
    await night.shown.press("F")
    await night.answer("RETRY THE FAILED ROWS OF late", "late", "mended")
    await night.acted("RETRY")
    await night.w.until_requests(before + 13)
    again = [entry["to"] for entry in (await night.w.sim.ledger())[-3:]]
    assert sorted(again) == sorted(entry["to"] for entry in sent[:3])
    await night.leave_campaign("late")


async def test_reconcile_sends_what_its_dry_run_said_and_only_after_y(night: Night) -> None:
    lost = [{"do": "never_answer", "match": {"to_ends_with": f"0600{n}", "first": 1}} for n in (0, 1)]
    await night.w.sim.replace(scenario(*lost, statuses=SILENT))
    before = await night.requests()
    await night.w.campaign("lost", people=2, first=6000, unknown_policy="resend")
    await night.w.until(lambda: _unknown(night, 2), "two rows unknown")
    await night.w.db.execute(NOT_BY_ITSELF)
    await night.w.db.execute(LONG_AGO)
    await night.w.db.execute(STATUSES_ARRIVE)
    await night.shown.until(r"unknown +2")
    await night.shown.press("R")
    await night.shown.until("2 → pending")
    assert await night.requests() == before + 2
    await night.shown.press("y")
    await night.w.until_requests(before + 4)


async def test_q_stops_the_engine_and_nothing_leaves_after_it(night: Night) -> None:
    await night.w.campaign("last", people=4000, first=10_000)
    await night.goes_on()
    await night.shown.press("Q")
    await night.answer("STOP THE ENGINE", "all", "over")
    async with asyncio.timeout(WITHIN_S):
        assert await night.shown.process.wait() == 0
    ended = time.monotonic() * SECOND_US
    assert not [at for at in await night.w.stamps() if at > ended]
    counts = await night.counts("last")
    assert counts["pending"] > 0
    assert not re.search("claimed|sending", str(dict(counts)))


async def _failed(night: Night, n: int) -> bool:
    return (await night.counts("late")).get("failed", 0) == n


async def _unknown(night: Night, n: int) -> bool:
    return (await night.counts("lost")).get("unknown", 0) == n


async def _fails_later(w: World, entry: Mapping[str, Any]) -> None:
    """A webhook tells that a message could not be delivered, for a reason that may pass."""
    status = {
        "id": entry["wamid"],
        "status": "failed",
        "timestamp": "1750030073",
        "recipient_id": entry["to"][1:],
        "biz_opaque_callback_data": entry["token"],
        "errors": [{"code": 131000, "title": "Something went wrong"}],
    }
    metadata = {"display_phone_number": "15550783881", "phone_number_id": entry["number"]}
    change = {
        "field": "messages",
        "value": {"messaging_product": "whatsapp", "metadata": metadata, "statuses": [status]},
    }
    await w.sim.webhook({"object": "whatsapp_business_account", "entry": [{"id": "W", "changes": [change]}]})
