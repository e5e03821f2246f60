"""What is held is said wherever a number is shown."""

from datetime import UTC, datetime

from engine.commands import Commands
from engine.domain.breaker import Stop
from engine.domain.errors import Scope
from engine.postgres import breakers
from engine.postgres.pool import Pool
from tests.support import builders


async def test_a_number_under_a_held_credential_is_listed_as_held_with_the_reason(pool: Pool) -> None:
    await builders.number(pool)
    commands = Commands(pool, author="ana", origin="cli")
    [before] = await commands.list_numbers()
    assert before.state == "active"
    async with pool.acquire() as db, db.transaction():
        stop = Stop(Scope.CREDENTIAL, before.token_ref, 190, "190 The access token expired")
        assert await breakers.trip(db, stop, datetime.now(UTC))
    [held] = await commands.list_numbers()
    assert (held.state, held.reason) == ("held", "190 The access token expired")

    [hold] = await commands.list_holds()
    await commands.lift_hold(hold.breaker_id)
    [after] = await commands.list_numbers()
    assert after.state == "active"
    assert (await commands.lift_hold(hold.breaker_id)).already
