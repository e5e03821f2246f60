"""Why a campaign does not end: what its rows wait for, and whether anybody is there to send them."""

import re
from typing import cast

from engine.commands import Commands
from engine.commands.campaign import report_json
from engine.domain.heard import engines
from engine.domain.recipient import State
from engine.postgres import nodes
from engine.postgres.nodes import Identity
from engine.postgres.pool import Pool
from tests.support import builders, owned

ASIDE = "INSERT INTO lane (campaign_id, aside, hold) VALUES ($1, 'twins', 'twins') RETURNING lane_id"


async def test_a_campaign_says_what_its_rows_wait_for(pool: Pool) -> None:
    await owned.owned(pool)
    made = await builders.campaign(pool, numbers=[owned.NUMBER], state="running")
    aside = await pool.fetchval(ASIDE, made.campaign_id)
    await builders.recipients(pool, made, 3, lane_id=aside)
    await builders.recipients(pool, made, 2, state=State.UNKNOWN, number_id=1)
    commands = Commands(pool, author="ana", origin="cli")
    shown = report_json(await commands.show_campaign("reminder"))
    assert shown["aside"] == 3
    assert shown["waits"] == [
        {
            "rows": 3,
            "for": "person",
            "text": "a person: 3 rows kept aside: `tidegate rows list --campaign reminder --twins`",
        },
        {
            "rows": 2,
            "for": "person",
            "text": "evidence or a person: 2 unknown rows: `tidegate reconcile --campaign reminder --dry-run`",
        },
    ]
    assert shown["eta"] is None, "nothing of it goes by itself"
    await commands.cancel_campaign("reminder")
    assert report_json(await commands.show_campaign("reminder"))["waits"] == []


async def test_a_pause_keeps_the_reason_of_the_hold_before_it(pool: Pool) -> None:
    made = await builders.campaign(pool, state="held")
    await builders.recipients(pool, made, 1)
    await pool.execute("UPDATE campaign SET reason = '60% of the last 200 failed', held_by = 'failures'")
    commands = Commands(pool, author="ana", origin="cli")
    await commands.pause_campaign("reminder", "lunch")
    both = "lunch; before that held: 60% of the last 200 failed"
    assert (await commands.show_campaign("reminder")).campaign.reason == both


async def test_a_dead_engine_does_not_look_alive_until_its_lease_is_over(pool: Pool) -> None:
    permission = await owned.owned(pool)
    [lease] = await pool.fetch("SELECT owner FROM lease WHERE number_id = $1", permission.number_id)
    commands = Commands(pool, author="ana", origin="cli")
    assert engines(await commands.heard_nodes()) == "no engine is running: `tidegate run` starts one"
    await nodes.beat(pool, Identity(lease["owner"], "node-a", "host", 1, None))
    assert engines(await commands.heard_nodes()) == "engines: node-a"
    await pool.execute("UPDATE node SET seen_at = seen_at - interval '7 seconds'")
    said = re.fullmatch(
        r"no engine is running: node-a silent for (\d+) s", engines(await commands.heard_nodes())
    )
    assert said is not None
    assert 7 <= int(said[1]) < 60
    [number] = await commands.list_numbers()
    assert number.owner is not None, "its lease still runs"
    assert 7 <= cast("int", number.as_json()["owner_silent_s"]) < 60
