"""What stands beside statuses, applied: who wants nothing more, what is stopped and healed, and each thing once."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.config import ConfigError, load
from engine.delivery.applier import Applier
from engine.domain.inbound import StopWords
from engine.domain.recipient import State
from engine.postgres import breakers, provider, webhooks
from engine.postgres.pool import Pool
from tests.support.bodies import status, webhook
from tests.support.truth import NUMBER, Campaign, campaign

PHONE = "+16505551234"
NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
JUST_NOW = "UPDATE inbox_work SET received_at = clock_timestamp() + interval '1 minute'"
"""However long it takes until they are applied: only what came in the last seconds presses."""


@pytest.fixture
async def sale(pool: Pool) -> Campaign:
    return await campaign(pool, "sale")


def change(field: str, value: dict[str, Any], at: float | None = None) -> bytes:
    entry: dict[str, Any] = {"id": "WABA", "changes": [{"field": field, "value": value}]}
    return json.dumps({"entry": [entry | ({"time": at} if at is not None else {})]}).encode()


def inbound(*messages: dict[str, Any], number: str = NUMBER, **more: Any) -> bytes:
    return change("messages", {"metadata": {"phone_number_id": number}, "messages": [*messages], **more})


def says_stop(wamid: str = "wamid.IN", **more: Any) -> dict[str, Any]:
    return {"id": wamid, "from": PHONE[1:], "type": "text", "text": {"body": "STOP"}} | more


async def apply(pool: Pool, *bodies: bytes, words: StopWords | None = None) -> Applier:
    applier = Applier(pool, stop_words=words)
    await webhooks.store(pool, bodies)
    if bodies:
        await pool.execute(JUST_NOW)
    await applier.apply_batch()
    return applier


async def suppressed(pool: Pool) -> list[tuple[str, str, str, str | None]]:
    rows = await pool.fetch("SELECT phone, scope, source, detail FROM suppression ORDER BY phone")
    return [(row["phone"], row["scope"], row["source"], row["detail"]) for row in rows]


async def events(pool: Pool) -> list[tuple[str, str, str]]:
    rows = await pool.fetch("SELECT field, target, event FROM provider_event ORDER BY id")
    return [(row["field"], row["target"], row["event"]) for row in rows]


async def held(pool: Pool) -> list[str]:
    return [f"{one.scope.value} {one.key}" for one in await breakers.open_breakers(pool)]


async def test_a_stop_word_suppresses_all_of_its_writer(pool: Pool, sale: Campaign) -> None:
    applier = await apply(pool, inbound(says_stop()))
    assert await suppressed(pool) == [(PHONE, "all", "stop", "stop")]
    assert (applier.counts.inbound, applier.counts.opted_out) == (1, 1)


async def test_who_answers_our_message_is_known_by_it_even_without_a_number(
    pool: Pool, sale: Campaign
) -> None:
    row = await sale.row(State.SENT)
    await pool.execute(
        "INSERT INTO recipient_data (id, campaign_id, phone, line) VALUES ($1, 1, '+447700900123', 2)", row
    )
    await sale.record(row, 1, "accepted", wamid="wamid.OURS")
    unnamed = says_stop(context={"id": "wamid.OURS"}) | {"from": None}
    await apply(pool, inbound(unnamed))
    assert [phone for phone, *_ in await suppressed(pool)] == ["+447700900123"]
    await apply(pool, inbound(says_stop("wamid.2", context={"id": "wamid.OURS"})))
    assert [phone for phone, *_ in await suppressed(pool)] == [PHONE, "+447700900123"]


async def test_what_is_written_to_a_number_that_is_not_ours_stops_nobody(pool: Pool, sale: Campaign) -> None:
    applier = await apply(pool, inbound(says_stop(), number="1"))
    assert await suppressed(pool) == []
    assert applier.counts.inbound == 1


async def test_a_message_come_again_counts_once_and_stays_lifted(pool: Pool, sale: Campaign) -> None:
    await apply(pool, inbound(says_stop(), says_stop()))
    await pool.execute("DELETE FROM suppression")
    applier = await apply(pool, inbound(says_stop()))
    assert await suppressed(pool) == []
    assert applier.counts.inbound == 0


async def test_one_odd_message_costs_no_other(pool: Pool, sale: Campaign) -> None:
    row = await sale.row(State.SENT)
    odd: list[Any] = [7, None, {"id": []}, {"text": "STOP"}, {"from": {}, "text": {"body": 1}}]
    body = inbound(*odd, says_stop(), contacts=[{"wa_id": 1}], statuses=[status("read", sale.token(row)), 3])
    await apply(pool, body)
    assert await sale.state(row) is State.READ
    assert [phone for phone, *_ in await suppressed(pool)] == [PHONE]


async def test_words_of_ones_own_are_those_that_count(pool: Pool, sale: Campaign) -> None:
    await apply(pool, inbound(says_stop()), words=StopWords(["chega"]))
    assert await suppressed(pool) == []


def test_stop_words_are_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load().stop_words is None
    monkeypatch.setenv("TIDEGATE_STOP_WORDS", "Chega, basta,")
    assert load().stop_words == ("Chega", "basta")
    monkeypatch.setenv("TIDEGATE_STOP_WORDS", ",")
    with pytest.raises(ConfigError, match="at least one word"):
        load()


async def test_news_is_kept_once_however_often_it_comes(pool: Pool) -> None:
    paused = {"event": "PAUSED", "message_template_name": "hello", "message_template_language": "en-US"}
    body = change("message_template_status_update", paused, at=datetime.now(UTC).timestamp())
    first = await apply(pool, body, body)
    await breakers.lift(pool, (await breakers.open_breakers(pool))[0].breaker_id, "ana", None)
    again = await apply(pool, body)
    assert await events(pool) == [("message_template_status_update", "WABA/hello/en_US", "PAUSED")]
    assert await held(pool) == []
    assert (first.counts.events, first.counts.tripped, again.counts.events) == (1, 1, 0)


@pytest.mark.parametrize("order", [1, -1])
async def test_bad_and_good_news_count_by_their_own_time_in_any_order(pool: Pool, order: int) -> None:
    at = datetime.now(UTC).timestamp()
    named = {"message_template_name": "hello", "message_template_language": "en"}
    news = [
        change("message_template_status_update", named | {"event": "PAUSED"}, at - 60),
        change("message_template_status_update", named | {"event": "APPROVED"}, at - 30),
    ]
    for body in news[::order]:
        await apply(pool, body)
    assert await held(pool) == []
    await apply(pool, change("message_template_status_update", named | {"event": "DISABLED"}, at))
    assert await held(pool) == ["template WABA/hello/en"]
    await apply(pool, change("message_template_status_update", named | {"event": "REINSTATED"}, at - 10))
    assert await held(pool) == ["template WABA/hello/en"]


async def test_both_news_in_one_body_end_as_the_later_says(pool: Pool) -> None:
    at = datetime.now(UTC).timestamp()
    ban = {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE"}}
    back = {"event": "ACCOUNT_RECONNECTED"}
    applier = await apply(pool, change("account_update", back, at), change("account_update", ban, at - 9))
    assert await held(pool) == []
    assert (applier.counts.tripped, applier.counts.healed) == (1, 1)


async def test_an_error_of_a_number_stops_what_its_code_reaches(pool: Pool, sale: Campaign) -> None:
    metadata = {"metadata": {"phone_number_id": NUMBER}}
    for code in (130429, 131042, 131048, 190, 132015, 999999, "odd"):
        await apply(pool, change("messages", metadata | {"errors": [{"code": code, "title": "It broke"}]}))
    assert await held(pool) == ["account WABA", f"number {NUMBER}", "credential env:T"]
    assert [event for _, _, event in await events(pool)][:3] == ["130429", "131042", "131048"]
    await apply(
        pool, change("messages", {"metadata": {"phone_number_id": "1"}, "errors": [{"code": 131031}]})
    )
    assert len(await held(pool)) == 3


async def test_the_same_error_of_a_number_counts_once_an_hour(pool: Pool, sale: Campaign) -> None:
    body = change("messages", {"metadata": {"phone_number_id": NUMBER}, "errors": [{"code": 131042}]})
    await apply(pool, body)
    await breakers.lift(pool, (await breakers.open_breakers(pool))[0].breaker_id, "ana", None)
    await apply(pool, body, body)
    assert len(await events(pool)) <= 2  # the hour may have changed in between


async def test_what_was_seen_is_forgotten_after_eight_days(pool: Pool) -> None:
    assert await provider.first_time(pool, {"a", "b"}) == {"a", "b"}
    await pool.execute("UPDATE webhook_once SET at = at - interval '8 days 1 minute' WHERE key = 'a'")
    assert await provider.forget_old(pool) == 1
    assert await provider.first_time(pool, {"a", "b"}) == {"a"}


async def counted(pool: Pool) -> dict[str, int]:
    return {row["number"]: row["n"] for row in await pool.fetch("SELECT number, n FROM inbound_count")}


async def test_what_people_write_is_counted_for_the_number_they_write_to(pool: Pool, sale: Campaign) -> None:
    five = inbound(*(says_stop(f"wamid.{n}") for n in range(5)))
    await apply(pool, five, webhook())
    await apply(pool, five, inbound(says_stop("wamid.of.others"), number="1"))  # come again; not ours
    assert await counted(pool) == {NUMBER: 5}
    await apply(pool, inbound(says_stop("wamid.6")))
    assert await counted(pool) == {NUMBER: 6}


async def test_what_was_written_long_ago_presses_nobody_now(pool: Pool, sale: Campaign) -> None:
    await webhooks.store(pool, [inbound(says_stop())])
    await pool.execute("UPDATE inbox_work SET received_at = received_at - interval '3 seconds'")
    applier = await apply(pool)
    assert applier.counts.inbound == 1
    assert await counted(pool) == {}
