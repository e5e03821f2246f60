"""Operator acts: what is allowed, what is said, what is kept."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from engine import clock
from engine.commands import Commands, Done, Refused
from engine.commands.campaign import report_json
from engine.domain import act
from engine.domain.errors import describe
from engine.domain.recipient import State
from engine.pause_file import Pause, PauseFiles
from engine.postgres import campaigns, journal
from engine.postgres.campaigns import Draft
from engine.postgres.pool import Pool, open_pool
from tests.support import builders

A, B = "106540352242922", "106540352242923"
DRAFT = Draft("reminder", (A,), "reminder_v2", "pt_BR", ("name",))


@pytest.fixture
def commands(pool: Pool, tmp_path: Path) -> Commands:
    return Commands(pool, author="ana@10.0.0.9", origin="cli", pauses=PauseFiles(tmp_path), unknown_floor=92)


async def add(commands: Commands, number: str = A, **given: float) -> Done:
    return await commands.add_number(
        number, display="+55 11 98888-0001", account="WABA1", token="env:TOKEN", **{"limit": 80.0, **given}
    )


async def test_the_rate_defaults_to_four_fifths_of_the_limit(commands: Commands) -> None:
    await add(commands)
    shown = (await commands.show_number(A)).as_json()
    assert list(shown) == [
        "id", "display", "account", "owner", "epoch", "state", "reason", "rate", "limit", "ceiling",
        "accepted_last_second", "tries_last_second", "bound_by", "owner_silent_s",
    ]  # fmt: skip
    assert shown["rate"] == 64
    assert shown["state"] == "active"
    assert shown["owner"] is None
    assert shown["display"] == "+5511988880001"


async def test_an_act_is_journalled_with_its_author_and_tells_the_engines(
    pool: Pool, commands: Commands
) -> None:
    await add(commands)
    before = await pool.fetchval("SELECT version FROM control")
    await commands.set_rate(A, 40)
    assert await pool.fetchval("SELECT version FROM control") == before + 1
    (kept, *_) = await journal.recent(pool)
    assert (kept.author, kept.origin, kept.act, kept.target) == ("ana@10.0.0.9", "cli", "rate", A)
    assert (kept.before, kept.after, kept.result) == ("64", "40", "done")


async def test_a_refusal_changes_nothing_but_is_journalled(pool: Pool, commands: Commands) -> None:
    await add(commands)
    with pytest.raises(Refused, match="above the provider's limit"):
        await commands.set_rate(A, 81)
    assert (await commands.show_number(A)).rate == 64
    assert (await journal.recent(pool))[0].result.startswith("refused: A rate of 81/s")


@pytest.mark.parametrize("rate", [-1, float("nan"), float("inf"), 80.1])
async def test_a_rate_that_cannot_be_is_refused(commands: Commands, rate: float) -> None:
    await add(commands)
    with pytest.raises(Refused):
        await commands.set_rate(A, rate)


async def test_a_rate_of_zero_is_a_pause(commands: Commands) -> None:
    await add(commands)
    await commands.set_rate(A, 0)
    shown = (await commands.show_number(A)).as_json()
    assert (shown["state"], shown["reason"], shown["bound_by"]) == ("paused", "rate 0", "hold")


async def test_a_lowered_ceiling_never_stands_above_the_rate(pool: Pool, commands: Commands) -> None:
    await add(commands)
    await pool.execute("UPDATE number SET ceiling = 30")
    assert (await commands.show_number(A)).state == "slowed"
    await commands.set_rate(A, 20)
    assert (await commands.show_number(A)).as_json()["ceiling"] == 20


async def test_a_limit_below_the_rate_takes_the_rate_down_in_proportion(commands: Commands) -> None:
    await add(commands, limit=1000)
    done = await commands.set_limit(A, 80)
    assert "went down with the limit, from 800/s to 64/s" in done.warnings[0]
    assert (await commands.show_number(A)).rate == 64


async def test_a_rising_limit_leaves_the_rate_alone_and_says_so(commands: Commands) -> None:
    await add(commands)
    done = await commands.set_limit(A, 1000)
    assert "The rate stays 64/s" in done.warnings[0]
    await commands.set_limit(A, 1000, 900)
    assert (await commands.show_number(A)).rate == 900


async def test_a_bare_token_is_refused_without_being_repeated(commands: Commands) -> None:
    with pytest.raises(Refused) as refused:
        await commands.add_number(A, display="+5511988880001", account="W", token="EAAGsecret", limit=80)
    assert "EAAGsecret" not in str(refused.value)


async def test_pausing_and_resuming_twice_is_no_error(commands: Commands, tmp_path: Path) -> None:
    await add(commands)
    kept = tmp_path / "paused" / A
    assert not (await commands.pause_number(A, "quality")).already
    assert kept.exists()
    shown = (await commands.show_number(A)).as_json()
    assert (shown["state"], shown["reason"]) == ("paused", "quality")
    assert (await commands.pause_number(A)).already
    assert not (await commands.resume_number(A)).already
    assert not kept.exists()
    assert (await commands.resume_number(A)).already


async def test_a_pause_of_a_number_that_does_not_exist_leaves_no_file(
    commands: Commands, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="no number"):
        await commands.pause_number(B)
    assert PauseFiles(tmp_path).read() == {}


async def test_a_pause_without_a_database_is_kept_beside_it_and_replayed(
    database_url: str, pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await add(commands)
    files = PauseFiles(tmp_path)
    async with open_pool(database_url, size=1) as lost:
        away = Commands(lost, author="ana", origin="cli", pauses=files)
        lost.terminate()
        done = await away.pause_number(A, "no database")
    assert "The database was lost" in done.warnings[0]
    assert (await commands.show_number(A)).state == "active"
    assert await commands.replay_pauses() == [A]
    shown = await commands.show_number(A)
    assert (shown.state, shown.paused_by, shown.reason) == ("paused", "ana", "no database")
    assert await commands.replay_pauses() == []


async def test_a_pause_works_when_nothing_can_be_kept_on_this_machine(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await add(commands)
    (tmp_path / "paused").write_text("a file where the directory should be")
    done = await commands.pause_number(A)
    assert "in the database alone" in done.warnings[0]
    assert (await commands.show_number(A)).state == "paused"


async def test_a_kept_pause_that_was_resumed_elsewhere_is_not_replayed(
    pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await add(commands)
    await commands.pause_number(A)
    await Commands(pool, author="bob", origin="cli").resume_number(A)
    assert await commands.replay_pauses() == []
    assert (await commands.show_number(A)).state == "active"
    assert PauseFiles(tmp_path).read() == {}


def test_a_pause_file_tells_whether_the_row_holds_it_and_pauses_even_unread(tmp_path: Path) -> None:
    files = PauseFiles(tmp_path)
    assert files.write(Pause(A, "ana", "why", "2026-01-01T00:00:00+00:00"))
    files.record(A)
    assert files.read()[A].recorded
    assert not files.write(Pause(A, "bob", "again", "2026-01-02T00:00:00+00:00"))
    assert (files.read()[A].by, files.read()[A].recorded) == ("bob", False)
    (tmp_path / "paused" / A).write_bytes(b"\xff{")
    assert not files.read()[A].recorded
    assert files.remove(A)
    assert not files.remove(A)
    files.record(A)
    assert files.read() == {}


async def test_a_pause_after_a_resume_elsewhere_is_not_taken_for_the_old_one(
    database_url: str, pool: Pool, commands: Commands, tmp_path: Path
) -> None:
    await add(commands)
    await commands.pause_number(A)
    await Commands(pool, author="bob", origin="cli").resume_number(A)
    async with open_pool(database_url, size=1) as lost:
        lost.terminate()
        await Commands(lost, author="ana", origin="cli", pauses=PauseFiles(tmp_path)).pause_number(A)
    assert await commands.replay_pauses() == [A]


async def test_resume_all_lifts_only_what_pause_all_stopped(commands: Commands) -> None:
    await add(commands)
    await add(commands, B)
    await commands.pause_number(B, "a person's")
    assert (await commands.pause_all("storm")).after == "1 stopped"
    assert (await commands.pause_all("storm")).already
    assert (await commands.resume_all()).after == "1 resumed"
    assert (await commands.resume_all()).already
    assert [row.state for row in await commands.list_numbers()] == ["active", "paused"]


async def test_a_pause_by_name_after_pause_all_survives_resume_all(commands: Commands) -> None:
    await add(commands)
    await commands.pause_all("storm")
    assert not (await commands.pause_number(A)).already
    await commands.resume_all()
    assert (await commands.show_number(A)).state == "paused"


async def test_a_number_in_use_cannot_be_removed(commands: Commands) -> None:
    await add(commands)
    await commands.create_campaign(DRAFT)
    with pytest.raises(Refused, match="used by reminder"):
        await commands.remove_number(A)


async def test_a_number_of_ended_campaigns_can_be_removed(pool: Pool, commands: Commands) -> None:
    await add(commands)
    await commands.create_campaign(DRAFT)
    await pool.execute("UPDATE campaign SET state = 'finished', finished_at = now()")
    await commands.remove_number(A)
    with pytest.raises(Refused, match="no number"):
        await commands.show_number(A)


async def test_creating_says_the_policy_and_raises_a_short_window(pool: Pool, commands: Commands) -> None:
    await add(commands)
    done = await commands.create_campaign(replace(DRAFT, unknown_policy="resend", unknown_after=10))
    assert "sent once more" in done.text
    assert "raised to 92s" in done.warnings[0]
    assert await pool.fetchval("SELECT unknown_after FROM campaign") == timedelta(seconds=92)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"numbers": (B,)}, f"no number {B}"),
        ({"numbers": ()}, "give --number"),
        ({"name": "a b"}, "not usable"),
        ({"template": "Reminder!"}, "not usable"),
        ({"language": "portuguese"}, "pt_BR"),
        ({"body": ("name", "")}, "one is empty"),
        ({"deadline": clock.now() - timedelta(hours=1)}, "has passed"),
        ({"unknown_policy": "guess"}, "none of"),
        ({"category": "spam"}, "none of"),
        ({"max_attempts": 0}, "1 to 100"),
        ({"max_failed": 1.5}, "0% to 100%"),
    ],
)
async def test_a_campaign_that_could_not_work_is_refused(
    pool: Pool, commands: Commands, change: dict[str, object], sentence: str
) -> None:
    await add(commands)
    with pytest.raises(Refused, match=sentence):
        await commands.create_campaign(replace(DRAFT, **change))  # type: ignore[arg-type]
    assert await pool.fetchval("SELECT count(*) FROM campaign") == 0


async def test_a_second_campaign_of_a_name_is_refused(commands: Commands) -> None:
    await add(commands)
    await commands.create_campaign(DRAFT)
    with pytest.raises(Refused, match="already"):
        await commands.create_campaign(DRAFT)


async def test_an_empty_campaign_does_not_start(commands: Commands) -> None:
    await add(commands)
    await commands.create_campaign(DRAFT)
    with pytest.raises(Refused, match="no recipients"):
        await commands.start_campaign("reminder")


async def filled(pool: Pool, commands: Commands, state: str = "draft") -> builders.MadeCampaign:
    await add(commands)
    made = await builders.campaign(pool, numbers=[A], state=state)
    await builders.recipients(pool, made, 10)
    return made


async def test_two_starts_at_once_are_one(pool: Pool, commands: Commands) -> None:
    await filled(pool, commands)
    done = await asyncio.gather(*(commands.start_campaign("reminder") for _ in range(4)))
    assert sorted(d.already for d in done) == [False, True, True, True]
    assert (await commands.show_campaign("reminder")).campaign.started_at is not None


async def test_a_campaign_goes_through_its_states(pool: Pool, commands: Commands) -> None:
    await filled(pool, commands)
    await commands.start_campaign("reminder")
    started = (await commands.show_campaign("reminder")).campaign.started_at
    await commands.pause_campaign("reminder", "look first")
    shown = (await commands.show_campaign("reminder")).campaign
    assert (shown.state, shown.reason) == ("paused", "look first")
    assert (await commands.pause_campaign("reminder")).already
    with pytest.raises(Refused, match="resume"):
        await commands.start_campaign("reminder")
    await commands.resume_campaign("reminder")
    shown = (await commands.show_campaign("reminder")).campaign
    assert (shown.state, shown.reason, shown.started_at) == ("running", None, started)


@pytest.mark.parametrize("verb", ["pause_campaign", "resume_campaign"])
async def test_a_draft_is_neither_paused_nor_resumed(pool: Pool, commands: Commands, verb: str) -> None:
    await filled(pool, commands)
    doing: Callable[[str], Awaitable[Done]] = getattr(commands, verb)
    with pytest.raises(Refused, match="start it"):
        await doing("reminder")


async def test_starting_what_has_finished_is_already_done(pool: Pool, commands: Commands) -> None:
    await filled(pool, commands, "finished")
    assert (await commands.start_campaign("reminder")).already
    with pytest.raises(Refused, match="finished"):
        await commands.cancel_campaign("reminder")


async def test_cancelling_moves_what_has_not_left_and_leaves_the_rest_open(
    pool: Pool, commands: Commands
) -> None:
    made = await filled(pool, commands, "running")
    number_id = await pool.fetchval("SELECT number_id FROM number")
    for state in (State.CLAIMED, State.SENDING, State.UNKNOWN, State.ASSESSING, State.READ):
        await builders.recipients(pool, made, 3, state=state, number_id=number_id)
    done = await commands.cancel_campaign("reminder", "wrong text")
    assert "13 rows cancelled, 9 still under way" in done.text
    counts = (await commands.show_campaign("reminder")).counts
    assert {s.word: n for s, n in counts.items() if n} == {
        "sending": 3, "unknown": 3, "assessing": 3, "read": 3, "cancelled": 13,
    }  # fmt: skip
    recount = {
        r["state"].decode(): r["n"]
        for r in await pool.fetch("SELECT state, count(*) n FROM recipient GROUP BY 1")
    }
    assert recount == {s.value: n for s, n in counts.items() if n}
    assert (await commands.cancel_campaign("reminder")).already


async def test_cancelling_works_in_pages(pool: Pool, commands: Commands) -> None:
    made = await filled(pool, commands, "cancelled")
    other = await builders.campaign(pool, "other", numbers=[A], state="running")
    await builders.recipients(pool, other, 4)
    assert await campaigns.cancel_rows(pool, made.campaign_id, page=3) == 10
    assert (await commands.show_campaign("other")).counts[State.PENDING] == 4


async def test_rows_that_come_back_to_a_cancelled_campaign_are_swept(pool: Pool, commands: Commands) -> None:
    await filled(pool, commands, "cancelled")
    assert await campaigns.sweep_cancelled(pool) == 10
    assert await campaigns.sweep_cancelled(pool) == 0


async def test_a_campaign_shows_the_public_shape(pool: Pool, commands: Commands) -> None:
    made = await filled(pool, commands, "running")
    await builders.recipients(pool, made, 2, state=State.FAILED, code=131026)
    await pool.execute(
        "INSERT INTO tally_delta (lane_id, what, code, n) VALUES ($1, 'R', 130429, 7)", made.lane_id
    )
    shown = report_json(await commands.show_campaign("reminder"))
    assert list(shown) == [
        "name", "state", "reason", "planned", "counts", "accepted", "tries", "attempts", "possible_duplicates",
        "assumed_sent", "errors", "refusals", "numbers", "started_at", "finished_at", "eta", "start_at",
        "deadline", "late", "canary", "waits", "aside", "controls",
    ]  # fmt: skip
    assert (shown["planned"], [*shown["counts"]]) == (12, [s.word for s in State])  # type: ignore[misc]
    error = shown["errors"][0]  # type: ignore[index]
    assert (error["code"], error["count"], error["advice"]) == (131026, 2, describe(131026).advice)
    assert "…" in error["example"]["phone"]
    assert shown["refusals"][0]["count"] == 7  # type: ignore[index]
    assert shown["numbers"] == [A]
    assert shown["eta"] is not None
    await commands.pause_number(A)
    assert report_json(await commands.show_campaign("reminder"))["eta"] is None


async def test_the_acts_of_a_screen_come_through_the_same_commands(pool: Pool, commands: Commands) -> None:
    await filled(pool, commands)
    for wanted in (
        act.StartCampaign("reminder"),
        act.SetRate(A, 12),
        act.PauseNumber(A, "r"),
        act.ResumeNumber(A),
        act.PauseAll("x"),
        act.ResumeAll(),
        act.PauseCampaign("reminder"),
        act.ResumeCampaign("reminder"),
        act.CancelCampaign("reminder"),
    ):
        assert not (await commands.carry_out(wanted)).already
    with pytest.raises(Refused, match="StopEngine"):
        await commands.carry_out(act.StopEngine("x"))
