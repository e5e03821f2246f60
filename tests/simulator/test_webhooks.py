"""Webhooks as a receiver on a real socket gets them."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from typing import Any

from tests.simulator.receiver import Received, receiver
from tests.simulator.wire_client import NUMBER, answer, connect, raw, request, send, template
from tests.support.simulator import APP_SECRET, Simulator, simulator

QUICK: dict[str, Any] = {
    "sent_s": [0, 0.02],
    "delivered_s": [0, 0.02],
    "read_s": [0, 0.02],
    "failed_s": [0, 0.02],
    "read_share": 1,
    "read_without_delivered_share": 0,
    "max_wait_ms": 50,
    "retry_first_ms": 20,
}


def scenario(webhook: str, **more: Any) -> dict[str, Any]:
    statuses = QUICK | more.pop("statuses", {})
    return {
        "webhook": webhook,
        "latency": {"fixed_ms": 0},
        "any_number": {"limit": 1000},
        "statuses": statuses,
    } | more


def genuine(one: Received, secret: str = APP_SECRET) -> bool:
    return one.signature == "sha256=" + hmac.new(secret.encode(), one.body, hashlib.sha256).hexdigest()


async def send_many(sim: Simulator, count: int, *, number: str = NUMBER) -> None:
    reader, writer = await connect(sim.url)
    for n in range(count):
        writer.write(request(template(f"+1650555{n:04}", f"tg1:c:{n}:1"), number=number))
        assert (await answer(reader))[0] == 200
    writer.close()


async def test_an_accepted_message_is_sent_delivered_and_read_under_its_token() -> None:
    async with receiver() as hook, simulator(scenario(hook.url)) as sim:
        _, _, body = await send(sim.url)
        await hook.until(lambda it: len(it.statuses()) >= 3)
        wamid = json.loads(body)["messages"][0]["id"]
        told = hook.statuses()
        await sim.until(lambda totals: totals["statuses"] == {"sent": 1, "delivered": 1, "read": 1})
    assert [status["status"] for status in told] == ["sent", "delivered", "read"]
    assert {status["id"] for status in told} == {wamid}
    assert {status["biz_opaque_callback_data"] for status in told} == {"tg1:c:1:1"}
    assert {status["recipient_id"] for status in told} == {"16505551234"}


async def test_every_body_is_signed_over_its_exact_bytes_with_the_secret_of_the_environment() -> None:
    environment = {"TIDEGATE_APP_SECRET": "s3cret"}
    async with receiver() as hook, simulator(scenario(hook.url), environment=environment) as sim:
        await send_many(sim, 5)
        await hook.until(lambda it: len(it.statuses()) >= 15)
    assert all(genuine(one, "s3cret") and one.body.isascii() for one in hook.received)
    assert not any(genuine(one, "another") for one in hook.received)


async def test_statuses_come_in_bodies_of_the_size_asked_for_across_changes_and_numbers() -> None:
    statuses = {"batch": 60, "max_wait_ms": 60_000, "read_share": 0}
    async with receiver() as hook, simulator(scenario(hook.url, statuses=statuses)) as sim:
        await send_many(sim, 45, number="1")
        await send_many(sim, 45, number="2")
        await hook.until(lambda it: len(it.statuses()) >= 180)
    assert [len(one.statuses()) for one in hook.received] == [60, 60, 60]
    assert any(len(json.loads(one.body)["entry"]) > 1 or len(one.changes()) > 1 for one in hook.received)
    numbers = {c["value"]["metadata"]["phone_number_id"] for one in hook.received for c in one.changes()}
    assert numbers == {"1", "2"}


async def test_a_body_that_is_refused_comes_again_byte_for_byte_until_it_is_taken() -> None:
    statuses = {"batch": 1000, "concurrency": 1}
    async with (
        receiver(lambda n: 500 if n < 3 else 200) as hook,
        simulator(scenario(hook.url, statuses=statuses)) as sim,
    ):
        await send(sim.url)
        totals = await sim.until(lambda totals: sum(totals["statuses"].values()) == 3)
    refused = [one.body for one in hook.received if one.answered == 500]
    assert len(refused) == 3
    assert set(refused) <= {one.body for one in hook.received if one.answered == 200}
    assert totals["webhooks"]["refused"] == 3
    assert totals["webhooks"]["last_refusal"] == "HTTP 500"
    assert Counter(status["status"] for status in hook.statuses()) == {"sent": 1, "delivered": 1, "read": 1}


async def test_statuses_wait_for_a_receiver_that_is_not_there_yet() -> None:
    async with simulator(scenario("http://127.0.0.1:9/webhook")) as sim:
        await send(sim.url)
        await sim.until(lambda totals: totals["webhooks"]["refused"] >= 1)
        async with receiver() as hook:
            await sim.replace(scenario(hook.url))
            await hook.until(lambda it: len(it.statuses()) == 3)


async def test_a_failing_recipient_is_told_by_webhook_with_the_code() -> None:
    statuses = {"failures": [{"code": 131026, "to_ends_with": "1234"}]}
    async with receiver() as hook, simulator(scenario(hook.url, statuses=statuses)) as sim:
        assert (await send(sim.url))[0] == 200
        await hook.until(lambda it: len(it.statuses()) == 1)
    [status] = hook.statuses()
    assert (status["status"], status["errors"][0]["code"]) == ("failed", 131026)


async def test_a_message_whose_answer_was_lost_is_told_all_the_same() -> None:
    rules = [
        {"do": "never_answer", "match": {"to_ends_with": "0001"}},
        {"do": "close_after_reading", "accepted": False, "match": {"to_ends_with": "0002"}},
    ]
    async with receiver() as hook, simulator(scenario(hook.url, rules=rules)) as sim:
        _, silent = await connect(sim.url)
        silent.write(request(template("+16505550001", "tg1:c:1:1")))
        assert await raw(sim.url, request(template("+16505550002", "tg1:c:2:1"))) == b""
        await sim.until(lambda totals: sum(totals["statuses"].values()) == 3)
        assert (await sim.totals())["statuses_waiting"] == 0
        silent.close()
    assert {status["biz_opaque_callback_data"] for status in hook.statuses()} == {"tg1:c:1:1"}


async def test_a_person_who_writes_arrives_as_an_inbound_message() -> None:
    async with receiver() as hook, simulator(scenario(hook.url)) as sim:
        wamid = await sim.inbound(NUMBER, "+16505551234", "STOP")
        await hook.until(lambda it: len(it.received) == 1)
    [change] = hook.received[0].changes()
    [message] = change["value"]["messages"]
    assert (message["from"], message["text"], message["id"]) == ("16505551234", {"body": "STOP"}, wamid)
    assert change["value"]["metadata"]["phone_number_id"] == NUMBER
    assert genuine(hook.received[0])


async def test_any_value_can_be_posted_signed_and_escaped() -> None:
    value = {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [], "note": "é/@"}]}
    async with receiver() as hook, simulator(scenario(hook.url)) as sim:
        await sim.webhook(value)
        await hook.until(lambda it: len(it.received) == 1)
    assert json.loads(hook.received[0].body) == value
    assert rb"\u00e9\/\u0040" in hook.received[0].body
    assert genuine(hook.received[0])


async def test_a_template_paused_while_held_fails_its_messages_and_says_so() -> None:
    hold = {"after": 0, "for_s": 0.5, "then": "pause"}
    async with receiver() as hook, simulator(scenario(hook.url, hold=hold)) as sim:
        reader, writer = await connect(sim.url)
        writer.write(request(template("+16505550001")) + request(template("+16505550002")))
        assert [(await answer(reader))[0] for _ in range(2)] == [200, 200]
        writer.close()
        await hook.until(lambda it: len(it.statuses()) == 2)
    fields = [change["field"] for one in hook.received for change in one.changes()]
    assert fields.count("message_template_status_update") == 1
    assert [status["errors"][0]["code"] for status in hook.statuses()] == [132015, 132015]
