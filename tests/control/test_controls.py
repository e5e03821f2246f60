"""Control phones: a campaign's message goes to people of the house first, and again, beside its audience."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from engine import clock
from engine.commands import Commands, Refused
from engine.commands.campaign import report_json
from engine.control import audit, opening
from engine.domain.control import Control
from engine.domain.quiet import Quiet
from engine.intake.importer import import_audience
from engine.postgres import books, campaigns, claims, controls, desired
from engine.postgres.campaigns import Draft
from engine.postgres.claims import Claimed, Permission
from engine.postgres.pool import Pool
from tests.support import builders, owned

NUMBER = "106540352242922"
PEOPLE = ("+5511988880001", "+12025550123", "+12025550124")
STAFF = ("+5511977770001", "+351912345678")
FIRST = "reminder:control-1"


@pytest.fixture
async def commands(pool: Pool) -> Commands:
    await builders.number(pool, NUMBER)
    return Commands(pool, author="ana", origin="cli")


@pytest.fixture
async def permission(pool: Pool, commands: Commands) -> Permission:
    held = await owned.lease(pool, 1)
    assert held is not None
    return held


async def started(
    pool: Pool, commands: Commands, tmp_path: Path, every_s: float | None = 600.0, quiet: Quiet | None = None
) -> None:
    """A campaign that has just been started, with two control phones."""
    control = Control(STAFF, {"name": "Ana"}, every_s)
    draft = Draft("reminder", (NUMBER,), "reminder_v2", "pt_BR", ("name",), control=control)
    await commands.create_campaign(replace(draft, quiet=quiet, zone="UTC" if quiet else None))
    path = tmp_path / "people.csv"
    path.write_text("phone,name\n" + "".join(f"{phone},Ana\n" for phone in PEOPLE))
    assert (await import_audience(pool, path, campaign="reminder", author="ana")).taken == len(PEOPLE)
    said = await commands.start_campaign("reminder")
    assert said.warnings[0] == "2 control phones first, and then the audience."


async def claimable(pool: Pool, permission: Permission) -> list[Claimed]:
    """What an engine that reads everything anew would claim now."""
    found = []
    for campaign in (await desired.read(pool)).campaigns.values():
        if campaign.state == "running" and campaign.lanes:
            rows, _ = await claims.claim(pool, permission, owned.head(*campaign.lanes), 10)
            found += rows
    return found


async def mark(pool: Pool, permission: Permission, rows: Sequence[Claimed]) -> set[str]:
    asks = [claims.Ask(r.id, permission, r.tries + 1, r.phone, "WABA1/t/en") for r in rows]
    return set((await claims.mark(pool, asks)).values())


async def pass_time(pool: Pool, seconds: float) -> None:
    """For rounds of control phones."""
    ago = timedelta(seconds=seconds)
    await pool.execute("UPDATE campaign SET created_at = created_at - $1::interval WHERE control_of > 0", ago)
    await pool.execute("UPDATE try SET sent_at = sent_at - $1::interval", ago)


async def rounds(pool: Pool) -> list[tuple[str, str]]:
    rows = await pool.fetch("SELECT name, state FROM campaign WHERE control_of > 0 ORDER BY control_round")
    return [(row["name"], row["state"]) for row in rows]


async def accepted(pool: Pool, rows: Sequence[Claimed], state: str = "t") -> None:
    """Their requests were taken, as the writer and the applier leave it."""
    ids = [row.id for row in rows]
    await pool.execute(
        """
        WITH m AS (UPDATE recipient SET state = $2::"char", in_flight = NULL WHERE id = ANY($1)),
        t AS (INSERT INTO try (recipient_id, n, number_id, epoch, sent_at, outcome)
              SELECT unnest($1::bigint[]), 1, 1, 1, now(), 'accepted')
        INSERT INTO book_delta (lane_id, f, t, n)
        SELECT lane_id, 's', $2::"char", count(*) FROM recipient WHERE id = ANY($1) GROUP BY 1
        """,
        ids,
        state.encode(),
    )


async def test_the_audience_waits_until_the_control_phones_have_had_their_turn(
    pool: Pool, commands: Commands, tmp_path: Path, permission: Permission
) -> None:
    await started(pool, commands, tmp_path)
    assert await claimable(pool, permission) == []
    await opening.follow_controls(pool)
    await opening.follow_controls(pool)
    assert await rounds(pool) == [(FIRST, "running")]
    first = await claimable(pool, permission)
    assert {(row.phone, row.params["name"]) for row in first} == {(phone, "Ana") for phone in STAFF}
    await opening.follow_controls(pool)
    assert await claimable(pool, permission) == [], "they are claimed, and have not left"
    assert await mark(pool, permission, first) == {"ok"}
    await accepted(pool, first)
    await opening.follow_controls(pool)
    assert {row.phone for row in await claimable(pool, permission)} == set(PEOPLE)
    assert (await audit.run(pool)).holds


async def test_an_audience_waits_a_minute_at_most(
    pool: Pool, commands: Commands, tmp_path: Path, permission: Permission
) -> None:
    await started(pool, commands, tmp_path)
    await opening.follow_controls(pool)
    await claimable(pool, permission)
    await pass_time(pool, opening.CONTROL_MOST_S + 1)
    await opening.follow_controls(pool)
    assert {row.phone for row in await claimable(pool, permission)} == set(PEOPLE)


async def test_rounds_follow_each_other_while_there_is_an_audience_to_be_served(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await started(pool, commands, tmp_path)
    await opening.follow_controls(pool)
    await pass_time(pool, 500)
    await opening.follow_controls(pool)
    assert len(await rounds(pool)) == 1
    await pass_time(pool, 101)
    await opening.follow_controls(pool)
    # What has not left of the one before would only come twice.
    assert await rounds(pool) == [(FIRST, "cancelled"), ("reminder:control-2", "running")]
    await campaigns.sweep_cancelled(pool)
    await pass_time(pool, 601)
    await pool.execute("UPDATE lane SET hold = 'why' FROM campaign c WHERE c.campaign_id = lane.campaign_id "
                       "AND c.control_of IS NULL")  # fmt: skip
    await opening.follow_controls(pool)
    assert len(await rounds(pool)) == 2, "nothing of the audience may leave"
    assert (await audit.run(pool)).holds


async def test_once_means_once(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    await started(pool, commands, tmp_path, every_s=None)
    await opening.follow_controls(pool)
    await pass_time(pool, 86_400)
    await opening.follow_controls(pool)
    assert len(await rounds(pool)) == 1


async def test_nobody_of_the_house_is_written_to_while_the_audience_sleeps(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    now = clock.now()
    ends = (now + timedelta(hours=2)).time().replace(second=0, microsecond=0)
    begins = (now - timedelta(hours=2)).time().replace(second=0, microsecond=0)
    await started(pool, commands, tmp_path, quiet=Quiet(begins, ends))
    await opening.follow_clocks(pool)
    await opening.follow_controls(pool)
    assert await rounds(pool) == []
    await pool.execute("UPDATE campaign SET quiet_from = $1, quiet_to = $2", ends, begins)
    await opening.follow_clocks(pool)
    await opening.follow_controls(pool)
    assert await rounds(pool) == [(FIRST, "running")]


async def test_a_round_stops_and_goes_with_its_campaign(
    pool: Pool, commands: Commands, tmp_path: Path, permission: Permission
) -> None:
    await started(pool, commands, tmp_path)
    await opening.follow_controls(pool)
    rows = await claimable(pool, permission)
    await commands.pause_campaign("reminder")
    assert await mark(pool, permission, rows) == {"held"}, "also what is claimed already"
    assert await claimable(pool, permission) == []
    await commands.resume_campaign("reminder")
    again = await claimable(pool, permission)
    assert await mark(pool, permission, again) == {"ok"}


async def test_a_round_ends_with_its_campaign(pool: Pool, commands: Commands, tmp_path: Path) -> None:
    await started(pool, commands, tmp_path)
    await opening.follow_controls(pool)
    await commands.cancel_campaign("reminder")
    await opening.follow_controls(pool)
    await campaigns.sweep_cancelled(pool)
    await books.complete(pool)
    assert await rounds(pool) == [(FIRST, "cancelled")]
    standing = await controls.standing(pool, 1)
    assert standing is not None
    assert [(p.sent, p.not_sent, p.last_state) for p in standing.phones] == [(0, 1, "cancelled")] * 2
    assert (await audit.run(pool)).holds


async def test_control_phones_are_told_apart_from_the_audience(
    pool: Pool, commands: Commands, tmp_path: Path, permission: Permission
) -> None:
    await started(pool, commands, tmp_path)
    await opening.follow_controls(pool)
    rows = await claimable(pool, permission)
    await mark(pool, permission, rows)
    await accepted(pool, rows[:1], "d")
    await accepted(pool, rows[1:])
    await pass_time(pool, 400)
    assert [r.campaign.name for r in await commands.list_campaigns()] == ["reminder"]
    shown = report_json(await commands.show_campaign("reminder"))
    assert shown["planned"] == len(PEOPLE)
    told = shown["controls"]
    assert isinstance(told, dict)
    assert (told["rounds"], told["every_s"]) == (1, 600.0)
    figures = {p["last_state"]: (p["sent"], p["delivered"], p["waiting_s"]) for p in told["phones"]}
    waited = figures["sent"][2]
    assert figures == {"delivered": (1, 1, None), "sent": (1, 0, waited)}
    assert 400 <= waited < 500
    assert not any(phone in str(shown) for phone in STAFF)
    closing = await commands.report_campaign("reminder")
    assert closing.controls is not None
    assert not closing.faults
    # What an engine watches, for its alert.
    assert [len(sends) for sends in (await controls.sends(pool)).values()] == [2]


async def test_what_control_phones_would_not_get_is_refused_when_the_campaign_is_created(
    pool: Pool, commands: Commands
) -> None:
    draft = Draft("reminder", (NUMBER,), "reminder_v2", "pt_BR", ("name",), control=Control(STAFF))
    with pytest.raises(Refused, match="give --control-values name="):
        await commands.create_campaign(draft)
    assert await pool.fetchval("SELECT count(*) FROM campaign") == 0
