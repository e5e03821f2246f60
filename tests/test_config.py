"""Settings: where a value comes from, and what is said when it does not fit."""

import os
from pathlib import Path

import pytest

from engine.config import Address, Config, ConfigError, load, unknown_variables
from engine.credentials import CredentialError, Credentials, permission_warning, resolve_token
from engine.domain.duration import format_duration, parse_duration


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("TIDEGATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_the_defaults_are_those_of_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
    config = load()
    assert config.database_url is None
    assert config.api_url == "https://graph.facebook.com/v25.0"
    assert config.data_dir == Path("/xdg/tidegate")
    assert (str(config.listen), str(config.metrics_listen)) == ("127.0.0.1:8080", "127.0.0.1:9464")
    assert (config.lease, config.request_deadline, config.grace) == (10, 20, 25)
    assert config.unknown_floor == 92
    assert set(config.origins.values()) == {"default"}


def test_flags_go_before_the_environment_and_that_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("tidegate.toml").write_text('lease = "15s"\ngrace = 30\nnode = "filed"\n')
    monkeypatch.setenv("TIDEGATE_GRACE", "40s")
    monkeypatch.setenv("TIDEGATE_NODE", "environed")
    config = load({"node": "flagged", "listen": None})
    assert (config.lease, config.grace, config.node) == (15, 40, "flagged")
    origins = config.origins
    assert (origins["lease"], origins["grace"], origins["node"]) == (
        "tidegate.toml",
        "TIDEGATE_GRACE",
        "--node",
    )


def test_addresses_and_secrets_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_LISTEN", "0.0.0.0:80")
    monkeypatch.setenv("TIDEGATE_APP_SECRET", "one,two")
    config = load()
    assert config.listen == Address("0.0.0.0", 80)
    assert len(config.app_secret) == 2


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_DATABASE_URL", "")
    assert load().database_url is None


@pytest.mark.parametrize("value", ["one, two,", ["one", "two"]])
def test_several_app_secrets_are_allowed(value: object) -> None:
    assert [secret.get_secret_value() for secret in load({"app_secret": value}).app_secret] == ["one", "two"]


def test_no_secret_shows_in_any_text_of_the_settings() -> None:
    config = load(
        {
            "app_secret": "s3cret-a,s3cret-b",
            "verify_token": "s3cret-c",
            "gateway_token": "s3cret-d",
            "database_url": "postgresql://u:s3cret-e@h/d",
        }
    )
    assert "s3cret" not in repr(config) + str(config) + str(config.model_dump())


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("lease", "soon", "10s, 30m"),
        ("lease", "1", "5s to 300s"),
        ("request_deadline", "10m", "3s to 300s"),
        ("listen", "8080", "HOST:PORT"),
        ("listen", "127.0.0.1:70000", "HOST:PORT"),
        ("api_url", "graph.facebook.com", "https://"),
        ("database_url", "mysql://root:hunter2@h/d", "postgresql://"),
        ("node", "a b", "letters"),
    ],
)
def test_a_value_that_does_not_fit_names_setting_origin_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, allowed: str
) -> None:
    monkeypatch.setenv(f"TIDEGATE_{name.upper()}", value)
    with pytest.raises(ConfigError) as error:
        load()
    text = str(error.value)
    assert f"The setting {name} (from TIDEGATE_{name.upper()})" in text
    assert allowed in text
    assert "hunter2" not in text
    assert "\n" not in text


def test_an_unknown_key_in_the_file_is_refused_by_name() -> None:
    Path("tidegate.toml").write_text('leese = "15s"\n')
    with pytest.raises(ConfigError, match=r"tidegate.toml sets 'leese'"):
        load()


def test_a_file_that_is_no_toml_is_refused_with_its_place() -> None:
    Path("tidegate.toml").write_text("node = = 1\n")
    with pytest.raises(ConfigError, match="line 1"):
        load()


