"""When rows may go out: starts at a time, quiet hours, deadlines that cannot be met, a canary."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine import clock
from engine.commands import Commands, Refused
from engine.commands.campaign import report_json
from engine.control import audit, opening
from engine.domain.canary import Canary
from engine.domain.quiet import Quiet, parse_quiet
from engine.domain.recipient import State
from engine.intake.importer import import_audience
from engine.postgres import books, claims, desired, journal
from engine.postgres.campaigns import Draft
from engine.postgres.pool import Pool
from tests.support import builders, owned

NUMBER = "106540352242922"
PEOPLE = ("+5511988880001", "+5592988880001", "+5568988880001", "+12025550123")


@pytest.fixture
async def commands(pool: Pool) -> Commands:
    await builders.number(pool, NUMBER)
    return Commands(pool, author="ana", origin="cli")


async def campaign(
    pool: Pool, commands: Commands, tmp_path: Path, people: Sequence[str] = PEOPLE, **given: Any
) -> None:
    await commands.create_campaign(Draft("reminder", (NUMBER,), "reminder_v2", "pt_BR", **given))
    if people:
        await audience(pool, tmp_path, people)


async def audience(pool: Pool, tmp_path: Path, people: Sequence[str]) -> None:
    path = tmp_path / "people.csv"
    path.write_text("phone\n" + "\n".join(people) + "\n")
    report = await import_audience(pool, path, campaign="reminder", author="ana")
    assert report.taken == len(people)


async def standing(pool: Pool) -> tuple[str, str | None]:
    row = await pool.fetchrow("SELECT state, reason FROM campaign")
    assert row is not None
    return row["state"], row["reason"]


async def due_since(pool: Pool, seconds: float) -> None:
    await pool.execute(
        "UPDATE campaign SET start_at = clock_timestamp() - $1::interval", timedelta(seconds=seconds)
    )


def soon() -> datetime:
    return clock.now() + timedelta(hours=1)


# A start at its time


async def test_a_campaign_starts_by_itself_at_its_time_and_no_sooner(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await campaign(pool, commands, tmp_path, start_at=soon())
    assert await standing(pool) == ("scheduled", None)
    await opening.start_due(pool)
    assert await standing(pool) == ("scheduled", None)
    await due_since(pool, 1)
    await opening.start_due(pool)
    await opening.start_due(pool)
    assert await standing(pool) == ("running", None)
    kept = [(e.author, e.act, e.after) for e in await journal.recent(pool) if e.act == "start campaign"]
    assert kept == [("auto", "start campaign", "running")]
    assert await pool.fetchval("SELECT started_at IS NOT NULL FROM campaign")


async def test_an_overdue_start_waits_for_a_person(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    await campaign(pool, commands, tmp_path, start_at=soon())
    await due_since(pool, 20 * 60)
    await opening.start_due(pool)
    state, reason = await standing(pool)
    assert state == "held"
    assert "overdue by 20 min: `tidegate campaign start reminder --confirm`" in (reason or "")
    for act in (commands.start_campaign, commands.resume_campaign):
        with pytest.raises(Refused, match=r"overdue by 20 min.*--confirm"):
            await act("reminder")
    await opening.start_due(pool)
    assert (await standing(pool))[0] == "held"
    assert (await commands.start_campaign("reminder", confirm=True)).before == "held"
    assert await standing(pool) == ("running", None)


async def test_a_start_with_nobody_to_write_to_is_held_and_says_so(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await campaign(pool, commands, tmp_path, people=(), start_at=soon())
    await due_since(pool, 1)
    await opening.start_due(pool)
    state, reason = await standing(pool)
    assert state == "held"
    assert "no recipients" in (reason or "")


async def test_a_scheduled_campaign_that_was_paused_waits_for_its_time_again(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await campaign(pool, commands, tmp_path, start_at=soon())
    await commands.pause_campaign("reminder")
    assert (await commands.resume_campaign("reminder")).after == "scheduled"
    assert (await commands.start_campaign("reminder")).after == "running"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"start_at": datetime.fromisoformat("2020-01-01T00:00Z")}, "has passed"),
        ({"quiet": parse_quiet("21:00-08:00")}, "need a zone"),
        ({"zone": "Europe/Berlin"}, "give --quiet, too"),
        ({"retry_marketing_limit": True}, "for --category marketing"),
    ],
)
async def test_what_does_not_go_together_is_refused(
    pool: Pool, commands: Commands, tmp_path: Path, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        await campaign(pool, commands, tmp_path, people=(), **given)


# Quiet hours


def around(now: datetime, before: int, after: int) -> Quiet:
    """Quiet from so many minutes before the UTC clock's time until so many after."""
    begins = (now + timedelta(minutes=before)).time().replace(second=0, microsecond=0)
    ends = (now + timedelta(minutes=after)).time().replace(second=0, microsecond=0)
    return Quiet(begins, ends)


