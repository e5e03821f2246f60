"""The contract's table, carried out: every code by an HTTP answer and by a `failed` webhook, in a real database.

What becomes of the row, what it spends, which breaker trips, and what else stops.
"""

import asyncio
import json
from dataclasses import dataclass

import pytest

from engine.clients.whatsapp import read_answer
from engine.control import stops
from engine.control.follower import Follower
from engine.delivery.applier import Applier
from engine.domain.errors import MEANINGS, STOPS, Scope, describe
from engine.domain.message import Token
from engine.domain.outcome import Refused, after
from engine.domain.recipient import State
from engine.judge import Judge
from engine.observe.figures import DatabaseFigures
from engine.postgres import breakers, results, webhooks
from engine.postgres.claims import Claimed, Permission
from engine.postgres.pool import Pool
from engine.sending.work import Work
from tests.support import builders
from tests.support.bodies import status, webhook
from tests.support.owned import NUMBER, THEN, assert_books, claim, fact, mark, owned, row

MORE = (200, 299, 139999)
CODES = [code for code in (*MEANINGS, *MORE) if code >= 0]

KEYS = {
    Scope.NUMBER: ("number", NUMBER),
    Scope.ACCOUNT: ("account", "WABA1"),
    Scope.CREDENTIAL: ("credential", "env:TOKEN"),
    Scope.TEMPLATE: ("template", "WABA1/reminder_v2/pt_BR"),
    Scope.COUNTRY: ("country", "WABA1/BR"),
}

HTTP: dict[Scope, tuple[str, int, str | None]] = {
    # scope: the row, attempts spent, the breaker's state
    Scope.NUMBER_THROUGHPUT: ("pending", 0, None),
    Scope.ACCOUNT_THROUGHPUT: ("pending", 0, "waiting"),
    Scope.MAINTENANCE: ("pending", 0, None),
    Scope.PAIR: ("pending", 1, None),
    Scope.TRANSIENT: ("pending", 1, None),
    Scope.NUMBER: ("pending", 0, "held"),
    Scope.ACCOUNT: ("pending", 0, "held"),
    Scope.CREDENTIAL: ("pending", 0, "held"),
    Scope.TEMPLATE: ("pending", 0, "held"),
    Scope.COUNTRY: ("pending", 0, "held"),
    Scope.RECIPIENT: ("failed", 1, None),
    Scope.MARKETING: ("failed", 1, None),
    Scope.UNLISTED: ("failed", 1, None),
}


