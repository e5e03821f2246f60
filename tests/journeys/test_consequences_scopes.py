"""How far an error reaches, seen from outside: what else goes on, what waits, and how a person lets it go on."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

from engine.control import audit
from engine.domain.pacing import in_flight_bound, lead_room
from engine.domain.recipient import State
from engine.intake.importer import import_audience
from engine.postgres.campaigns import Draft
from tests.support.world import BODY, NUMBER, SECOND, World, quick_statuses, scenario, world

ROWS = """
SELECT d.phone, r.id, r.state, r.tries, r.attempts, r.code FROM recipient r JOIN recipient_data d USING (id)
"""
TEMPLATE = "WABA1/reminder_v2/pt_BR"
BRAZIL, PORTUGAL = 120, 10
RATES = {NUMBER: 40, SECOND: 10}
STALL_S = 2.0
"""As long as an answer may be under way here, while this machine has other things to do."""

UNKNOWN_CODE = 139999
SPECIAL = (17, 27, 37, 47)


async def test_number_country_pair_and_throttle_reach_no_further_than_they_should(database_url: str) -> None:
    rules = (
        {"do": "error", "code": 131048, "match": {"number": SECOND}},
        {"do": "error", "code": 130497, "match": {"to_ends_with": "9"}},
        {"do": "error", "code": 131056, "match": {"to_ends_with": "17", "first": 1}},
        {"do": "error", "code": 131056, "match": {"to_ends_with": "27", "first": 2}},
        {
            "do": "error",
            "code": UNKNOWN_CODE,
            "http_status": 429,
            "match": {"to_ends_with": "37", "first": 1},
        },
        {"do": "no_id", "match": {"to_ends_with": "47"}},
    )
    async with world(database_url, scenario(*rules), RATES) as w:
        await _campaign_in_two_countries(w)
        engine = await w.engine(lease="10s")
        await w.until_counts(read=BRAZIL - 1, pending=PORTUGAL, unknown=1)

        held = {(h["scope"], h["key"]): h for h in (await w.tidegate("hold", "list", "--json")).json}
        assert set(held) == {("number", SECOND), ("country", "WABA1/PT")}
        assert all(h["state"] == "held" and h["reason"] for h in held.values())
        assert (await w.campaign_state())[0] == "running", "one number and one country go on"
        rows = {row["phone"]: row for row in await w.db.fetch(ROWS)}
        assert {row["attempts"] for phone, row in rows.items() if phone.startswith("+351")} == {0}
        assert (rows[_brazilian(17)]["attempts"], rows[_brazilian(27)]["attempts"]) == (2, 3)
        assert rows[_brazilian(37)]["attempts"] == 1, "a throttle spends nothing"
        ledger = await w.prove()
        refused = Counter(entry["code"] for entry in ledger if entry["code"])
        assert refused[UNKNOWN_CODE] == 1
        assert refused[131056] == 3
        in_flight = in_flight_bound(RATES[SECOND], STALL_S) + lead_room(RATES[SECOND])
        assert refused[131048] <= in_flight, "a stop costs what was in flight, no more"
        assert refused[130497] <= PORTUGAL

        await _shows_what_was_tried(w, rows[_brazilian(27)]["id"])
        await w.sim.replace(scenario())
        for hold in held.values():
            lifted = await w.tidegate("hold", "lift", str(hold["breaker_id"]), "--reason", "mended")
            assert lifted.code == 0, lifted.err
        await w.until_counts(read=BRAZIL - 1 + PORTUGAL)
        await w.prove()
        assert engine.running


async def test_a_template_that_is_assessed_then_paused_gets_every_row_back_behind_its_hold(
    database_url: str,
) -> None:
    pacing = {
        "after": 20,
        "for_s": 7.0,
        "then": "pause",
    }  # and its own news of the pause is about another account
    people = 340
    async with world(database_url, scenario(hold=pacing), {NUMBER: 100}) as w:
        await w.campaign(people=people)
        await w.engine(lease="10s")
        await w.until_counts(assessing=250)
        assert (await w.campaign_state())[0] == "running", "assessing is no failure"
        await w.until_campaign("held")
        assert str((await w.campaign_state())[1]).startswith("132015 ")
        await w.until(lambda: _settled(w, {State.READ, State.PENDING}), "every assessed row back or read")
        counts = await w.counts()
        assert counts[State.PENDING] >= 250, counts
        spent = await w.db.fetchval("SELECT sum(attempts) FROM recipient WHERE state = 'p'")
        assert spent == 0, "what the template's pause refused spent an attempt"

        await w.sim.webhook(_template("PAUSED"))  # the same news again, by the provider itself
        await w.until(lambda: _reason(w, "is paused by Meta"), "the provider's own word as the reason")
        holds = (await w.tidegate("hold", "list", "--json")).json
        assert [(h["scope"], h["state"]) for h in holds if h["key"] == TEMPLATE] == [("template", "held")]
        await w.sim.replace(scenario())
        await w.sim.webhook(_template("APPROVED"))
        await w.until_counts(read=people)
        await _audited(w)


async def test_a_run_most_of_whose_people_fail_by_webhook_holds_itself_and_strikes_nobody_off(
    database_url: str,
) -> None:
    nobody = {"code": 131026, "share": 0.6}
    told = quick_statuses(failures=[nobody], failed_s=[0.0, 0.2])
    people = 700
    async with world(database_url, scenario(statuses=told), {NUMBER: 100}) as w:
        await w.campaign(people=people)
        await w.engine(lease="10s")
        await w.until_campaign("held")
        _, reason = await w.campaign_state()
        assert reason is not None
        assert "of the last 200 answers are failures, most of them 131026" in reason
        await w.until(
            lambda: _settled(w, {State.READ, State.FAILED, State.PENDING}), "all that left is told of"
        )
        counts = await w.counts()
        assert counts[State.PENDING] > 0, counts
        assert counts[State.FAILED] > 100, counts
        assert await w.db.fetchval("SELECT count(*) FROM suppression") == 0
        assert (await w.tidegate("hold", "list", "--json")).json == [], (
            "nothing wider than the run is stopped"
        )

        shown = (await w.tidegate("campaign", "show", "reminder", "--json")).json
        [error] = shown["errors"]
        assert (error["code"], error["count"]) == (131026, counts[State.FAILED])
        assert error["advice"]
        assert "…" in error["example"]["phone"]
        assert (
            "Not on WhatsApp, old app, or terms not accepted."
            in (await w.tidegate("campaign", "show", "reminder")).out
        )
        await w.sim.replace(scenario())
        assert (await w.tidegate("campaign", "resume", "reminder")).code == 0
        await w.until_counts(read=people - counts[State.FAILED])
        await w.until_campaign("finished")
        assert (await w.counts())[State.FAILED] == counts[State.FAILED]
        await w.prove()


async def _shows_what_was_tried(w: World, row: int) -> None:
    shown = (await w.tidegate("rows", "show", str(row), "--json")).json
    assert [(line["n"], line["outcome"], line["code"]) for line in shown["timeline"]] == [
        (1, "refused", 131056),
        (2, "refused", 131056),
        (3, "accepted", None),
    ]
    assert all(line["sent_at"] and line["answered_at"] for line in shown["timeline"])
    assert "131056" in shown["timeline"][0]["raw"]
    statuses = {line["status"]: line for line in shown["statuses"]}
    assert {"sent", "delivered", "read"} >= set(statuses) >= {"read"}
    assert all(line["said_at"] and line["received_at"] for line in shown["statuses"])
    acts = [(act["author"], act["act"], act["target"]) for act in shown["acts"]]
    assert ("test", "start campaign", "reminder") in acts
    assert ("auto", "hold number", SECOND) not in acts, "another number's story"
    assert "…" in shown["phone"]
    text = (await w.tidegate("rows", "show", str(row))).out
    assert "RECEIVED_AT" in text
    assert "start campaign" in text


def _brazilian(nth: int) -> str:
    """Their numbers end in two digits of `nth`, which never end in 9: that is Portugal's."""
    return f"+551196{nth:07d}"


