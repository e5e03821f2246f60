"""A campaign from a file, with header, body and buttons from columns: what is previewed is what goes over the wire."""

from __future__ import annotations

from typing import Any

from engine.domain.recipient import State
from tests.support.recorder import recorder
from tests.support.world import NUMBER, World, free_port, scenario, world

CAMPAIGN = """\
number = ["106540352242922"]
template = "ticket_v1"
language = "pt_BR"
body = [{ column = "name", name = "first_name" }, { text = "12 March", name = "day" }]

[header]
type = "document"
link = { column = "ticket" }
filename = "ticket.pdf"

[[buttons]]
type = "url"
column = "code"

[[buttons]]
type = "quick_reply"
index = 1
text = "STOP"
"""
PEOPLE = """\
phone;name;ticket;code
+5511960000001;João;https://example.org/t/1.pdf;A/1
+5511960000002;Conceição;https://example.org/t/2.pdf;A/2
+551160000001;João;https://example.org/t/1.pdf;A/1
+5511960000004;Zé;not a link;A/4
"""


async def test_header_body_and_buttons_reach_the_provider_as_they_were_previewed(database_url: str) -> None:
    port = free_port()
    async with (
        recorder(port) as wire,
        world(database_url, scenario(), {NUMBER: 20}, api_url=f"http://127.0.0.1:{port}/v25.0") as w,
    ):
        wire.target = int(w.sim.base.rpartition(":")[2])
        await _prepare(w)
        previewed = (
            await w.tidegate("campaign", "preview", "ticket", "--line", "2", "--show-phones", "--json")
        ).json
        assert (await w.tidegate("campaign", "start", "ticket")).code == 0
        engine = await w.engine("--until-finished", "--linger", "1s", "--patience", "2s")
        ended = await engine.ended()
        assert ended.code == 4, ended.err  # the other spelling waits for a person
        assert "1 row kept aside" in ended.out + ended.err
        assert await w.ends() == {State.READ: 2, State.PENDING: 1}

        assert len(wire.bodies) == 2
        assert previewed["body"] in wire.bodies
        assert _said(wire.bodies, "+5511960000002") == [
            {
                "type": "header",
                "parameters": [
                    {
                        "type": "document",
                        "document": {"link": "https://example.org/t/2.pdf", "filename": "ticket.pdf"},
                    }
                ],
            },
            {
                "type": "body",
                "parameters": [
                    {"type": "text", "parameter_name": "first_name", "text": "Conceição"},
                    {"type": "text", "parameter_name": "day", "text": "12 March"},
                ],
            },
            {
                "type": "button",
                "sub_type": "url",
                "index": "0",
                "parameters": [{"type": "text", "text": "A/2"}],
            },
            {
                "type": "button",
                "sub_type": "quick_reply",
                "index": "1",
                "parameters": [{"type": "payload", "payload": "STOP"}],
            },
        ]

        assert (await w.tidegate("rows", "release", "--campaign", "ticket")).code == 0
        engine = await w.engine("--until-finished", "--linger", "1s")
        assert (await engine.ended()).code == 0
        assert wire.bodies[-1]["to"] == "+551160000001"
        assert await w.ends() == {State.READ: 3}
        await w.prove()


async def _prepare(w: World) -> None:
    (w.directory / "ticket.toml").write_text(CAMPAIGN)
    (w.directory / "people.csv").write_bytes(PEOPLE.encode("cp1252"))  # as Excel saves it
    created = await w.tidegate("campaign", "create", "ticket", "--from", str(w.directory / "ticket.toml"))
    assert created.code == 0, created.err
    imported = await w.tidegate("import", str(w.directory / "people.csv"), "--campaign", "ticket", "--json")
    assert imported.code == 0, imported.err
    assert imported.json["encoding"] == "windows-1252"
    assert [reject["column"] for reject in imported.json["rejects"]] == ["ticket"]
    assert imported.json["twins"] == [{"line": 4, "of_line": 2}]


def _said(bodies: list[Any], to: str) -> Any:
    [body] = [body for body in bodies if body["to"] == to]
    return body["template"]["components"]
