"""Control phones: people of the house, who get a campaign's message before its audience and again while it runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.domain.content import Content
from engine.domain.count import counted
from engine.domain.message import masked
from engine.domain.parameter import body_too_long, unfit
from engine.domain.phone import PhoneRefused, read_phone

MOST = 20
"""Control phones of one campaign: each round spends that many messages."""

LEAST_EVERY_S = 60.0
"""Seconds between rounds: nobody reads the same message more often, and each one is paid for."""

ARRIVED = frozenset({"delivered", "read"})
NEVER_LEFT = frozenset({"expired", "suppressed", "cancelled"})


class ControlRefused(ValueError):
    """No control phones. The message is one sentence without its full stop."""


@dataclass(frozen=True, slots=True)
class Control:
    """`phones` in E.164; `values` for the template's columns; `every_s`: None for once, before the audience."""

    phones: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    every_s: float | None = None


@dataclass(frozen=True, slots=True)
class ControlSend:
    """One control message. `state` as a row's; `age_s` since it left first, None when it has not."""

    phone: str
    round: int
    state: str
    age_s: float | None


@dataclass(frozen=True, slots=True)
class ControlPhone:
    """How a control phone has fared over all rounds. `waiting_s`: for how long it has had nothing of what was sent."""

    phone: str
    sent: int
    delivered: int
    failed: int
    not_sent: int
    last_round: int
    last_state: str | None
    waiting_s: float | None


@dataclass(frozen=True, slots=True)
class ControlStanding:
    """A campaign's control phones, apart from its audience. `every_s`: None for once."""

    rounds: int
    every_s: float | None
    phones: tuple[ControlPhone, ...]

    def in_words(self) -> str:
        """2 control phones, not counted above: 3 rounds, 6 sent, 5 delivered; 1 waits"""
        parts = [counted(self.rounds, "round")]
        parts += [
            f"{total:,} {word}"
            for word, total in (
                ("sent", sum(one.sent for one in self.phones)),
                ("delivered", sum(one.delivered for one in self.phones)),
                ("failed", sum(one.failed for one in self.phones)),
                ("not sent", sum(one.not_sent for one in self.phones)),
            )
            if total or word in ("sent", "delivered")
        ]
        waiting = sum(one.waiting_s is not None for one in self.phones)
        late = (
            f"; {waiting} {'waits' if waiting == 1 else 'wait'} for a message that has left"
            if waiting
            else ""
        )
        return f"{counted(len(self.phones), 'control phone')}, not counted above: {', '.join(parts)}{late}"

    def as_json(self) -> dict[str, object]:
        """As `campaign show` and `campaign report` print it; phones are masked."""
        return {
            "rounds": self.rounds,
            "every_s": self.every_s,
            "phones": [
                {
                    "phone": masked(one.phone),
                    "sent": one.sent,
                    "delivered": one.delivered,
                    "failed": one.failed,
                    "not_sent": one.not_sent,
                    "last_round": one.last_round,
                    "last_state": one.last_state,
                    "waiting_s": None if one.waiting_s is None else round(one.waiting_s),
                }
                for one in self.phones
            ],
        }


def checked(control: Control, content: Content) -> Control:
    """The same with its phones in E.164, once each. Raises ControlRefused for what could not be sent as it is."""
    phones = tuple(dict.fromkeys(_phone(text) for text in control.phones))
    if len(phones) > MOST:
        raise ControlRefused(f"{len(phones)} control phones are too many: {MOST} at most")
    if control.every_s is not None and control.every_s < LEAST_EVERY_S:
        raise ControlRefused(f"--control-every is {LEAST_EVERY_S:.0f}s or more")
    needed = content.columns()
    for column in control.values:
        if column not in needed:
            known = ", ".join(needed) or "none"
            raise ControlRefused(
                f"--control-values names {column!r}, which the template does not take ({known})"
            )
    for column, kinds in needed.items():
        if column not in control.values:
            raise ControlRefused(
                f"control phones are in no file, so each column needs a value: give --control-values {column}=…"
            )
        for kind in kinds:
            if why := unfit(control.values[column], kind):
                raise ControlRefused(f"the control value of {column} {why}")
    if why := body_too_long([variable.value.of(control.values) for variable in content.body]):
        raise ControlRefused(f"the control values: one row {why}")
    return Control(phones, dict(control.values), control.every_s)


def by_phone(sends: Iterable[ControlSend], phones: Iterable[str] = ()) -> list[ControlPhone]:
    """Each phone's sends in one line, by phone; `phones` also without any. A later message that arrived settles what
    an earlier one left open.

    >>> [p.waiting_s for p in by_phone([ControlSend("+1", 1, "sent", 900.0), ControlSend("+1", 2, "sent", 300.0)])]
    [900.0]
    """
    found: dict[str, list[ControlSend]] = {phone: [] for phone in phones}
    for send in sends:
        found.setdefault(send.phone, []).append(send)
    return [_phone_of(phone, sorted(mine, key=lambda s: s.round)) for phone, mine in sorted(found.items())]


def _phone_of(phone: str, sends: list[ControlSend]) -> ControlPhone:
    left = [send for send in sends if send.age_s is not None]
    arrived = max((send.round for send in left if send.state in ARRIVED), default=0)
    waiting = [
        send.age_s
        for send in left
        if send.round > arrived and send.state not in NEVER_LEFT and send.age_s is not None
    ]
    return ControlPhone(
        phone=phone,
        sent=len(left),
        delivered=sum(send.state in ARRIVED for send in left),
        failed=sum(send.state == "failed" for send in left),
        not_sent=sum(send.state in NEVER_LEFT and send.age_s is None for send in sends),
        last_round=sends[-1].round if sends else 0,
        last_state=sends[-1].state if sends else None,
        waiting_s=max(waiting, default=None),
    )


def _phone(text: str) -> str:
    try:
        if not text.strip().startswith("+"):
            raise PhoneRefused("has no +: write it with its country code")
        return read_phone(text).e164
    except PhoneRefused as refused:
        raise ControlRefused(f"a control phone {refused}") from None
