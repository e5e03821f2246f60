"""The life of campaigns over real processes: who is served first, who waits for the morning, who goes first, who is
sent again."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, time, timedelta
from typing import Any

from engine import clock
from engine.domain.canary import Canary
from engine.domain.control import Control
from engine.domain.pacing import lead_room
from engine.domain.quiet import Quiet
from engine.domain.recipient import State
from tests.support.world import NUMBER, SECOND, World, scenario, try_of, world

PHASE = """
SELECT c.name, t.sent_at FROM try t JOIN recipient r ON r.id = t.recipient_id JOIN lane l USING (lane_id)
  JOIN campaign c USING (campaign_id) WHERE t.outcome = 'accepted' ORDER BY t.sent_at
"""
PHONES = "SELECT r.id, d.phone FROM recipient r JOIN recipient_data d USING (id)"


async def order(w: World) -> list[str]:
    """Names of campaigns in the order in which their requests left."""
    return [row["name"] for row in await w.db.fetch(PHASE)]


async def shown(w: World, name: str = "reminder") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await w.tidegate("campaign", "show", name, "--json")).out)
    return found


async def test_on_a_slow_number_the_near_deadline_is_served_first_and_the_passed_one_never(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: 16}) as w:
        now = clock.now()
        await w.campaign("none", people=30, first=0)
        await w.campaign("near", people=30, first=1000, deadline=now + timedelta(minutes=5))
        await w.campaign("past", people=30, first=2000, deadline=now + timedelta(hours=1))
        await w.db.execute("UPDATE campaign SET deadline = now() - interval '1 minute' WHERE name = 'past'")
        engine = await w.engine("--until-finished", "--linger", "0s")
        assert (await engine.ended()).code == 0
        sent = await order(w)
        assert Counter(sent) == {"none": 30, "near": 30}
        # A tenth goes round-robin, so that nobody starves; the rest belongs to the deadline.
        assert sent[:30].count("near") >= 24
        assert (await shown(w, "past"))["counts"]["expired"] == 30
        report = json.loads((await w.tidegate("campaign", "report", "past", "--json")).out)
        assert report["balances"]
        assert report["reasons"][0]["reason"].startswith("not sent before the deadline")
        await w.prove()


async def test_rows_that_cannot_be_met_are_told_and_expire_instead_of_going_out_late(
    database_url: str,
) -> None:
    async with world(database_url, scenario(), {NUMBER: 5}) as w:
        deadline = clock.now() + timedelta(seconds=6)
        await w.campaign(people=100, deadline=deadline)
        told = (await shown(w))["late"]
        can_be_met = 5 * (deadline - clock.now()).total_seconds()
        assert 70 <= told <= 100 - max(0, int(can_be_met) - 1)
        engine = await w.engine("--until-finished", "--linger", "0s")
        assert (await engine.ended()).code == 0
        counts = await w.counts()
        assert counts[State.EXPIRED] >= told
        assert (
            counts[State.EXPIRED] + counts[State.READ] + counts[State.DELIVERED] + counts[State.SENT] == 100
        )
        # What the mark let through just before its deadline may leave a moment after it.
        late = await w.db.fetchval("SELECT count(*) FROM try WHERE sent_at > $1", deadline)
        assert late <= lead_room(5)
        await w.prove()


def night(now: datetime, minutes: int) -> Quiet:
    """From half an hour ago until so many minutes from now, by UTC's clock."""
    begins, ends = now - timedelta(minutes=30), now + timedelta(minutes=minutes)
    return Quiet(_wall(begins), _wall(ends))


def _wall(at: datetime) -> time:
    return at.astimezone(UTC).time().replace(second=0, microsecond=0)


async def test_who_sleeps_waits_and_who_is_awake_is_written_to(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        quiet = night(clock.now(), 90)
        await w.campaign("asleep", people=20, quiet=quiet, zone="UTC")
        day = night(clock.now() - timedelta(hours=12), 90)
        await w.campaign("awake", people=20, first=500, quiet=day, zone="UTC")
        await w.engine()
        await w.until_campaign("finished", "awake")
        assert set(await order(w)) == {"awake"}
        # The night ends: the clocks say so, and nothing else is done.
        await w.db.execute(
            "UPDATE campaign SET quiet_from = $1, quiet_to = $2 WHERE name = 'asleep'",
            *_over(clock.now()),
        )
        await w.until_campaign("finished", "asleep")
        assert Counter(await order(w)) == {"awake": 20, "asleep": 20}
        await w.prove()


def _over(now: datetime) -> tuple[time, time]:
    quiet = night(now - timedelta(hours=12), 90)
    return quiet.begins, quiet.ends


async def test_a_campaign_starts_at_its_time_sends_its_canary_and_then_the_rest(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40}) as w:
        first = Canary(rows=5, max_failed=0.2, wait_s=1.0)
        await w.campaign(people=40, start=False, start_at=clock.now() + timedelta(seconds=4), canary=first)
        engine = await w.engine("--until-finished", "--linger", "0s")
        assert (await engine.ended()).code == 0
        ids = sorted(row["id"] for row in await w.db.fetch(PHONES))
        ledger = await w.prove()
        rows = [try_of(entry)[0] for entry in sorted(ledger, key=lambda e: e["at_us"])]
        assert set(rows[:5]) == set(ids[:5])
        assert set(rows[5:]) == set(ids[5:])
        assert (await shown(w))["canary"] == "passed"


