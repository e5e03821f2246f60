"""Requests that were taken and never answered: settled by proof first, then by each campaign's policy, once."""

from __future__ import annotations

import signal
from collections import Counter
from typing import Any

from engine.control import audit
from engine.domain.recipient import State
from tests.support.world import NUMBER, SILENT, World, scenario, try_of, world

POLICIES = ("hold", "resend", "assume_sent")
PEOPLE = 40
LOST = 4
"""Of each campaign's people: those whose number ends in 5."""

AN_HOUR_LATER = "UPDATE recipient SET moved_at = moved_at - interval '1 hour' WHERE state = 'u'"
STATUSES_ARRIVE = "UPDATE webhook_seen SET at = clock_timestamp()"
BY_CAMPAIGN = """
SELECT c.name, r.state, count(*) AS n FROM recipient r JOIN lane l USING (lane_id) JOIN campaign c USING (campaign_id)
 GROUP BY 1, 2
"""
RESENT = "SELECT recipient_id FROM try WHERE outcome = 'resend_decided' ORDER BY 1"


async def test_what_was_taken_and_never_answered_is_proven_or_settled_by_policy_once(
    database_url: str,
) -> None:
    lost = {"do": "never_answer", "match": {"to_ends_with": "5"}}
    async with world(database_url, scenario(lost, statuses=SILENT), {NUMBER: 60}) as w:
        for nth, policy in enumerate(POLICIES):
            await w.campaign(policy, people=PEOPLE, first=100 * nth, unknown_policy=policy)
        engine = await w.engine(request_deadline="3s", lease="10s")
        await w.until_counts(unknown=3 * LOST, sent=3 * (PEOPLE - LOST))
        ledger = await w.prove()
        assert len(ledger) == 3 * PEOPLE

        proven = [entry for entry in ledger if not entry["to"].endswith(("15", "35"))]
        for entry in proven:
            await w.tell(entry, "read")
        await w.until_counts(read=len(proven))
        left = await _states(w)
        assert all(left[policy] == {"read": PEOPLE - 2, "unknown": 2} for policy in POLICIES), left
        assert len(await w.prove()) == 3 * PEOPLE, "a proven row was asked for again"
        early = (await w.tidegate("reconcile", "--json")).json
        assert (early["waiting"], early["to_pending"], early["to_sent"]) == (6, 0, 0)

        engine.signal(signal.SIGTERM)
        await engine.ended()
        await _an_hour_later(w)
        looked = (await w.tidegate("reconcile", "--dry-run", "--json")).json
        assert (looked["to_pending"], looked["to_sent"], looked["stay_unknown"]) == (2, 2, 2)
        assert await _states(w) == left, "a dry run changes nothing"
        await _an_hour_later(w)
        done = await w.tidegate("reconcile")
        assert done.code == 0, done.err
        assert "possible duplicates" in done.out
        now = await _states(w)
        assert now["hold"] == {"read": PEOPLE - 2, "unknown": 2}
        assert now["resend"] == {"read": PEOPLE - 2, "pending": 2}
        assert now["assume_sent"] == {"read": PEOPLE - 2, "sent": 2}

        await _resent_once(w)
        await _a_person_decides(w)


async def _resent_once(w: World) -> None:
    """What the policy put back leaves once more; what is lost again waits for a person."""
    again = {"do": "never_answer", "match": {"first": 1}}
    await w.sim.replace(scenario(again, statuses=SILENT))
    engine = await w.engine(request_deadline="3s", lease="10s")
    await w.until_counts(unknown=3, sent=3)
    engine.signal(signal.SIGTERM)
    await engine.ended()
    await _an_hour_later(w)
    settled = (await w.tidegate("reconcile", "--json")).json
    assert (settled["to_pending"], settled["to_sent"], settled["stay_unknown"]) == (0, 0, 3)
    resent = [row["recipient_id"] for row in await w.db.fetch(RESENT)]
    assert len(resent) == 2
    requests = Counter(try_of(entry)[0] for entry in await w.sim.ledger())
    assert {row for row, n in requests.items() if n > 1} == set(resent)
    assert max(requests.values()) == 2
    shown = (await w.tidegate("campaign", "show", "resend", "--json")).json
    assert shown["possible_duplicates"] == 2
    story = (await w.tidegate("rows", "show", str(resent[0]), "--json")).json["timeline"]
    assert [line["outcome"] for line in story][:2] == ["unknown", "resend_decided"]
    assert "no status came" in story[1]["raw"]


async def _a_person_decides(w: World) -> None:
    """The rows that wait for a person: a decision for one campaign, journalled with its author."""
    refused = await w.tidegate("reconcile", "--as", "resend")
    assert (refused.code, "--campaign" in refused.err) == (2, True)
    await _an_hour_later(w)
    decided = (await w.tidegate("reconcile", "--campaign", "hold", "--as", "assume_sent", "--json")).json
    assert (decided["to_sent"], decided["stay_unknown"]) == (2, 0)
    acts = await w.db.fetch("SELECT origin, act, target, reason, result FROM journal WHERE act = 'reconcile'")
    assert ("cli", "reconcile", "hold", "as assume_sent") in [tuple(act)[:4] for act in acts]
    assert [act["result"] for act in acts if act["result"].startswith("2 to sent, 2 to pending")]
    shown = (await w.tidegate("campaign", "show", "hold", "--json")).json
    assert (shown["assumed_sent"], shown["counts"]["unknown"]) == (2, 0)
    found = await audit.run(w.db)
    assert found.holds, [(check.text, check.offenders) for check in found.checks if not check.holds]


async def _an_hour_later(w: World) -> None:
    await w.db.execute(AN_HOUR_LATER)
    await w.db.execute(STATUSES_ARRIVE)


async def _states(w: World) -> dict[str, dict[str, Any]]:
    states: dict[str, dict[str, Any]] = {policy: {} for policy in POLICIES}
    for row in await w.db.fetch(BY_CAMPAIGN):
        states[row["name"]][State(row["state"].decode()).word] = row["n"]
    return states
