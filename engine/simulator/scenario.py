"""What a run of the simulator does, read from JSON and checked before anything starts.

The whole format, with its defaults, is the struct `Scenario` and the structs it names; unknown keys are
refused, so that a misspelt one never passes for a working one. Times: `_s` seconds, `_ms` milliseconds.
Shares are 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType, ValidationError, field
from msgspec.json import Decoder
from msgspec.structs import replace
from pyreqwest.http import Url

Share = Annotated[float, Meta(ge=0, le=1)]
Duration = Annotated[float, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
HttpStatus = Annotated[int, Meta(ge=200, le=599)]
Range = tuple[Duration, Duration]
FaultKind = Literal[
    "error",
    "html_502",
    "close_before_reading",
    "close_after_reading",
    "reset_after_reading",
    "never_answer",
    "slow",
    "no_id",
    "error_in_200",
    "half_reply",
]

# A reply that never reached the client says nothing of the message: it was taken unless the rule denies it.
TAKEN_UNLESS_DENIED = {"close_after_reading", "reset_after_reading", "never_answer", "half_reply", "slow"}


class ScenarioError(ValueError):
    """One sentence: which file or request, which key, what is wrong with it."""


class Latency(Struct, frozen=True, forbid_unknown_fields=True):
    """How long an answer takes: lognormal by its median and 95th percentile, or always `fixed_ms`."""

    median_ms: Annotated[float, Meta(gt=0)] = 250.0
    p95_ms: Annotated[float, Meta(gt=0)] = 600.0
    fixed_ms: Duration | None = None

    def __post_init__(self) -> None:
        if self.fixed_ms is None and self.p95_ms < self.median_ms:
            raise ValueError("`p95_ms` must not be below `median_ms`")


class Number(Struct, frozen=True, forbid_unknown_fields=True):
    """One business phone number.

    `limit` messages are granted in any sliding `window_ms`, counted at arrival. Meta states its limit per
    second; a test of a client that paces exactly at the limit sets 985, because what left the client one
    second apart may arrive up to 15 ms closer together on a busy machine.
    """

    limit: Annotated[int, Meta(ge=0)] = 80
    window_ms: Positive = 1000
    latency: Latency | None = None
    display: str | None = None
    account: str = "102290129340398"


class Match(Struct, frozen=True, forbid_unknown_fields=True):
    """Which requests a rule takes; every given condition must hold.

    `from_s` and `until_s` count from the moment the scenario came into force. `every` takes each Nth of the
    requests that satisfy the conditions on time, number and recipient; `share` draws; `first` ends the
    rule after so many were taken.
    """

    from_s: Duration | None = None
    until_s: Duration | None = None
    number: str | None = None
    to_ends_with: str | None = None
    every: Positive | None = None
    share: Share | None = None
    first: Positive | None = None


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One fault. The first rule that matches a request decides; `accepted`: the message was taken."""

    do: FaultKind
    match: Match = Match()
    code: int | None = None
    http_status: HttpStatus | None = None
    title: str | None = None
    details: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    accepted: bool | None = None
    extra_ms: Duration = 0.0

    def __post_init__(self) -> None:
        if self.do in ("error", "error_in_200") and self.code is None:
            raise ValueError(f"`code` is required when `do` is {self.do!r}")
        if self.do == "slow" and self.accepted is False:
            raise ValueError("`accepted` cannot be false when `do` is 'slow': the answer is a success")
        if self.do == "close_before_reading" and (self.accepted or self.match.to_ends_with is not None):
            raise ValueError(
                "'close_before_reading' never reads the message: no `accepted`, no `to_ends_with`"
            )
        for name, value in self.headers.items():
            if not (name.isascii() and value.isascii() and name.isprintable() and value.isprintable()):
                raise ValueError(f"`headers` may hold only printable ASCII, {name!r} does not")

    @property
    def takes(self) -> bool:
        """Whether a request that meets this fault was accepted all the same."""
        return self.do in TAKEN_UNLESS_DENIED if self.accepted is None else self.accepted


class Failure(Struct, frozen=True, forbid_unknown_fields=True):
    """Recipients whose accepted message ends as `failed`, told by a webhook.

    The same recipient always meets the same end (decided by a hash of seed, code and number), as someone
    without WhatsApp would. `after_sent` puts a `sent` status before the failure.
    """

    code: int
    share: Share = 1.0
    to_ends_with: str | None = None
    title: str | None = None
    details: str | None = None
    after_sent: bool = False


class Statuses(Struct, frozen=True, forbid_unknown_fields=True):
    """The life of an accepted message as webhooks tell it, and how these are posted.

    `sent_s` counts from acceptance, `delivered_s` from `sent`, `read_s` and `failed_s` from the one before.
    A body holds at most `batch` statuses and waits at most `max_wait_ms` for them. A body that is not
    answered with 200 in `timeout_ms` is posted again after `retry_first_ms`, doubling up to `retry_max_ms`,
    for `retry_for_s` (Meta: 7 days).
    """

    enabled: bool = True
    sent_s: Range = (0.05, 0.5)
    delivered_s: Range = (0.1, 1.5)
    read_s: Range = (1.0, 10.0)
    failed_s: Range = (0.2, 2.0)
    read_share: Share = 0.5
    read_without_delivered_share: Share = 0.03
    undelivered_share: Share = 0.0
    lost_share: Share = 0.0
    shuffled_share: Share = 0.0
    duplicated_share: Share = 0.0
    failures: list[Failure] = field(default_factory=list)
    batch: Annotated[int, Meta(ge=1, le=1000)] = 100
    max_wait_ms: Duration = 100.0
    concurrency: Annotated[int, Meta(ge=1, le=256)] = 8
    timeout_ms: Annotated[float, Meta(gt=0)] = 10_000.0
    retry_first_ms: Annotated[float, Meta(gt=0)] = 500.0
    retry_max_ms: Annotated[float, Meta(gt=0)] = 60_000.0
    retry_for_s: Duration = 604_800.0

    def __post_init__(self) -> None:
        for key in ("sent_s", "delivered_s", "read_s", "failed_s"):
            low, high = getattr(self, key)
            if low > high:
                raise ValueError(f"`{key}` must be [low, high]")