async def open_lanes(pool: Pool) -> set[str]:
    (found,) = (await desired.read(pool)).campaigns.values()
    zones = {row["lane_id"]: row["zone"] for row in await pool.fetch("SELECT lane_id, zone FROM lane")}
    return {zones[lane] for lane in found.lanes}


async def test_each_person_sleeps_by_the_clocks_of_the_own_area(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await campaign(pool, commands, tmp_path, quiet=parse_quiet("21:00-08:00"), zone="recipient")
    zones = {row["zone"] for row in await pool.fetch("SELECT zone FROM lane")}
    assert zones == {"America/Sao_Paulo", "America/Manaus", "America/Rio_Branco", "America/New_York"}
    assert await open_lanes(pool) == set(), "nothing is open before the clocks have been looked at"


async def test_a_zone_that_is_named_holds_for_all(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    night = around(clock.now(), -60, 60)
    await campaign(pool, commands, tmp_path, quiet=night, zone="UTC")
    assert {row["zone"] for row in await pool.fetch("SELECT zone FROM lane")} == {""}
    await opening.follow_clocks(pool)
    assert await open_lanes(pool) == set()


async def test_lanes_open_and_close_with_the_clocks_and_engines_are_told(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await campaign(pool, commands, tmp_path, quiet=around(clock.now(), 60, 120), zone="UTC")
    version = await desired.version(pool)
    assert await opening.follow_clocks(pool) == 2
    assert await desired.version(pool) == version + 1
    assert await open_lanes(pool) == {""}
    closes = await pool.fetchval("SELECT min(closes_at) FROM lane")
    assert timedelta(minutes=58) < closes - clock.now() <= timedelta(minutes=60)
    assert await opening.follow_clocks(pool) == 0
    await pool.execute("UPDATE campaign SET quiet_from = $1", around(clock.now(), -5, 0).begins)
    assert await opening.follow_clocks(pool) == 2
    assert await open_lanes(pool) == set()


async def test_what_another_reason_holds_is_left_to_it(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await campaign(pool, commands, tmp_path, quiet=around(clock.now(), 60, 120), zone="UTC")
    await pool.execute("UPDATE lane SET hold = 'why' WHERE country = 'US'")
    assert await opening.follow_clocks(pool) == 1
    assert await pool.fetchval("SELECT hold FROM lane WHERE country = 'US'") == "why"


async def test_the_mark_refuses_from_the_moment_on_at_which_a_lane_closes(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await campaign(pool, commands, tmp_path, quiet=around(clock.now(), 60, 120), zone="UTC")
    await opening.follow_clocks(pool)
    await commands.start_campaign("reminder")
    permission = await owned.lease(pool, 1)
    assert permission is not None
    lanes = [row["lane_id"] for row in await pool.fetch("SELECT lane_id FROM lane")]
    rows, _ = await claims.claim(pool, permission, owned.head(*lanes), 10)
    assert len(rows) == len(PEOPLE)
    await pool.execute("UPDATE lane SET closes_at = clock_timestamp() WHERE country = 'BR'")
    asks = [claims.Ask(r.id, permission, 1, r.phone, "WABA1/t/en") for r in rows]
    assert sorted((await claims.mark(pool, asks)).values()) == ["held", "held", "held", "ok"]


# Deadlines


async def test_rows_that_cannot_be_met_are_told(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    await pool.execute("UPDATE number SET rate = 0.01")
    await campaign(pool, commands, tmp_path, deadline=clock.now() + timedelta(seconds=290))
    shown = report_json(await commands.show_campaign("reminder"))
    assert shown["late"] == 2
    await pool.execute("UPDATE number SET rate = 10")
    assert report_json(await commands.show_campaign("reminder"))["late"] == 0


# A canary


async def settle(pool: Pool, state: State, n: int, code: int | None = None) -> None:
    """Rows of the canary come to an end, long ago."""
    await pool.execute(
        """
        WITH k AS (SELECT r.id, r.lane_id FROM recipient r JOIN lane l USING (lane_id)
                    WHERE l.aside = 'canary' AND r.state = 'p' ORDER BY r.id LIMIT $2),
        m AS (UPDATE recipient r SET state = $1::"char", next_attempt_at = NULL, code = $3, tries = 1,
                     moved_at = now() - interval '1 hour' FROM k WHERE r.id = k.id),
        t AS (INSERT INTO tally_delta (lane_id, what, code, n)
              SELECT lane_id, 'T'::"char", 0, count(*) FROM k GROUP BY 1
              UNION ALL SELECT lane_id, 'F', $3, count(*) FROM k WHERE $3::int IS NOT NULL GROUP BY 1)
        INSERT INTO book_delta (lane_id, f, t, n) SELECT lane_id, 'p', $1::"char", count(*) FROM k GROUP BY 1
        """,
        state.value.encode(),
        n,
        code,
    )


CROWD = tuple(f"+551198{n:07d}" for n in range(20))


async def with_canary(pool: Pool, commands: Commands, tmp_path: Path, **given: Any) -> None:
    await campaign(pool, commands, tmp_path, CROWD, canary=Canary(rows=5, max_failed=0.2), **given)
    said = await commands.start_campaign("reminder")
    assert "5 rows first; the others follow" in said.warnings[0]


async def waiting(pool: Pool) -> dict[str, int]:
    """Pending rows by what holds their lane; '' when nothing does."""
    rows = await pool.fetch(
        "SELECT coalesce(hold, '') AS hold, count(*) FROM lane JOIN recipient USING (lane_id) "
        "WHERE state = 'p' GROUP BY 1"
    )
    return {row["hold"]: row["count"] for row in rows}


async def test_the_first_go_alone_and_the_rest_follows_when_they_did_well(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await with_canary(pool, commands, tmp_path)
    assert await waiting(pool) == {"": 5, "canary": 15}
    first = await pool.fetch(
        "SELECT d.phone FROM recipient r JOIN lane l USING (lane_id) JOIN recipient_data d USING (id) "
        "WHERE l.aside = 'canary' ORDER BY id"
    )
    assert tuple(row["phone"] for row in first) == CROWD[:5]
    await settle(pool, State.DELIVERED, 4)
    await opening.judge_canaries(pool)
    assert await waiting(pool) == {"": 1, "canary": 15}, "one of them has not been answered"
    await settle(pool, State.FAILED, 1, 131026)
    await opening.judge_canaries(pool)
    assert await waiting(pool) == {"": 15}
    assert report_json(await commands.show_campaign("reminder"))["canary"] == "passed"
    assert all(check.holds for check in (await audit.run(pool)).checks if check.invariant == 2)


async def test_a_bad_canary_holds_the_campaign_until_a_person_lets_it_go_on(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await with_canary(pool, commands, tmp_path)
    await settle(pool, State.READ, 3)
    await settle(pool, State.FAILED, 1, 131026)
    await settle(pool, State.FAILED, 1, 131050)
    await opening.judge_canaries(pool)
    state, reason = await standing(pool)
    assert (state, reason) == ("held", "its canary: 1 of 5 failed and 1 said stop (40%; allowed 20%)")
    assert await waiting(pool) == {"canary": 15}
    await opening.judge_canaries(pool)
    assert (await standing(pool))[0] == "held"
    await commands.resume_campaign("reminder")
    await opening.judge_canaries(pool)
    assert await waiting(pool) == {"": 15}


async def test_who_is_imported_while_the_first_are_out_waits_with_the_others(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await with_canary(pool, commands, tmp_path)
    await audience(pool, tmp_path, PEOPLE)
    assert await waiting(pool) == {"": 5, "canary": 19}


async def test_a_canary_keeps_quiet_hours_too(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    await with_canary(pool, commands, tmp_path, quiet=around(clock.now(), -60, 60), zone="UTC")
    await opening.follow_clocks(pool)
    assert await waiting(pool) == {"quiet": 5, "canary": 15}
    await settle(pool, State.READ, 5)
    await opening.judge_canaries(pool)
    assert await waiting(pool) == {"quiet": 15}


async def test_books_of_a_split_audience_balance(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    await with_canary(pool, commands, tmp_path)
    ((_, counts),) = (await books.balances(pool)).items()
    assert counts[State.PENDING] == len(CROWD)
    assert (await audit.run(pool)).holds
