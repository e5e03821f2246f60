"""An address that strangers can reach, without the secret that tells them apart, is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import Address, ConfigError, load, refuse_open_doors
from tests.support.process import put_down, spawn

APP = {"TIDEGATE_APP_SECRET": "s", "TIDEGATE_LISTEN": "0.0.0.0:18080"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_only_this_machine_is_let_in_without_a_secret(host: str) -> None:
    assert Address(host, 1).loopback
    refuse_open_doors(load({"listen": Address(host, 80)}), webhook=True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "node-1.example"])
def test_everybody_is_let_in_only_with_a_secret(host: str) -> None:
    where = Address(host, 80)
    with pytest.raises(ConfigError, match="TIDEGATE_VERIFY_TOKEN"):
        refuse_open_doors(load({"listen": where, "gateway_token": "g"}), webhook=True)
    refuse_open_doors(load({"listen": where, "verify_token": "v"}), webhook=True)
    with pytest.raises(ConfigError, match="TIDEGATE_GATEWAY_TOKEN"):
        refuse_open_doors(load({"listen": where}), webhook=False)
    refuse_open_doors(load({"listen": where, "gateway_token": "g"}), webhook=False)


def test_the_default_is_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_LISTEN", raising=False)
    assert load().listen.loopback


@pytest.mark.parametrize("command", [("run", "--no-ui"), ("run", "--no-ui", "--no-webhook"), ("receive",)])
async def test_the_command_ends_with_one_sentence(tmp_path: Path, command: tuple[str, ...]) -> None:
    process = await spawn(command, APP | {"TIDEGATE_DATA_DIR": str(tmp_path / "data")}, tmp_path, name="open")
    try:
        ended = await process.ended()
    finally:
        await put_down(process)
    assert ended.code == 2, ended
    assert ended.out == ""
    [line] = ended.err.splitlines()
    assert "0.0.0.0:18080" in line
    assert "is not set" in line
