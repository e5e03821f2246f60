"""One row from a line of a file to `read`, station by station, in the order of the README's tour."""

from __future__ import annotations

from typing import Any

from engine.domain.recipient import State
from engine.postgres.books import balances
from tests.support.world import NUMBER, SILENT, World, scenario, try_of, world

SLOW_MS = 4_000  # long enough to be seen on the way, also by one who stands still for a while
ROW = """
SELECT r.state, r.tries, r.attempts, r.number_id, r.in_flight, r.next_attempt_at, d.phone, d.params, d.line
  FROM recipient r JOIN recipient_data d USING (id) WHERE r.id = $1
"""


async def test_a_line_of_a_file_becomes_a_request_and_its_statuses_lead_to_read(database_url: str) -> None:
    provider = scenario(latency={"fixed_ms": SLOW_MS}, statuses=SILENT)
    async with world(database_url, provider, {}) as w:
        await _set_up_by_command(w)
        row = await _imported(w)
        engine = await w.engine(lease="10s")

        # claimed, marked, gone: the request is at the provider, and the row says so
        await w.until(lambda: _stands(w, row, State.SENDING), "the first row on its way")
        assert (await _row(w, row))["tries"] == 1
        await w.until_requests(3)
        entry = next(e for e in await w.sim.ledger() if try_of(e) == (row, 1))
        assert entry["number"] == NUMBER
        assert entry["to"] == (await _row(w, row))["phone"]

        # answered: the wamid is on record, the stamp is kept, the attempt is spent
        await w.until(lambda: _stands(w, row, State.SENT), "the first row sent")
        assert (await _row(w, row))["attempts"] == 1
        assert await _evidence(w, row) == [(1, "accepted", entry["wamid"])]
        await w.until_counts(sent=3)
        ledger = await w.sim.ledger()
        await w.until(lambda: _stamped(w, len(ledger)), "every send stamped")

        # told by webhooks, out of order: only forward
        for word in ("delivered", "sent", "read"):
            await _tell(w, entry, word)
            await w.until(lambda: _settled(w), "the inbox drained")
            assert await _state(w, row) is (State.READ if word == "read" else State.DELIVERED)
        for other in ledger:
            await _tell(w, other, "read")
        await w.until_campaign("finished", "tour")
        await w.until_counts(read=3)

        assert await w.counts() == {State.READ: 3}
        [books] = (await balances(w.db)).values()
        assert {state: n for state, n in books.items() if n} == {State.READ: 3}
        await w.prove()
        shown = (await w.tidegate("campaign", "show", "tour", "--json")).json
        assert (shown["planned"], shown["accepted"], shown["tries"], shown["attempts"]) == (3, 3, 3, 3)
        assert engine.running


async def _set_up_by_command(w: World) -> None:
    token = w.directory / "token"
    token.write_text(w.environment["TOKEN"])
    added = await w.tidegate(
        *("number", "add", NUMBER, "--display", "+5511988880001", "--account", "WABA1"),
        *("--limit", "10", "--rate", "2", "--token", f"file:{token}"),
    )
    assert added.code == 0, added.err
    created = await w.tidegate(
        *("campaign", "create", "tour", "--number", NUMBER, "--template", "reminder_v2"),
        *("--language", "pt_BR", "--body", "name,date"),
    )
    assert created.code == 0, created.err
    audience = w.directory / "tour.csv"
    audience.write_text(
        "phone,name,date\n11 96000-0001,Ana,12/03\n+5511960000002,Bia,13/03\n123,Nobody,13/03\n"
        "+55 11 96000-0003,Caio,14/03\n"
    )
    imported = await w.tidegate("import", str(audience), "--campaign", "tour", "--country", "BR", "--json")
    assert imported.code == 0, imported.err
    assert imported.json["taken"] == 3
    assert [reject["line"] for reject in imported.json["rejects"]] == [4]
    assert (await w.tidegate("campaign", "start", "tour")).code == 0


async def _imported(w: World) -> int:
    """The first line's row, pending, with what it will say."""
    assert await w.counts() == {State.PENDING: 3}
    row: int = await w.db.fetchval("SELECT id FROM recipient_data WHERE line = 2")
    found = await _row(w, row)
    assert found["phone"] == "+5511960000001"
    assert (found["tries"], found["attempts"], found["in_flight"]) == (0, 0, None)
    return row


async def _row(w: World, row: int) -> Any:
    return await w.db.fetchrow(ROW, row)


async def _state(w: World, row: int) -> State:
    return State((await _row(w, row))["state"].decode())


async def _stands(w: World, row: int, state: State) -> bool:
    return await _state(w, row) is state


async def _evidence(w: World, row: int) -> list[tuple[int, str, str | None]]:
    found = await w.db.fetch("SELECT n, outcome, wamid FROM try WHERE recipient_id = $1", row)
    return [(r["n"], r["outcome"], r["wamid"]) for r in found]


async def _stamped(w: World, n: int) -> bool:
    return len(await w.stamps()) == n


async def _tell(w: World, entry: dict[str, Any], word: str) -> None:
    """The provider posts one status about a request, and the receiver takes it."""
    before = await w.db.fetchval("SELECT count(*) FROM inbox")
    await w.tell(entry, word)

    async def stored() -> bool:
        return bool(await w.db.fetchval("SELECT count(*) > $1 FROM inbox", before))

    await w.until(stored, f"the body with {word} stored")


async def _settled(w: World) -> bool:
    return not await w.db.fetchval("SELECT count(*) FROM inbox_work")
