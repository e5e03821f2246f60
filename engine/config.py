"""Settings, read once: flags, then the environment (TIDEGATE_*), then tidegate.toml, then the defaults.

    config = load({"data_dir": "/srv/tidegate"})
    config.lease              # 10.0, in seconds
    config.origins["lease"]   # "default"

A value that does not fit is a ConfigError of one sentence: the setting, where it was set, what is allowed.
"""

import ipaddress
import os
import re
import socket
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from engine.domain.duration import parse_duration
from engine.domain.thresholds import DEFAULTS, Thresholds, thresholds

FILE = Path("tidegate.toml")
"""Read from the working directory unless another one is named."""

CONNECT_TIMEOUT = 2.0
"""Seconds; fixed, because a lease is only safe when connecting takes less than its margin."""


class ConfigError(Exception):
    """A setting is wrong. The message is one sentence; it never holds a secret."""


class Address(NamedTuple):
    """Where a socket listens. Port 0 lets the system choose."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it. A name other than localhost may mean anything."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        """`127.0.0.1:8080`, `[::1]:8080`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one `tidegate run` behaves; what outlives a run is in Config. Lengths of time in seconds."""

    no_ui: bool = False
    until_finished: bool = False
    linger: float = 30.0
    patience: float = 600.0
    no_webhook: bool = False
    read_only: bool = False
    demo: bool = False
    """q ends everything, and the directory goes with it."""
    mouse: bool = False
    """The screen takes clicks; the terminal then selects no text by itself."""
    json_log: bool = False
    """Without a screen: lines of JSON also where a person reads them, on a terminal."""
    refresh_hz: float | None = None
    """Paints a second; None: 1 on a small terminal, 2 on a large one."""


def _default_data_dir() -> Path:
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "tidegate"


def _address(value: object) -> Address:
    if isinstance(value, Address):
        return value
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%a-z]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})", str(value).strip())
    if match is None or int(match[3]) > 65535:
        raise ValueError("write HOST:PORT, such as 127.0.0.1:8080")
    return Address(match[1] or match[2], int(match[3]))


def _address_or_off(value: object) -> Address | None:
    return None if value is None or str(value).strip().lower() == "off" else _address(value)


def _http_url(value: object) -> str:
    text = str(value).strip().rstrip("/")
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise ValueError("write an http:// or https:// address")
    return text


def _database_url(value: object) -> SecretStr:
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value).strip()
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("write postgresql://user:password@host:5432/name")
    return SecretStr(text)


def _secrets(value: object) -> object:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        raise ValueError("write one secret, or several with commas between")
    stripped = [part.strip() if isinstance(part, str) else part for part in parts]
    return tuple(part for part in stripped if part != "")


def _words(value: object) -> object:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise ValueError("write words with commas between, such as STOP,PARAR")
    words = tuple(part.strip() for part in parts if part.strip())
    if not words:
        raise ValueError("write at least one word: people must be able to stop")
    return words


def _seconds(low: float, high: float) -> Callable[[float], float]:
    def within(seconds: float) -> float:
        if not low <= seconds <= high:
            raise ValueError(f"allowed is {low:g}s to {high:g}s")
        return seconds

    return within


def _node_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,63}", value):
        raise ValueError("write 1 to 63 letters, digits, dots, hyphens or underscores")
    return value


def _default_node() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:63] or "node"


_Duration = BeforeValidator(parse_duration)
_Address = Annotated[Address, NoDecode, BeforeValidator(_address)]
_AddressOrOff = Annotated[Address | None, NoDecode, BeforeValidator(_address_or_off)]
_Url = Annotated[str, BeforeValidator(_http_url)]


class Config(BaseSettings):
    """All settings of one process. Durations in seconds."""

    model_config = SettingsConfigDict(
        env_prefix="TIDEGATE_", env_ignore_empty=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    database_url: Annotated[SecretStr, BeforeValidator(_database_url)] | None = None
    """None: an embedded Postgres under `data_dir`. Secret, because it may hold a password."""
    api_url: _Url = "https://graph.facebook.com/v25.0"
    data_dir: Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())] = Field(
        default_factory=_default_data_dir
    )
    listen: _Address = Address("127.0.0.1", 8080)
    advertise: _Url | None = None
    """How other nodes reach this one's gateway."""
    metrics_listen: _AddressOrOff = Address("127.0.0.1", 9464)
    """None, written `off`: no metrics are served."""
    alerts: Annotated[Thresholds, NoDecode, BeforeValidator(thresholds)] = DEFAULTS
    """From when on a person is told; in tidegate.toml a table, elsewhere `silence=5m, failed_share=5%`."""
    app_secret: Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_secrets)] = ()
    """Each app signs its webhooks with its own: any of these makes a signature valid."""
    verify_token: SecretStr | None = None
    gateway_token: SecretStr | None = None
    forward_url: _Url | None = None
    """Every stored webhook body is posted on to it, as it came."""
    stop_words: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)] | None = None
    """What people write who want nothing more, instead of the defaults of every language; compared without case."""
    lease: Annotated[float, _Duration, AfterValidator(_seconds(5, 300))] = 10.0
    """At least 5 s: connecting (2 s) and a margin (1 s) must fit, and renewals come at a third."""
    request_deadline: Annotated[float, _Duration, AfterValidator(_seconds(3, 300))] = 20.0
    """At least 3 s: connecting alone may take 2."""
    grace: Annotated[float, _Duration, AfterValidator(_seconds(0, 3600))] = 25.0
    node: Annotated[str, AfterValidator(_node_name)] = Field(default_factory=_default_node)

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the names are pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """`load` merges the sources itself, so that each value's origin is known."""
        return (init_settings,)

    @property
    def origins(self) -> Mapping[str, str]:
        """Where each setting's value came from: `flag`, `TIDEGATE_LEASE`, `tidegate.toml` or `default`."""
        return {name: self._origins.get(name, "default") for name in type(self).model_fields}

    @property
    def unknown_floor(self) -> float:
        """Seconds that a row stays unknown at least: whoever sent it is surely done, and its status had a minute."""
        return self.lease + CONNECT_TIMEOUT + self.request_deadline + 60.0