async def test_a_canary_that_fails_keeps_the_rest_at_home(database_url: str) -> None:
    refused = {"do": "error", "code": 131026, "match": {"first": 5}}
    async with world(database_url, scenario(refused), {NUMBER: 40}) as w:
        await w.campaign(people=40, canary=Canary(rows=5, max_failed=0.2, wait_s=0.5))
        await w.engine()
        await w.until_campaign("held")
        assert await w.campaign_state() == (
            "held",
            "its canary: 5 of 5 failed and 0 said stop (100%; allowed 20%)",
        )
        counts = await w.counts()
        assert (counts[State.FAILED], counts[State.PENDING]) == (5, 35)
        await w.prove()


async def test_control_phones_get_the_message_first_and_stand_apart_from_the_audience(
    database_url: str,
) -> None:
    staff = ("+5511977770001", "+5511977770002")
    async with world(database_url, scenario(), {NUMBER: 20, SECOND: 20}) as w:
        control = Control(staff, {"name": "Ana", "date": "12/03"})
        await w.campaign(people=40, control=control, canary=Canary(rows=5, wait_s=0.5))
        await w.engine()
        await w.until_counts(read=42)
        await w.until_campaign("finished")
        sent = await order(w)
        assert sent[:2] == ["reminder:control-1"] * 2
        assert Counter(sent) == {"reminder:control-1": 2, "reminder": 40}
        report = json.loads((await w.tidegate("campaign", "report", "reminder", "--json")).out)
        assert (report["balances"], report["planned"]) == (True, 40)
        assert [(p["sent"], p["delivered"]) for p in report["controls"]["phones"]] == [(1, 1), (1, 1)]
        await w.prove()


async def test_failed_rows_are_sent_again_and_a_finished_campaign_runs_once_more(database_url: str) -> None:
    sick = {"do": "error", "code": 131000, "match": {"first": 4}}
    async with world(database_url, scenario(sick), {NUMBER: 40}) as w:
        await w.campaign(people=10, max_attempts=1)
        await w.engine()
        await w.until_campaign("finished")
        assert (await w.counts())[State.FAILED] == 4
        done = await w.tidegate("campaign", "retry-failed", "reminder", "--json")
        assert done.json["retried"] == 4
        await w.until_campaign("finished")
        await w.until_counts(read=10)
        await w.prove()


async def test_one_person_in_two_campaigns_gets_nothing_within_six_seconds(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 40, SECOND: 40}) as w:
        await w.campaign("one", people=10, numbers=(NUMBER,))
        await w.campaign("other", people=10, numbers=(SECOND,))
        engine = await w.engine("--until-finished", "--linger", "0s")
        assert (await engine.ended()).code == 0
        ledger = await w.prove()
        phones = Counter(entry["to"] for entry in ledger)
        assert set(phones.values()) == {2}
        for phone in phones:
            early, late = sorted(entry["at_us"] for entry in ledger if entry["to"] == phone)
            # Kept at the mark: on a machine that stands still, the first may leave, and arrive, some time after it.
            assert late - early >= 3_000_000


async def test_numbers_change_in_mid_run(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 2, SECOND: 40}) as w:
        await w.campaign(people=60, numbers=(NUMBER,))
        await w.engine()
        await w.until_requests(3)
        assert (await w.tidegate("campaign", "number", "reminder", "--add", SECOND)).code == 0
        assert (await w.tidegate("campaign", "number", "reminder", "--remove", NUMBER)).code == 0
        await w.until_campaign("finished")
        ledger = await w.prove()
        by_number = Counter(entry["number"] for entry in ledger)
        assert by_number[SECOND] > by_number[NUMBER] >= 3


async def test_an_account_stops_before_its_messaging_limit(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 10}) as w:
        assert (await w.tidegate("account", "limit", "WABA1", "40")).code == 0
        await w.campaign(people=80)
        await w.engine()
        await w.until_counts(read=30)

        async def waits() -> bool:
            found = await w.db.fetchval(
                "SELECT reason FROM breaker WHERE scope = 'account' AND state = 'waiting'"
            )
            return found is not None and "Meta allows it 40" in found

        await w.until(waits, "the account waits")
        await w.until_counts(read=32)
        assert 32 <= await w.requests() <= 40
        await w.prove()
