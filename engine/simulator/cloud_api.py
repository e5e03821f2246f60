"""What a request to the messages endpoint gets: the verdict, with time and chance passed in.

The order is Meta's: the token, the number, the body, the number's throughput; only what would then be
accepted can meet a fault of the scenario (except the one that never reads the body).
"""

from __future__ import annotations

from enum import Enum
from random import Random
from typing import NamedTuple

from engine.simulator import wire
from engine.simulator.codes import wording
from engine.simulator.faults import Faults
from engine.simulator.latency import draw_ms
from engine.simulator.ledger import Ledger
from engine.simulator.limits import SlidingWindow
from engine.simulator.message import Complaint, Message, read_message
from engine.simulator.scenario import Access, Failure, Rule, Scenario
from engine.simulator.statuses import Planned, plan
from engine.simulator.webhooks import Webhooks

PAUSED = Failure(code=132015)
# What the ledger calls each fault.
OUTCOMES = {
    "error": "refused",
    "html_502": "html_502",
    "close_before_reading": "closed_unread",
    "close_after_reading": "closed",
    "reset_after_reading": "reset",
    "never_answer": "unanswered",
    "slow": "accepted",
    "no_id": "no_id",
    "error_in_200": "error_in_200",
    "half_reply": "half_reply",
}


class Ending(Enum):
    """What happens to the connection once the latency has passed."""

    ANSWER = "answer"
    CLOSE = "close"
    RESET = "reset"
    SILENCE = "silence"
    HALF = "half an answer, then close"


ENDINGS = {
    "close_before_reading": Ending.CLOSE,
    "close_after_reading": Ending.CLOSE,
    "reset_after_reading": Ending.RESET,
    "never_answer": Ending.SILENCE,
    "half_reply": Ending.HALF,
}


class Verdict(NamedTuple):
    """The answer to one request, `delay_ms` after its arrival."""

    status: int
    body: bytes
    delay_ms: float = 0.0
    ending: Ending = Ending.ANSWER
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json; charset=UTF-8"