def load(flags: Mapping[str, object] | None = None, *, file: Path | None = None) -> Config:
    """Read every source once. Flags that are None count as not given. Raises ConfigError."""
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    place = file or FILE
    for name, value in _from_file(place, required=file is not None).items():
        values[name], origins[name] = value, str(place)
    for name, value in EnvSettingsSource(Config)().items():
        values[name], origins[name] = value, f"TIDEGATE_{name.upper()}"
    for name, value in (flags or {}).items():
        if value is not None:
            values[name], origins[name] = value, f"--{name.replace('_', '-')}"
    try:
        config = Config(**values)  # type: ignore[arg-type]  # it is pydantic that checks them
    except ValidationError as error:
        raise ConfigError(_sentence(error, origins)) from None  # its own text quotes every value
    config._origins.update(origins)
    return config


def refuse_open_doors(config: Config, *, webhook: bool) -> None:
    """Nobody listens where strangers can come without the secret that tells them apart. Raises ConfigError."""
    wanted = "verify_token" if webhook else "gateway_token"
    if config.listen.loopback or getattr(config, wanted) is not None:
        return
    raise ConfigError(
        f"TIDEGATE_LISTEN is {config.listen}, which other machines can reach, and TIDEGATE_{wanted.upper()} is not "
        f"set: set it, or listen on 127.0.0.1."
    )


def unknown_variables(environ: Mapping[str, str] = os.environ) -> list[str]:
    """TIDEGATE_* names in the environment that mean nothing here: most likely misspelt."""
    known = {f"TIDEGATE_{name.upper()}" for name in Config.model_fields}
    return sorted(name for name in environ if name.startswith("TIDEGATE_") and name not in known)


def _from_file(place: Path, *, required: bool) -> dict[str, Any]:
    try:
        with place.open("rb") as text:
            values = tomllib.load(text)
    except FileNotFoundError:
        if required:
            raise ConfigError(f"The settings file {place} does not exist.") from None
        return {}
    except OSError as error:
        raise ConfigError(f"The settings file {place} cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        where = re.search(r"\(at [^)]*\)", str(error))
        raise ConfigError(
            f"The settings file {place} is not valid TOML {where[0] if where else ''}".rstrip()
        ) from None
    unknown = [name for name in values if name not in Config.model_fields]
    if unknown:
        allowed = ", ".join(Config.model_fields)
        raise ConfigError(f"{place} sets {unknown[0]!r}, which is no setting; allowed are {allowed}.")
    return values


def _sentence(error: ValidationError, origins: Mapping[str, str]) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "a setting"
    cause = str(first["msg"]).removeprefix("Value error, ")
    return f"The setting {name} (from {origins.get(name, 'its default')}) is not usable: {cause}."