class Hold(Struct, frozen=True, forbid_unknown_fields=True):
    """Template pacing: from message `after` + 1 on, templates are accepted as `held_for_quality_assessment`.

    After `for_s` they are released (their statuses flow) or, with `then` = "pause", the template is paused
    and each held message fails with 132015.
    """

    after: Annotated[int, Meta(ge=0)]
    for_s: Duration = 5.0
    then: Literal["release", "pause"] = "release"


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole run. Without `numbers` any phone number id is served, as `any_number`."""

    about: str = ""
    seed: int = 1
    numbers: dict[str, Number] = field(default_factory=dict)
    any_number: Number | None = None
    latency: Latency = Latency()
    throughput_status: HttpStatus = 429
    rewrite_wa_id: bool = False
    tokens: list[str] | UnsetType = UNSET
    app_secret: str | UnsetType = UNSET
    webhook: str | UnsetType = UNSET
    statuses: Statuses = Statuses()
    hold: Hold | None = None
    rules: list[Rule] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.tokens is not UNSET and not all(self.tokens):
            raise ValueError("`tokens` must not hold an empty text")
        if self.app_secret is not UNSET and not self.app_secret:
            raise ValueError("`app_secret` must not be empty")
        if self.webhook is not UNSET and not _can_be_posted_to(self.webhook):
            raise ValueError('`webhook` must be an http:// or https:// address, or "" for no webhooks')

    def __repr__(self) -> str:
        return f"Scenario({len(self.numbers)} numbers, {len(self.rules)} rules)"  # never the secrets

    def number(self, number_id: str) -> Number | None:
        """The number's settings, or None when this scenario does not know it."""
        known = self.numbers.get(number_id, self.any_number)
        return Number() if known is None and not self.numbers else known


class Access(Struct, frozen=True):
    """Who may call, and where statuses go: resolved apart from the scenario, so that nothing prints it."""

    tokens: frozenset[str]
    app_secret: bytes
    webhook: str

    def __repr__(self) -> str:
        return "Access(***)"


_DECODER = Decoder(Scenario)
DEFAULT_TOKEN = "simulator-token"
DEFAULT_SECRET = "simulator-secret"
DEFAULT_WEBHOOK = "http://127.0.0.1:8080/webhook"


def parse(data: bytes, where: str) -> Scenario:
    """The scenario in `data` (JSON); `where` names its origin in the sentence of ScenarioError."""
    try:
        return _DECODER.decode(data)
    except ValidationError as error:
        raise ScenarioError(f"{where} cannot be used: {error}.") from None
    except (DecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{where} is not valid JSON: {error}.") from None


def load(path: Path) -> Scenario:
    """The scenario in a file. Raises ScenarioError, which names the file and the key."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"The scenario file {path} cannot be read: {error.strerror}.") from None
    return parse(data, f"The scenario file {path}")


def access(scenario: Scenario, environment: Mapping[str, str], before: Access | None = None) -> Access:
    """Secrets and webhook: from the scenario, else as `before`, else the environment, else defaults.

    Raises ScenarioError when the environment names a webhook that is no http address.
    """
    if scenario.tokens is not UNSET:
        tokens = frozenset(scenario.tokens)
    else:
        tokens = (
            before.tokens
            if before
            else frozenset({environment.get("TIDEGATE_SIMULATOR_TOKEN") or DEFAULT_TOKEN})
        )
    if scenario.app_secret is not UNSET:
        secret = scenario.app_secret.encode()
    else:
        secret = (
            before.app_secret
            if before
            else (environment.get("TIDEGATE_APP_SECRET") or DEFAULT_SECRET).encode()
        )
    if scenario.webhook is not UNSET:
        webhook = scenario.webhook
    else:
        webhook = (
            before.webhook if before else environment.get("TIDEGATE_SIMULATOR_WEBHOOK") or DEFAULT_WEBHOOK
        )
    if not _can_be_posted_to(webhook):
        raise ScenarioError("TIDEGATE_SIMULATOR_WEBHOOK must be an http:// or https:// address.")
    return Access(tokens=tokens, app_secret=secret, webhook=webhook)


def _can_be_posted_to(webhook: str) -> bool:
    if not webhook:
        return True  # no webhooks at all
    try:
        return Url(webhook).scheme in (
            "http",
            "https",
        )  # asked of the client itself, so that it cannot disagree
    except ValueError:
        return False


def without_access(scenario: Scenario) -> Scenario:
    """The same run with its secrets taken out, to be kept after `access` has resolved them."""
    return replace(scenario, tokens=UNSET, app_secret=UNSET, webhook=UNSET)