async def _campaign_in_two_countries(w: World) -> None:
    path = w.directory / "two-countries.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["phone", *BODY])
        for phone in _phones():
            writer.writerow([phone, "Ana", "12/03"])
    numbers = (NUMBER, SECOND)
    await w.commands.create_campaign(Draft("reminder", numbers, "reminder_v2", "pt_BR", body=BODY))
    report = await import_audience(w.db, path, campaign="reminder", author="test")
    assert report.taken == BRAZIL + PORTUGAL
    await w.commands.start_campaign("reminder")


def _phones() -> Iterable[str]:
    """Portugal's first, so that its refusals come early; two digits at the end name one person of Brazil."""
    yield from (f"+35191{nth:06d}9" for nth in range(PORTUGAL))
    brazil = (nth for nth in range(10, 1000) if nth % 10 != 9 and not (nth > 99 and nth % 100 in SPECIAL))
    yield from (_brazilian(nth) for nth in itertools.islice(brazil, BRAZIL))


def _template(event: str) -> dict[str, Any]:
    value = {"event": event, "message_template_name": "reminder_v2", "message_template_language": "pt-BR"}
    change = {"field": "message_template_status_update", "value": value}
    return {"object": "whatsapp_business_account", "entry": [{"id": "WABA1", "changes": [change]}]}


async def _reason(w: World, text: str) -> bool:
    return text in str((await w.campaign_state())[1])


async def _settled(w: World, states: set[State]) -> bool:
    return {state for state, n in (await w.counts()).items() if n} <= states


async def _audited(w: World) -> None:
    """The provider refused the first requests itself, so that its ledger shows rows twice: the books are the proof."""
    found = await audit.run(w.db)
    assert found.holds, [(check.text, check.offenders) for check in found.checks if not check.holds]
