"""What a screen may ask of the database beside the snapshot, and what it gets: all values, read once, never live.

CodesOf ─► Codes      RowsOf ─► Rows      RowOf ─► Story      JournalOf ─► Journal
"""

from dataclasses import dataclass
from datetime import datetime

MOST = 100
"""Rows in one answer."""


@dataclass(frozen=True, slots=True)
class CodesOf:
    """Rows that carry an error code, counted; of one campaign, of rows last sent from one number, or of all."""

    campaign: str | None = None
    number: str | None = None


@dataclass(frozen=True, slots=True)
class RowsOf:
    """At most MOST rows, in order of id; None leaves a condition out."""

    campaign: str | None = None
    number: str | None = None
    code: int | None = None
    state: str | None = None
    unsettled: bool = False
    """Instead of a code or state: `unknown`, or `sending` for more than two minutes; the oldest first."""


@dataclass(frozen=True, slots=True)
class RowOf:
    """One row with its timeline. `reveal`: with the whole phone number, which is kept in the journal."""

    id: int
    reveal: bool = False


@dataclass(frozen=True, slots=True)
class JournalOf:
    """The newest acts."""

    most: int = 200


Query = CodesOf | RowsOf | RowOf | JournalOf


@dataclass(frozen=True, slots=True)
class CodeCount:
    """Rows of one campaign and state with one code; `title` is the operator's sentence."""

    code: int
    title: str
    campaign: str
    state: str
    rows: int


@dataclass(frozen=True, slots=True)
class RowView:
    """One row; the phone number is masked unless it was asked for."""

    id: int
    campaign: str
    phone: str
    state: str
    number: str | None
    """Meta's id of the number that it was last sent from."""
    tries: int
    attempts: int
    code: int | None
    reason: str | None
    next_attempt_at: datetime | None
    moved_at: datetime


@dataclass(frozen=True, slots=True)
class TryView:
    """One line of a row's timeline: a try, or what became known about it later."""

    n: int
    outcome: str
    sent_at: datetime
    answered_at: datetime | None
    recorded_at: datetime
    number: str | None
    epoch: int
    code: int | None
    wamid: str | None
    raw: str | None
    """The provider's answer as it came."""


@dataclass(frozen=True, slots=True)
class JournalLine:
    """Who did what, when, and what came of it."""

    at: datetime
    author: str
    origin: str
    act: str
    target: str
    before: str | None
    after: str | None
    reason: str | None
    result: str


@dataclass(frozen=True, slots=True)
class Codes:
    """The most frequent first."""

    counts: tuple[CodeCount, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """`more`: there are others after the last one."""

    rows: tuple[RowView, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Story:
    """None: there is no such row."""

    row: RowView | None
    tries: tuple[TryView, ...] = ()


@dataclass(frozen=True, slots=True)
class Journal:
    """The newest first."""

    lines: tuple[JournalLine, ...]


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why there is none, in one sentence."""

    why: str


Answer = Codes | Rows | Story | Journal | NoAnswer
