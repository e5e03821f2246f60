"""What an attached screen says of itself, and what a published snapshot keeps."""

from engine.domain.snapshot import Snapshot
from engine.postgres.snapshots import SECONDS, _decoded, encoded
from tests.console.support import bad_night, running


async def test_ctrl_c_says_what_q_does_to_a_viewer() -> None:
    async with running(bad_night(), mode="attach") as run:
        await run.press("ctrl+c")
        assert "close this viewer, the nodes go on" in run.text()


async def test_q_ends_only_the_viewer() -> None:
    async with running(bad_night(), mode="attach") as run:
        await run.press("q")
        assert run.app.return_value == "quit"
        assert run.link.submitted == []


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