@dataclass
class Desk:
    """A campaign to Brazil on one number, and the judge of its node."""

    pool: Pool
    permission: Permission
    made: builders.MadeCampaign
    follower: Follower
    judge: Judge

    async def refused(self, code: int) -> int:
        """One row is sent and refused over HTTP with this code; its id, when all that follows is stored."""
        [row_id] = await self._sent()
        body = {"error": {"code": code, "message": "(#x) no", "error_data": {"details": "no"}}}
        answer = read_answer(400, {}, json.dumps(body).encode())
        assert isinstance(answer, Refused)
        decided = after(answer, attempts=0, max_attempts=8, now=THEN, chance=0.5)
        spent = int(decided.spends_attempt)
        one = fact(
            row_id, 1, "refused", self.permission, wanted=decided.state, code=decided.code, spent=spent
        )
        async with self.pool.acquire() as db, db.transaction():
            await results.apply(db, [one])
        await self.follower.refresh()
        claimed = await self.pool.fetchrow("SELECT lane_id FROM recipient WHERE id = $1", row_id)
        campaign = self.follower.desired.campaigns[self.made.campaign_id]
        work = Work(_claimed(row_id, claimed["lane_id"]), campaign, self.permission, 0.0)  # type: ignore[index]
        work.sent_at = asyncio.get_running_loop().time()
        self.judge.judge(work, answer)
        while self.judge._running:
            await asyncio.gather(*self.judge._running)
        return row_id

    async def failed(self, code: int) -> int:
        """One row is accepted, and then fails by a webhook with this code; its id."""
        [row_id] = await self._sent()
        async with self.pool.acquire() as db, db.transaction():
            await results.apply(db, [fact(row_id, 1, "accepted", self.permission)])
        await self.pool.execute("UPDATE try SET sent_at = clock_timestamp() WHERE recipient_id = $1", row_id)
        token = await self._token(row_id)
        await webhooks.store(self.pool, [webhook(status("failed", token, code=code))])
        await Applier(self.pool).apply_batch()
        return row_id

    async def _sent(self) -> list[int]:
        ids = await builders.recipients(self.pool, self.made, 1)
        rows = await claim(self.pool, self.permission, self.made, 1)
        assert set((await mark(self.pool, self.permission, rows)).values()) == {"ok"}
        return ids

    async def _token(self, row_id: int) -> Token:
        random_id = await self.pool.fetchval("SELECT random_id FROM campaign")
        return Token(random_id, row_id, 1)

    async def breaker(self) -> tuple[tuple[str, str], str, bool] | None:
        """Its key, its state, and whether the campaign cannot go on; then it is lifted for the next code."""
        await self.follower.refresh()
        blocked = stops.blocked(self.follower.desired.campaigns[self.made.campaign_id], self.follower.desired)
        found = await breakers.open_breakers(self.pool)
        for one in found:
            async with self.pool.acquire() as db, db.transaction():
                await breakers.lift(db, one.breaker_id, "test", None)
        assert len(found) <= 1
        return ((found[0].scope.value, found[0].key), found[0].state, blocked is not None) if found else None

    async def early(self, code: int) -> int:
        """As `failed`, but the webhook is applied before our own answer is stored."""
        [row_id] = await self._sent()
        await webhooks.store(self.pool, [webhook(status("failed", await self._token(row_id), code=code))])
        await Applier(self.pool).apply_batch()
        async with self.pool.acquire() as db, db.transaction():
            await results.apply(db, [fact(row_id, 1, "accepted", self.permission)])
        return row_id

    async def set_aside(self) -> None:
        """The row is no part of the next code's story."""
        await self.pool.execute(
            "UPDATE recipient SET next_attempt_at = now() + interval '1 day' WHERE state = 'p'"
        )


def _claimed(row_id: int, lane_id: int) -> Claimed:
    return Claimed(row_id, lane_id, 0, 0, "+5511988880001", {})


@pytest.fixture
async def desk(pool: Pool) -> Desk:
    permission = await owned(pool)
    made = await builders.campaign(pool, "reminder", numbers=[NUMBER], state="running", country="BR")
    follower = Follower(pool, lambda _: None)
    await follower.refresh()
    judge = Judge(pool, follower, DatabaseFigures(pool), list, lambda _: "token", lambda _: None)
    return Desk(pool, permission, made, follower, judge)


async def test_every_code_in_an_answer_does_to_row_attempts_and_breakers_what_its_scope_says(
    desk: Desk,
) -> None:
    for code in CODES:
        scope = describe(code).scope
        state, attempts, breaker = HTTP[scope]
        stands = await row(desk.pool, await desk.refused(code))
        assert (stands.state.word, stands.attempts, stands.code) == (state, attempts, code)
        assert (stands.next_attempt_at is not None) == (state == "pending")
        key = KEYS[Scope.ACCOUNT if scope is Scope.ACCOUNT_THROUGHPUT else scope] if breaker else None
        assert await desk.breaker() == ((key, breaker, breaker == "held") if key else None), code
        await desk.set_aside()
    await assert_books(desk.pool)


async def test_every_code_in_a_failed_webhook_sends_back_what_reaches_further_and_fails_the_rest(
    desk: Desk,
) -> None:
    for code in CODES:
        scope = describe(code).scope
        expected = (State.PENDING, 0, code) if scope in STOPS else (State.FAILED, 1, code)
        for path in (desk.failed, desk.early):
            stands = await row(desk.pool, await path(code))
            assert (stands.state, stands.attempts, stands.code) == expected, path
            await desk.set_aside()
            assert await desk.breaker() == ((KEYS[scope], "held", True) if scope in STOPS else None), code
    await assert_books(desk.pool)


@pytest.mark.parametrize("scope", Scope)
def test_the_table_has_a_line_for_every_scope(scope: Scope) -> None:
    assert scope in HTTP
    assert {describe(code).scope for code in CODES} == set(Scope)
