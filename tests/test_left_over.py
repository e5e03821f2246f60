"""What a killed demo left behind is removed by the next one, in whatever state it is."""

import os
import tempfile
from pathlib import Path

import pytest

from engine import demo
from engine.database import EMBEDDED
from engine.postgres.placement import prepare
from tests.support.database import reachable_directory


def test_a_demo_whose_removal_was_cut_off_is_removed_and_gets_no_cluster_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def started(_: Path) -> None:
        raise AssertionError("a server was started in what is no cluster any more")

    with reachable_directory() as scratch:
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))
        left = Path(tempfile.mkdtemp(prefix=demo.PREFIX))
        os.close(os.open(left / "lock", os.O_RDWR | os.O_CREAT, 0o600))
        cluster = prepare(left / EMBEDDED).data
        (cluster / "base").mkdir(parents=True)
        monkeypatch.setattr(demo, "server", started)
        demo._remove_left_over()
        assert list(scratch.iterdir()) == []
        assert not cluster.exists()
