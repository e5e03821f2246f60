"""What an attached screen says of itself, and what a published snapshot keeps."""

from dataclasses import replace

from engine.domain.snapshot import NodeView, Snapshot
from engine.postgres.snapshots import SECONDS, _decoded, encoded
from tests.console.support import HELD, bad_night, normal, running


async def test_ctrl_c_says_what_q_does_to_a_viewer() -> None:
    async with running(bad_night(), mode="attach") as run:
        await run.press("ctrl+c")
        assert "close this viewer, the nodes go on" in run.text()


async def test_without_a_node_what_only_nodes_know_is_a_dash() -> None:
    numbers = tuple(replace(n, owner=None, bound_by="no node", sent_per_second=0.0) for n in normal().numbers)
    gone = normal(attached=True, node="0/0 nodes", nodes=(), numbers=numbers, in_flight=0)
    async with running(gone, (120, 40), mode="attach") as run:
        assert "NO NODE" in run.row(0)
        assert "-/s of" in run.text()
        assert "in flight -" in run.text()
        row = next(line for line in run.text().splitlines() if "0011" in line)
        assert "0.0 " not in row
        assert "no node" in row
        await run.press("enter")
        assert "start `tidegate run`" in run.text()


async def test_in_run_the_page_of_nodes_names_those_that_died_with_numbers() -> None:
    async with running(normal(lost=(a_node("eng2", alive=False),)), (120, 40)) as run:
        await run.press("N")
        assert "NODES 2, 1 DEAD" in run.text()
        assert "eng2 (h1:11) DEAD, no sign for" in run.text()


async def test_q_ends_only_the_viewer() -> None:
    async with running(bad_night(), mode="attach") as run:
        await run.press("q")
        assert run.app.return_value == "quit"
        assert run.link.submitted == []


def a_node(name: str, *, alive: bool) -> NodeView:
    return NodeView(name, "h1", 11, 0.4 if alive else 40.0, alive, False, (HELD.id,), 79.6, 140.0)


async def test_the_header_says_how_many_nodes_live_and_when_none_does() -> None:
    nodes = (a_node("eng1", alive=True), a_node("eng2", alive=False))
    async with running(normal(attached=True, node="1/2 nodes", nodes=nodes), (120, 40)) as run:
        assert "RUNNING" in run.row(0)
        assert "attached to 1/2 nodes" in run.row(0)
        run.link.current = normal(attached=True, node="0/1 nodes", nodes=nodes[1:], numbers=(), campaigns=())
        await run.tick()
        assert "NO NODE" in run.row(0)


def test_a_published_snapshot_comes_back_with_short_series_and_is_a_few_kilobytes() -> None:
    data = encoded(bad_night())
    back = _decoded(data)
    assert isinstance(back, Snapshot)
    assert len(data) < 20_000
    assert len(back.accepted_series) == SECONDS
    assert back.numbers[0].id == bad_night().numbers[0].id
    assert back.alerts == bad_night().alerts
    assert back.acts == ()


def test_a_snapshot_of_another_release_is_left_out_instead_of_failing() -> None:
    assert _decoded(b"not this") is None