class CloudApi:
    """The endpoint under one scenario at a time; `replace` changes it without forgetting what was sent."""

    def __init__(
        self, scenario: Scenario, access: Access, ledger: Ledger, webhooks: Webhooks, now_us: int
    ) -> None:
        self._ledger, self._webhooks = ledger, webhooks
        self._windows: dict[str, SlidingWindow] = {}
        self.replace(scenario, access, now_us)

    def replace(self, scenario: Scenario, access: Access, now_us: int) -> None:
        """Put a scenario in force: its clock starts, its chance is seeded; the sliding windows go on."""
        self._scenario, self._access = scenario, access
        self._chance = Random(scenario.seed)
        self._faults = Faults(scenario.rules, self._chance, now_us)
        self._templates_taken = 0
        self._paused: set[tuple[str, str]] = set()

    def before_reading(self, number_id: str, authorization: str | None, at_us: int) -> Verdict | None:
        """The verdict on a request of which only the headers arrived, or None to read on."""
        if not self._authorized(authorization) or self._scenario.number(number_id) is None:
            return None
        rule = self._faults.at_headers(number_id, at_us)
        if rule is None:
            return None
        self._ledger.record(at_us, number_id, OUTCOMES[rule.do])
        return Verdict(0, b"", rule.extra_ms, Ending.CLOSE)

    def send(self, number_id: str, authorization: str | None, body: bytes, at_us: int) -> Verdict:
        """The verdict on a whole request that arrived at `at_us`; the ledger has it when this returns."""
        number = self._scenario.number(number_id)
        delay_ms = draw_ms((number and number.latency) or self._scenario.latency, self._chance)
        if not self._authorized(authorization):
            return self._unauthorized(number_id, authorization, at_us, delay_ms)
        if number is None:
            return self._unknown_number(number_id, at_us, delay_ms)
        message = read_message(body, rewrite=self._scenario.rewrite_wa_id)
        if isinstance(message, Complaint):
            code, title, details = message
            self._ledger.record(at_us, number_id, "refused", code=code)
            return Verdict(
                wording(code).http_status, wire.error(code, self._trace(), title, details), delay_ms
            )
        window = self._windows.setdefault(number_id, SlidingWindow())
        if not window.room(at_us, number.limit, number.window_ms * 1000):
            self._record(at_us, number_id, message, "refused", code=130429)
            return Verdict(self._scenario.throughput_status, wire.error(130429, self._trace()), delay_ms)
        rule = self._faults.at_message(number_id, message.wa_id, at_us)
        if rule is None or rule.takes:
            window.take(at_us)
        if rule is None:
            return self._accept(number_id, message, at_us, delay_ms, "accepted")
        return self._meet(rule, number_id, message, at_us, delay_ms + rule.extra_ms)

    def inbound(self, number_id: str, from_: str, text: str, at_us: int, order: int) -> str | None:
        """Post a text written to the number; it counts against its throughput, as at Meta.

        Returns its wamid, or None when the number or the writer is none. `order` is unique in the run.
        """
        wa = wire.wa_id(from_, rewrite=self._scenario.rewrite_wa_id)
        if wa is None or self._scenario.number(number_id) is None:
            return None
        self._windows.setdefault(number_id, SlidingWindow()).take(at_us)
        message_id = self._ledger.wamid_for(order, wa, inbound=True)
        sender, at_s = self._webhooks.sender(number_id), self._ledger.unix_us(at_us) // 1_000_000
        self._webhooks.post(wire.inbound_body(sender, wa, text, message_id, at_s), "inbound")
        return message_id

    def _meet(self, rule: Rule, number_id: str, message: Message, at_us: int, delay_ms: float) -> Verdict:
        outcome = OUTCOMES[rule.do]
        success = b""
        if rule.takes:
            taken = self._accept(number_id, message, at_us, delay_ms, outcome, code=rule.code or 0)
            success = taken.body
        else:
            self._record(at_us, number_id, message, outcome, code=rule.code or 0)
            if rule.do == "half_reply":
                success = wire.success(message.to, message.wa_id, self._ledger.wamid(len(self._ledger)), None)
        status, body, content_type = self._reply(rule, message, success)
        ending = ENDINGS.get(rule.do, Ending.ANSWER)
        return Verdict(status, body, delay_ms, ending, tuple(rule.headers.items()), content_type)

    def _reply(self, rule: Rule, message: Message, success: bytes) -> tuple[int, bytes, str]:
        json = "application/json; charset=UTF-8"
        if rule.do in ("error", "error_in_200"):
            code = rule.code or 0
            status = wording(code).http_status if rule.do == "error" else 200
            body = wire.error(code, self._trace(), rule.title, rule.details)
            return rule.http_status or status, body, json
        if rule.do == "html_502":
            return rule.http_status or 502, wire.HTML_502, "text/html; charset=utf-8"
        if rule.do == "no_id":
            return rule.http_status or 200, wire.success_without_id(message.to, message.wa_id), json
        return rule.http_status or 200, success, json

    def _accept(
        self, number_id: str, message: Message, at_us: int, delay_ms: float, outcome: str, code: int = 0
    ) -> Verdict:
        n = self._record(at_us, number_id, message, outcome, code=code, accepted=True)
        message_status = None
        planned = plan(self._scenario.statuses, message.wa_id, self._scenario.seed, self._chance)
        if message.template is not None:
            message_status = "accepted"
            self._templates_taken += 1
            if self._scenario.hold is not None and self._templates_taken > self._scenario.hold.after:
                message_status = "held_for_quality_assessment"
                planned = self._held(planned, number_id, message.template, at_us)
        self._webhooks.plan(n, at_us, planned)
        return Verdict(
            200, wire.success(message.to, message.wa_id, self._ledger.wamid(n), message_status), delay_ms
        )

    def _held(
        self, planned: list[Planned], number_id: str, template: tuple[str, str], at_us: int
    ) -> list[Planned]:
        hold = self._scenario.hold
        assert hold is not None
        wait_us = int(hold.for_s * 1e6)
        if hold.then == "release":
            return [status._replace(delay_us=status.delay_us + wait_us) for status in planned]
        if template not in self._paused:
            self._paused.add(template)
            account, at_s = self._webhooks.sender(number_id).account, self._ledger.unix_us(at_us) // 1_000_000
            self._webhooks.post(wire.template_paused_body(account, *template, at_s), "template")
        return [Planned(wait_us, "failed", PAUSED)]

    def _record(
        self,
        at_us: int,
        number_id: str,
        message: Message,
        outcome: str,
        *,
        code: int = 0,
        accepted: bool = False,
    ) -> int:
        return self._ledger.record(
            at_us,
            number_id,
            outcome,
            code=code,
            accepted=accepted,
            to=message.to,
            wa_id=message.wa_id,
            token=message.token,
        )

    def _authorized(self, authorization: str | None) -> bool:
        scheme, _, token = (authorization or "").partition(" ")
        return scheme.lower() == "bearer" and token.strip() in self._access.tokens

    def _unauthorized(
        self, number_id: str, authorization: str | None, at_us: int, delay_ms: float
    ) -> Verdict:
        self._ledger.record(at_us, number_id, "refused", code=190)
        text = (
            "Invalid OAuth access token - Cannot parse access token"
            if authorization
            else "An access token is required to request this resource."
        )
        return Verdict(401, wire.graph_error(text, 190, self._trace()), delay_ms)

    def _unknown_number(self, number_id: str, at_us: int, delay_ms: float) -> Verdict:
        self._ledger.record(at_us, number_id, "refused", code=100)
        text = (
            f"Unsupported post request. Object with ID '{number_id}' does not exist, cannot be loaded due to "
            "missing permissions, or does not support this operation"
        )
        return Verdict(400, wire.graph_error(text, 100, self._trace(), 33), delay_ms)

    def _trace(self) -> bytes:
        return self._chance.randbytes(17)
