"""What the provider posts reaches an engine at work: stops, good news, wishes, and the desk that answers people."""

from __future__ import annotations

import time
from typing import Any

from engine.control import audit
from engine.domain.recipient import State
from engine.postgres import breakers
from tests.support.world import NUMBER, SECOND, World, quick_statuses, scenario, world

WABA = "WABA1"
TEMPLATE = f"{WABA}/reminder_v2/pt_BR"


def news(
    field: str, value: dict[str, Any], *, account: str = WABA, at: float | None = None
) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": account, "changes": [{"field": field, "value": value}]}
    if at is not None:
        entry["time"] = int(at)
    return {"object": "whatsapp_business_account", "entry": [entry]}


def template(event: str) -> dict[str, Any]:
    value = {"event": event, "message_template_name": "reminder_v2", "message_template_language": "pt-BR"}
    return news("message_template_status_update", value)


async def holds(w: World) -> list[tuple[str, str]]:
    return [(one.scope.value, one.key) for one in await breakers.open_breakers(w.db)]


async def until_holds(w: World, *wanted: tuple[str, str]) -> None:
    async def reached() -> bool:
        return await holds(w) == list(wanted)

    await w.until(reached, f"holds {wanted}")


async def suppressed(w: World) -> list[tuple[str, str, str]]:
    rows = await w.db.fetch("SELECT phone, scope, source FROM suppression ORDER BY phone, scope")
    return [(row["phone"], row["scope"], row["source"]) for row in rows]


async def test_a_paused_template_holds_its_campaign_until_it_is_approved_again(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        await w.campaign(people=120)
        await w.engine()
        await w.until_requests(10)
        await w.sim.webhook(template("PAUSED"))
        await w.until_campaign("held")
        assert await holds(w) == [("template", TEMPLATE)]
        assert "paused" in str((await w.campaign_state())[1])
        await w.sim.webhook(template("APPROVED"))
        await w.until_counts(read=120)
        assert await holds(w) == []
        assert len(await w.prove()) == 120


async def test_a_ban_stops_every_number_of_the_account_and_its_end_lets_them_go_on(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 20, SECOND: 20}) as w:
        await w.campaign(people=200)
        await w.engine()
        await w.until_requests(20)
        ban = {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE"}}
        await w.sim.webhook(news("account_update", ban, account="SOMEBODY-ELSE"))
        await w.sim.webhook(news("account_update", ban))
        await w.until_campaign("held")
        assert ("account", WABA) in await holds(w)
        back = {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "REINSTATE"}}
        await w.sim.webhook(news("account_update", back))
        await w.until_counts(read=200)
        assert len(await w.prove()) == 200


async def test_a_payment_problem_told_only_by_webhooks_sends_every_row_back_until_it_is_lifted(
    database_url: str,
) -> None:
    unpaid = {"code": 131042, "title": "Business eligibility payment issue", "share": 1.0}
    failing = quick_statuses(failures=[unpaid], failed_s=[0.0, 0.1])
    async with world(database_url, scenario(statuses=failing), {NUMBER: 20}) as w:
        await w.campaign(people=60)
        await w.engine()
        await until_holds(w, ("account", WABA))
        await w.until_campaign("held")
        await w.until_counts(pending=60)
        assert await w.db.fetchval("SELECT count(*) FROM recipient WHERE state = 'f'") == 0
        sent = await w.requests()
        assert sent < 60, "it went on although every message failed"
        await w.sim.replace(scenario())
        [hold] = await breakers.open_breakers(w.db)
        lifted = await w.tidegate("hold", "lift", str(hold.breaker_id))
        assert lifted.code == 0, lifted.err
        await w.until_counts(read=60)
        found = await audit.run(
            w.db
        )  # the provider refused those itself: sending them again is no repetition
        assert found.holds, [(check.text, check.offenders) for check in found.checks if not check.holds]
        assert await w.requests() == 60 + sent


async def test_whoever_writes_stop_gets_nothing_more_under_any_spelling(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 2}) as w:
        await w.campaign(people=12)
        await w.engine()
        await w.sim.inbound(NUMBER, "+551160000011", " Parar! ")  # as WhatsApp may know +5511960000011
        await w.sim.inbound(NUMBER, "+5511960000010", "stop")
        await w.sim.inbound(NUMBER, "+5511960000009", "please do not stop")
        await w.until_counts(suppressed=2, read=10)
        assert {("+5511960000010", "all", "stop"), ("+5511960000011", "all", "stop")} <= {
            *await suppressed(w)
        }
        assert all("0000009" not in phone for phone, _, _ in await suppressed(w))
        await w.prove()


async def test_people_stop_marketing_by_preference_and_come_back(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        await w.engine()
        now = int(time.time())

        def wish(value: str, at: int) -> dict[str, Any]:
            one = {"wa_id": "16505551234", "category": "marketing_messages", "value": value, "timestamp": at}
            return news("user_preferences", {"user_preferences": [one]})

        async def stopped() -> bool:
            return await suppressed(w) == [("+16505551234", "marketing", "user_preferences")]

        async def back() -> bool:
            return await suppressed(w) == []

        await w.sim.webhook(wish("stop", now - 10))
        await w.until(stopped, "one line")
        await w.sim.webhook(wish("resume", now - 5))
        await w.until(back, "no line")


async def test_what_nobody_knows_is_kept_and_disturbs_nothing(database_url: str) -> None:
    async with world(database_url, scenario(), {NUMBER: 20}) as w:
        await w.campaign(people=20)
        await w.engine()
        unknown: list[Any] = [[], 7, {"entry": 3}, {"entry": [{"changes": [1]}]}]
        for odd in [*unknown, news("a_field_to_come", {"event": "HELLO"})]:
            await w.sim.webhook(odd)
        await w.sim.webhook(
            news("phone_number_quality_update", {"display_phone_number": "1", "event": "THROUGHPUT_UPGRADE"})
        )
        await w.until_counts(read=20)

        async def told() -> bool:
            rows = await w.db.fetch("SELECT field, event FROM provider_event")
            return sorted(map(tuple, rows)) == [
                ("a_field_to_come", "HELLO"),
                ("phone_number_quality_update", "THROUGHPUT_UPGRADE"),
            ]

        await w.until(told, "two events")
        await w.prove()
        assert await w.counts() == {State.READ: 20}