def test_a_file_that_was_named_must_exist() -> None:
    with pytest.raises(ConfigError, match=r"other.toml does not exist"):
        load(file=Path("other.toml"))


def test_a_misspelt_variable_is_found() -> None:
    assert unknown_variables({"TIDEGATE_LEESE": "1", "TIDEGATE_LEASE": "1", "HOME": "/"}) == [
        "TIDEGATE_LEESE"
    ]


def test_settings_never_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().lease = 5


def test_an_address_reads_back_as_written() -> None:
    assert load({"listen": "[::1]:0"}).listen == Address("::1", 0)
    assert str(Address("::1", 8080)) == "[::1]:8080"
    assert isinstance(load(), Config)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10), ("10s", 10), ("250ms", 0.25), ("30m", 1800), ("2h", 7200), (1.5, 1.5)]
)
def test_lengths_of_time(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "-1s", "1w", "s", "1 2", "nan", "inf", "1e3s", float("nan"), -1.0])
def test_what_is_no_length_of_time_is_refused(text: str | float) -> None:
    with pytest.raises(ValueError, match="such as 10, 10s, 30m"):
        parse_duration(text)


def test_lengths_of_time_are_written_short() -> None:
    assert [format_duration(s) for s in (92, 1800, 7200, 86400, 0.5)] == ["92s", "30m", "2h", "1d", "0.5s"]


def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("EAA-one\n")
    credentials = Credentials()
    assert credentials.resolve(f"file:{file}").get_secret_value() == "EAA-one"
    other = tmp_path / "other"
    other.write_text("EAA-two\n")
    other.replace(file)
    assert credentials.resolve(f"file:{file}").get_secret_value() == "EAA-two"


def test_a_token_from_the_environment() -> None:
    assert Credentials({"T": "EAA"}).resolve("env:T").get_secret_value() == "EAA"
    with pytest.raises(CredentialError, match="environment variable T"):
        Credentials({}).resolve("env:T")


@pytest.mark.parametrize(
    ("content", "sentence"), [("", "empty"), ("EAA one", "spaces"), ("\xff", "not text")]
)
def test_a_token_file_that_holds_no_token(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(CredentialError, match=sentence) as error:
        resolve_token(f"file:{file}")
    assert "EAA" not in str(error.value)


def test_a_missing_token_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="No such file"):
        resolve_token(f"file:{tmp_path / 'token'}")


def test_a_bare_token_is_never_repeated() -> None:
    with pytest.raises(CredentialError) as error:
        resolve_token("EAAGsecret")
    assert "EAAG" not in str(error.value)


def test_a_token_file_open_to_others_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("EAA")
    file.chmod(0o644)
    assert "chmod 600" in (permission_warning(f"file:{file}") or "")
    file.chmod(0o600)
    assert permission_warning(f"file:{file}") is None


def test_metrics_can_be_switched_off() -> None:
    assert load({"metrics_listen": "off"}).metrics_listen is None
    assert str(load({"metrics_listen": "0.0.0.0:9100"}).metrics_listen) == "0.0.0.0:9100"


def test_thresholds_of_alerts_come_from_a_table_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tidegate.toml"
    file.write_text('[alerts]\nsilence = "5m"\nfailed_share = 0.05\n')
    assert (load(file=file).alerts.silence_s, load(file=file).alerts.failed_share) == (300.0, 0.05)
    monkeypatch.setenv("TIDEGATE_ALERTS", "silence=90s")
    chosen = load(file=file)
    assert (chosen.alerts.silence_s, chosen.alerts.failed_share) == (90.0, 0.10)
    assert chosen.origins["alerts"] == "TIDEGATE_ALERTS"


def test_a_threshold_that_is_none_is_named_with_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_ALERTS", "quiet=5m")
    with pytest.raises(
        ConfigError, match=r"^The setting alerts \(from TIDEGATE_ALERTS\) is not usable: 'quiet' is no"
    ):
        load()
